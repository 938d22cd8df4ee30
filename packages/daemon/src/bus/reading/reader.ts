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
		this.#pages = new Pages(pagesBytesMax);
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

/** Recently used segments, decoded once and shared by all readers that are behind the tail. Bounded by size, least recently used goes first. */
class Pages {
	readonly #bytesMax: number;
	readonly #pages = new Map<string, Batch>();
	#bytes = 0;

	constructor(bytesMax: number) {
		this.#bytesMax = bytesMax;
	}

	get(id: number, first: number): Batch | undefined {
		const name = `${id}:${first}`;
		const page = this.#pages.get(name);
		if (!page) return undefined;
		this.#pages.delete(name);
		this.#pages.set(name, page);
		return page;
	}

	put(id: number, page: Batch): void {
		const name = `${id}:${page.first}`;
		this.#forget(name);
		this.#pages.set(name, page);
		this.#bytes += page.text.length;
		for (const oldest of this.#pages.keys()) {
			if (this.#bytes <= this.#bytesMax) break;
			this.#forget(oldest);
		}
	}

	/** Forgets the pages of a removed log. */
	drop(id: number): void {
		for (const name of [...this.#pages.keys()]) if (name.startsWith(`${id}:`)) this.#forget(name);
	}

	#forget(name: string): void {
		this.#bytes -= this.#pages.get(name)?.text.length ?? 0;
		this.#pages.delete(name);
	}
}
