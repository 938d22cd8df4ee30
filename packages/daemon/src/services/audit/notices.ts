/** How notices are read: by a cursor, as every log is. */

import { NexusError } from "@nexus-stream/protocol";
import { Batch, type Bus, type Cursor, type Wake } from "../../bus/bus.ts";
import type { Reading } from "../../std/write.ts";
import { type NoticePage, type NoticeRows, noticeCall } from "./rows.ts";

const RECORDS_PER_READ = 1024;
/** Topics whose newest records are kept at hand. */
const RECENT_MAX = 64;

export interface NoticeLogs {
	/** Reads strictly after a place, then follows. Undefined: from now on; 0: from the earliest that is kept (Z3). */
	cursor(topic: string, after: number | undefined): Promise<Cursor>;
}

export interface NoticeParts {
	bus: Pick<Bus, "listen">;
	rows: { notices: NoticeRows };
}

export function noticeLogs({ bus, rows: { notices } }: NoticeParts): NoticeLogs {
	/** Questions that were asked in this turn of the loop: the followers of a topic are woken together, also when nothing is new. */
	const asked = new Map<string, Promise<NoticePage | undefined>>();
	const ask = (topic: string, after: number): Reading<NoticePage | undefined> => {
		const name = `${after} ${topic}`;
		const known = asked.get(name);
		if (known) return known;
		const page = notices.read(topic, after, RECORDS_PER_READ);
		if (!(page instanceof Promise)) return page;
		// An answer may be older than what wakes a reader in a later turn.
		if (asked.size === 0) setImmediate(() => asked.clear());
		asked.set(name, page);
		return page;
	};
	/** Followers of a topic ask for the same rows: this cache reads them once. */
	const recent = new Map<string, Batch>();
	const read = async (topic: string, after: number): Promise<Batch | undefined> => {
		const known = recent.get(topic);
		if (known && known.first <= after + 1 && after < known.last) return known.after(after);
		const page = await ask(topic, after);
		if (!page) return undefined;
		if (page.first > after + 1) throw expired(topic, page.first);
		const batch = new Batch(page.first, page.count, page.text).after(after);
		if (known && known.last > batch.last) return batch;
		recent.delete(topic);
		recent.set(topic, batch);
		if (recent.size > RECENT_MAX) recent.delete(recent.keys().next().value!);
		return batch;
	};
	return {
		async cursor(topic, after) {
			const from = startOf(topic, after, await notices.range(topic));
			const listen = (wake: Wake) => bus.listen(noticeCall(topic), wake);
			return new NoticeCursor(from, listen, (place) => read(topic, place));
		},
	};
}

function startOf(topic: string, after: number | undefined, { first, last }: { first: number; last: number }): number {
	if (after === undefined) return last;
	if (!Number.isSafeInteger(after) || after < 0) throw new NexusError("invalid", "a sequence is a whole number ≥ 0");
	if (after > last) throw new NexusError("invalid", `${topic}: ${after} is beyond the last sequence, ${last}`);
	if (after === 0) return first - 1;
	if (after < first - 1) throw expired(topic, first);
	return after;
}

const expired = (topic: string, first: number) =>
	new NexusError("expired", `${topic}: events before ${first} were removed by retention; read after ${first - 1}`);

class NoticeCursor implements Cursor {
	offset: number;
	readonly ended = false;
	readonly #listen: (wake: Wake) => () => void;
	readonly #read: (after: number) => Promise<Batch | undefined>;
	#stop: () => void = () => {};

	constructor(after: number, listen: (wake: Wake) => () => void, read: (after: number) => Promise<Batch | undefined>) {
		this.offset = after;
		this.#listen = listen;
		this.#read = read;
	}

	async next(): Promise<Batch | undefined> {
		const batch = await this.#read(this.offset);
		if (batch) this.offset = batch.last;
		return batch;
	}

	async check(): Promise<void> {
		await this.#read(this.offset);
	}

	onWake(listener: Wake): void {
		this.#stop();
		this.#stop = this.#listen(listener);
	}

	close(): void {
		this.#stop();
		this.#stop = () => {};
	}
}
