/** Logs with their tails: what is not in a segment yet stands in the journal. */

import type { SQLOutputValue, StatementSync } from "node:sqlite";
import type { Adopted, StoredLog } from "../storage.ts";
import { isWholeJournal } from "./checksum.ts";
import { entriesOf, TailReader } from "./journal.ts";

export type LogRow = Record<string, SQLOutputValue>;

export class Tails {
	readonly #journalAfter: StatementSync;
	/** Heads of the logs that are written through this store: they need no look into the journal. */
	readonly heads = new Map<number, number>();
	/** Their owner. A log that another node has taken over is further than its head here. */
	node = 0;

	constructor(journalAfter: StatementSync) {
		this.#journalAfter = journalAfter;
	}

	/** Others write from now on what was written here. */
	forget(): void {
		this.heads.clear();
	}

	whole(row: LogRow): Adopted {
		return this.wholes([row])[0]!;
	}

	/** All of them in one pass over the journal. */
	wholes(rows: readonly LogRow[]): Adopted[] {
		const readers = new Map<number, TailReader>();
		let from = Infinity;
		for (const row of rows) {
			if (row.sealed_at !== null || this.#headOf(row) !== undefined) continue;
			readers.set(Number(row.id), new TailReader(storedOf(row)));
			from = Math.min(from, Number(row.cut_at));
		}
		for (const row of readers.size > 0 ? this.#journalAfter.iterate(from) : []) {
			if (!isWholeJournal(row)) for (const reader of readers.values()) reader.skip();
			else for (const entry of entriesOf(row.entries as string)) readers.get(entry.log)?.take(entry);
		}
		return rows.map((row) => {
			const read = readers.get(Number(row.id))?.result();
			if (read) return read;
			const log = storedOf(row);
			return { log: { ...log, head: this.#headOf(row) ?? log.head }, tail: undefined };
		});
	}

	#headOf(row: LogRow): number | undefined {
		return row.sealed_at === null && Number(row.node) === this.node ? this.heads.get(Number(row.id)) : undefined;
	}
}

export function storedOf(row: LogRow): StoredLog {
	const log: StoredLog = {
		id: Number(row.id),
		log: row.name as string,
		kind: row.kind as StoredLog["kind"],
		base: Number(row.base),
		createdAt: Number(row.created_at),
		head: Number(row.head),
		bytes: Number(row.bytes),
	};
	if (row.chain !== null) log.chain = row.chain as string;
	if (row.meta !== null) log.meta = JSON.parse(row.meta as string);
	if (row.counted_for !== null) log.countedFor = row.counted_for as string;
	if (row.sealed_at !== null) log.sealedAt = Number(row.sealed_at);
	return log;
}

/** Cache key: owner and start of the tail. While both are unchanged the cached tail is valid. */
export interface Owned {
	node: number;
	cutAt: number;
}

export const ownedOf = (row: LogRow): Owned => ({ node: Number(row.node), cutAt: Number(row.cut_at) });
