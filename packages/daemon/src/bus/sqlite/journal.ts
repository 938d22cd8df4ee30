/** A row of the journal: the new records of all logs of one commit. */

import { Batch } from "../reading/batch.ts";
import type { LogWrite, StoredLog } from "../storage.ts";
import { isWholeJournal } from "./checksum.ts";
import type { Statements } from "./schema.ts";

export interface JournalEntry {
	log: number;
	first: number;
	records: string[];
}

/** The entries of a row: a header line with log, first offset and count, then that many records. */
export function* entriesOf(text: string): Generator<JournalEntry> {
	const lines = text.split("\n");
	for (let at = 0; at < lines.length - 1; ) {
		const [log, first, count] = lines[at]!.split(" ").map(Number) as [number, number, number];
		yield { log, first, records: lines.slice(at + 1, at + 1 + count) };
		at += 1 + count;
	}
}

/** The highest log number that anything in the store still belongs to: a new log must not be taken for an old one. */
export function lastIdUsed({ lastLog, journal }: Pick<Statements, "lastLog" | "journal">): number {
	let last = Number(lastLog.get()!.id);
	for (const row of journal.iterate())
		if (isWholeJournal(row)) for (const { log } of entriesOf(row.entries as string)) if (log > last) last = log;
	return last;
}

/** The records of a live log that are not in a segment, put together from the rows since its last cut. */
export class TailReader {
	readonly #log: StoredLog;
	readonly #records: string[] = [];
	/** Records behind the tail may be missing. */
	#incomplete = false;

	constructor(log: StoredLog) {
		this.#log = log;
	}

	/** A row whose entries cannot be read, so that it is not known which logs it held. A log that continues without a gap has lost nothing. */
	skip(): void {
		this.#incomplete = true;
	}

	/** Records that a later cut moved into a segment may stand in the journal still. */
	take({ first, records }: JournalEntry): void {
		const next = this.#log.head + this.#records.length + 1;
		if (first > next) this.#incomplete = true;
		if (first !== next) return;
		this.#incomplete = false;
		this.#records.push(...records);
	}

	/** The log with its true head, and its tail. */
	result(): { log: StoredLog; tail: Batch | undefined } {
		const { head, bytes } = this.#log;
		const tail = this.#records.length > 0 ? Batch.of(head + 1, this.#records) : undefined;
		const whole = { ...this.#log, head: tail?.last ?? head, bytes };
		return { log: this.#incomplete ? { ...whole, damaged: "its newest records are damaged on disk" } : whole, tail };
	}
}

/** Which rows of the journal are still needed: for each log, the first one that holds uncut records. */
export class JournalNeeds {
	readonly #from = new Map<number, number>();

	/** A commit with this row wrote the log. */
	written({ id, batch, cut, seal }: LogWrite, row: number): void {
		if (cut || seal) this.#from.delete(id);
		else if (batch && !this.#from.has(id)) this.#from.set(id, row);
	}

	set(id: number, row: number): void {
		this.#from.set(id, row);
	}

	/** The first row that any log needs, or the last one of all. */
	first(last: number): number {
		let first = last;
		for (const row of this.#from.values()) if (row < first) first = row;
		return first;
	}

	/** The logs that need a row before this one. */
	before(row: number): Set<number> {
		const logs = new Set<number>();
		for (const [id, from] of this.#from) if (from < row) logs.add(id);
		return logs;
	}
}
