/** Opens cursors on logs and chains. */

import { NexusError } from "@nexus-stream/protocol";
import type { Directory } from "../logs/directory.ts";
import type { Cursor, LogSource } from "../port.ts";
import { beyond } from "../refusals.ts";
import type { Storage } from "../storage.ts";
import type { Batch } from "./batch.ts";
import { ChainCursor, type ChainReading, LogCursor } from "./cursor.ts";
import type { Pages } from "./pages.ts";

export interface ReaderParts {
	readonly storage: Storage;
	readonly directory: Directory;
	readonly pages: Pages;
	closed(): boolean;
}

export class Reader {
	readonly #parts: ReaderParts;
	readonly #reading: ChainReading;
	/** Cursors that are open. */
	cursors = 0;

	constructor(parts: ReaderParts) {
		const { directory, closed } = parts;
		this.#parts = parts;
		this.#reading = {
			page: (id, offset) => this.#page(id, offset),
			closed,
			link: (chain, after) => directory.link(chain, after),
			watchChain: (chain, wake) => directory.watchChain(chain, wake),
		};
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
		const known = this.#parts.pages.get(id, offset);
		if (known) return known;
		const keep = (page: Batch | undefined) => {
			if (page) this.#parts.pages.put(id, page);
			return page;
		};
		const page = this.#parts.storage.read(id, offset);
		return page instanceof Promise ? page.then(keep) : keep(page);
	}
}
