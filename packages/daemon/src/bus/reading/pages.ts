/** Recently used segments, decoded once and shared by all readers that are behind the tail. Bounded by size, least recently used goes first. */

import type { Batch } from "./batch.ts";

export interface Pages {
	get(id: number, first: number): Batch | undefined;
	put(id: number, batch: Batch): void;
	/** Forgets the pages of a removed log. */
	drop(id: number): void;
}

export function createPages(bytesMax: number): Pages {
	const pages = new Map<string, { batch: Batch; bytes: number }>();
	let total = 0;
	const key = (id: number, first: number) => `${id}:${first}`;
	const forget = (name: string) => {
		total -= pages.get(name)?.bytes ?? 0;
		pages.delete(name);
	};
	return {
		get(id, first) {
			const name = key(id, first);
			const page = pages.get(name);
			if (!page) return undefined;
			pages.delete(name);
			pages.set(name, page);
			return page.batch;
		},
		put(id, batch) {
			const bytes = batch.text.length;
			const name = key(id, batch.first);
			forget(name);
			pages.set(name, { batch, bytes });
			total += bytes;
			for (const oldest of pages.keys()) {
				if (total <= bytesMax) break;
				forget(oldest);
			}
		},
		drop(id) {
			for (const name of [...pages.keys()]) if (name.startsWith(`${id}:`)) forget(name);
		},
	};
}
