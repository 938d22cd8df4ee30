/** Cursors: how anything reads a log. They hold a position and nothing else, so a reader that is far behind costs no more than one that keeps up (I6). */

import { NexusError } from "@nexus-stream/protocol";
import type { Growing } from "../logs/live-log.ts";
import type { Cursor, Wake } from "../port.ts";
import type { Batch } from "./batch.ts";

/** The Bus, as a cursor reads it. */
export interface SegmentReader {
	/** The segment that begins at, or holds, the offset. */
	page(id: number, offset: number): Batch | undefined | Promise<Batch | undefined>;
	closed(): boolean;
}

/** The source of a log cursor: a log that grows, or one that was sealed before the cursor came. */
export interface Readable {
	id: number;
	name: string;
	growing?: Growing;
	/** Head of a sealed log. */
	head: number;
}

export class LogCursor implements Cursor {
	offset: number;
	readonly #readable: Readable;
	readonly #reading: SegmentReader;
	#wake: Wake | undefined;
	#closed = false;
	#release: (() => void) | undefined;

	constructor(readable: Readable, after: number, reading: SegmentReader, release?: () => void) {
		this.#release = release;
		this.#readable = readable;
		this.offset = after;
		this.#reading = reading;
		const growing = this.#growing();
		if (growing) growing.readers++;
	}

	/** The log as it is written now: it may have been taken over since. */
	#growing(): Growing | undefined {
		let { growing } = this.#readable;
		while (growing?.successor) {
			growing = growing.successor;
			this.#readable.growing = growing;
		}
		return growing;
	}

	get ended(): boolean {
		const growing = this.#growing();
		if (growing && growing.sealedAt === undefined) return false;
		return this.offset >= (growing ? growing.head : this.#readable.head);
	}

	next(): Batch | undefined | Promise<Batch | undefined> {
		if (this.#reading.closed()) throw stopping();
		const growing = this.#growing();
		if (this.offset >= (growing ? growing.head : this.#readable.head)) return undefined;
		const recent = growing?.recent(this.offset);
		if (recent) return this.#take(recent);
		const page = this.#reading.page(this.#readable.id, this.offset + 1);
		return page instanceof Promise ? page.then((found) => this.#takePage(found)) : this.#takePage(page);
	}

	check(): void | Promise<void> {
		const { head, id, name } = this.#readable;
		const growing = this.#growing();
		if (this.offset >= (growing ? growing.head : head) || growing?.recent(this.offset)) return;
		const found = (page: Batch | undefined) => {
			if (!page) throw expired(name);
		};
		const page = this.#reading.page(id, this.offset + 1);
		if (page instanceof Promise) return page.then(found);
		found(page);
	}

	#takePage(page: Batch | undefined): Batch {
		if (!page) throw expired(this.#readable.name);
		return this.#take(page.after(this.offset));
	}

	#take(batch: Batch): Batch {
		this.offset = batch.last;
		return batch;
	}

	onWake(listener: Wake): void {
		const wakes = this.#growing()?.wakes;
		if (this.#wake) wakes?.delete(this.#wake);
		this.#wake = listener;
		wakes?.add(listener);
	}

	close(): void {
		const growing = this.#growing();
		if (growing && !this.#closed) growing.readers--;
		this.#closed = true;
		if (this.#wake) growing?.wakes.delete(this.#wake);
		this.#release?.();
		this.#release = undefined;
	}
}

export interface ChainLink {
	readable: Readable;
	base: number;
}

/** The source of a chain cursor: also the next link, and a call when there is a new one. */
export interface ChainReading extends SegmentReader {
	/** The link that holds or follows the chain offset, with where it begins. */
	link(chain: string, after: number): ChainLink | undefined | Promise<ChainLink | undefined>;
	watchChain(chain: string, wake: Wake): () => void;
}

/** Reads the links of a chain one after another, as one log without an end. */
export class ChainCursor implements Cursor {
	offset: number;
	readonly ended = false;
	readonly #chain: string;
	readonly #reading: ChainReading;
	#link: { cursor: LogCursor; base: number } | undefined;
	#wake: Wake = () => {};
	#closed = false;
	readonly #unwatch: () => void;
	#release: (() => void) | undefined;

	constructor(chain: string, after: number, reading: ChainReading, release: () => void) {
		this.#release = release;
		this.#chain = chain;
		this.offset = after;
		this.#reading = reading;
		this.#unwatch = reading.watchChain(chain, (log) => this.#wake(log));
	}

	next(): Batch | undefined | Promise<Batch | undefined> {
		if (this.#reading.closed()) throw stopping();
		for (;;) {
			const entered = this.#link ? true : this.#enter();
			if (entered instanceof Promise) return entered.then((found) => (found ? this.next() : undefined));
			if (!entered) return undefined;
			const { cursor, base } = this.#link!;
			if (cursor.ended) {
				cursor.close();
				this.#link = undefined;
				continue;
			}
			const batch = cursor.next();
			return batch instanceof Promise ? batch.then((found) => this.#take(found, base)) : this.#take(batch, base);
		}
	}

	check(): void | Promise<void> {
		const entered = this.#link ? true : this.#enter();
		if (entered instanceof Promise) return entered.then(() => this.#link?.cursor.check());
		return this.#link?.cursor.check();
	}

	#enter(): boolean | Promise<boolean> {
		const found = this.#reading.link(this.#chain, this.offset);
		return found instanceof Promise ? found.then((link) => this.#open(link)) : this.#open(found);
	}

	#open(found: ChainLink | undefined): boolean {
		if (!found || this.#closed) return false;
		if (found.base > this.offset) throw expired(this.#chain);
		const cursor = new LogCursor(found.readable, this.offset - found.base, this.#reading);
		cursor.onWake((log) => this.#wake(log));
		this.#link = { cursor, base: found.base };
		return true;
	}

	#take(batch: Batch | undefined, base: number): Batch | undefined {
		if (!batch) return undefined;
		this.offset = base + batch.last;
		return batch.movedBy(base);
	}

	onWake(listener: Wake): void {
		this.#wake = listener;
	}

	close(): void {
		this.#closed = true;
		this.#link?.cursor.close();
		this.#unwatch();
		this.#release?.();
		this.#release = undefined;
	}
}

const expired = (name: string) =>
	new NexusError("expired", `the records after this position of ${name} were removed by retention`);

const stopping = () => new NexusError("unavailable", "the daemon is stopping; resume from the last offset");

/** A cursor as an async iterable: catch up, then live, without a gap or a duplicate (I4). Ends when the source is sealed and read, or the signal aborts. Closes the cursor. */
export async function* follow(cursor: Cursor, signal?: AbortSignal): AsyncGenerator<Batch, void, undefined> {
	let woken = false;
	let resume: (() => void) | undefined;
	const wake = () => {
		woken = true;
		resume?.();
	};
	cursor.onWake(wake);
	signal?.addEventListener("abort", wake, { once: true });
	try {
		while (!signal?.aborted) {
			woken = false;
			const batch = await cursor.next();
			if (batch) yield batch;
			else if (cursor.ended) return;
			else if (!woken) await new Promise<void>((resolve) => (resume = resolve));
		}
	} finally {
		signal?.removeEventListener("abort", wake);
		cursor.close();
	}
}
