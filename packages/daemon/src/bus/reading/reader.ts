/** Opens cursors on logs and chains, and keeps the segments that they read. */

import { NexusError } from "@nexus-stream/protocol";
import type { Directory } from "../logs/directory.ts";
import type { Cursor, LogSource } from "../port.ts";
import { beyond, type Storage } from "../storage.ts";
import type { Batch } from "./batch.ts";
import { ChainCursor, type ChainReading, LogCursor } from "./cursor.ts";

export interface ReaderParts {
	readonly storage: Storage;
	readonly directory: Directory;
	readonly pagesBytesMax: number;
	closed(): boolean;
}

export class Reader {
	readonly #parts: ReaderParts;
	readonly #reading: ChainReading;
	readonly #pages: Pages;
	/** Cursors that are open. */
	cursors = 0;

	constructor(parts: ReaderParts) {
		const { directory, closed, pagesBytesMax } = parts;
		this.#pages = createPages(pagesBytesMax);
		this.#parts = parts;
		this.#reading = {
			page: (id, offset) => this.#page(id, offset),
			closed,
			link: (chain, after) => directory.link(chain, after),
			watchChain: (chain, wake) => directory.watchChain(chain, wake),
		};
	}

	/** Forgets the pages of a removed log. */
	drop(id: number): void {
		this.#pages.drop(id);
	}

	async cursor(source: LogSource, after: number): Promise<Cursor> {
		if (this.#parts.closed()) throw new NexusError("unavailable", "the daemon is stopping");
		if (!Number.isSafeInteger(after) || after < 0) throw new NexusError("invalid", "an offset is a whole number ≥ 0");
		this.cursors++;
		const release = () => {
			this.cursors--;
		};
		try {
			if ("log" in source) return await this.#logCursor(source.log, after, release);
			return await this.#chainCursor(source.chain, after, release);
		} catch (cause) {
			release();
			throw cause;
		}
	}

	async #logCursor(name: string, after: number, release: () => void): Promise<Cursor> {
		const readable = await this.#parts.directory.readable(name);
		if (!readable) throw new NexusError("not_found", `no log ${name}`);
		if (after > readable.head) throw beyond(name, after, readable.head);
		return new LogCursor(readable, after, this.#reading, release);
	}

	async #chainCursor(chain: string, after: number, release: () => void): Promise<Cursor> {
		const { start, head } = (await this.#parts.directory.chainEnds(chain)) ?? { start: 0, head: 0 };
		if (after > head) throw beyond(chain, after, head);
		if (after < start) {
			throw new NexusError(
				"expired",
				`${chain}: records up to ${start} were removed by retention; read after ${start}`,
			);
		}
		return new ChainCursor(chain, after, this.#reading, release);
	}

	#page(id: number, offset: number): Batch | undefined | Promise<Batch | undefined> {
		const known = this.#pages.get(id, offset);
		if (known) return known;
		const keep = (page: Batch | undefined) => {
			if (page) this.#pages.put(id, page);
			return page;
		};
		const page = this.#parts.storage.read(id, offset);
		return page instanceof Promise ? page.then(keep) : keep(page);
	}
}

interface Pages {
	get(id: number, first: number): Batch | undefined;
	put(id: number, batch: Batch): void;
	/** Forgets the pages of a removed log. */
	drop(id: number): void;
}

/** Recently used segments, decoded once and shared by all readers that are behind the tail. Bounded by size, least recently used goes first. */
function createPages(bytesMax: number): Pages {
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
