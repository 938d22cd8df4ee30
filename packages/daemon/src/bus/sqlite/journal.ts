/** The journal: a row has the new records of all logs of one commit. The tail of a log is what no segment has yet. */

import type { SQLOutputValue, StatementSync } from "node:sqlite";
import { Batch } from "../reading/batch.ts";
import type { Adopted, LogWrite, StoredLog } from "../storage.ts";
import { isWholeJournal } from "./faults.ts";
import type { Statements } from "./schema.ts";

interface JournalEntry {
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

/** The text of a row while it is put together: bytes in memory that is used again, because nothing of it is needed after the commit. */
export class JournalText {
	#bytes = Buffer.allocUnsafeSlow(KEPT_BYTES);
	#used = 0;

	/** A row as large as this is rare: its memory is not kept. */
	begin(): void {
		this.#used = 0;
		if (this.#bytes.length > KEPT_BYTES) this.#bytes = Buffer.allocUnsafeSlow(KEPT_BYTES);
	}

	/** The entry of one log in a commit, as `entriesOf` reads it. */
	add({ id, batch }: LogWrite): void {
		if (!batch) return;
		const { text } = batch;
		this.#reserve(text.length * UTF8_BYTES_PER_UNIT_MAX + FRAMING_BYTES_MAX);
		this.#number(id, SPACE);
		this.#number(batch.first, SPACE);
		this.#number(batch.count, LINE_FEED);
		this.#used += this.#bytes.write(text, this.#used);
		this.#bytes[this.#used++] = LINE_FEED;
	}

	/** UTF-8; good until the next row is begun. */
	get bytes(): Uint8Array {
		return this.#bytes.subarray(0, this.#used);
	}

	#number(value: number, behind: number): void {
		let end = this.#used + 1;
		for (let power = 10; power <= value; power *= 10) end++;
		let rest = value;
		for (let at = end - 1; at >= this.#used; at--) {
			const digit = rest % 10;
			this.#bytes[at] = ZERO + digit;
			rest = (rest - digit) / 10;
		}
		this.#used = end;
		this.#bytes[this.#used++] = behind;
	}

	#reserve(more: number): void {
		const size = this.#used + more;
		if (size <= this.#bytes.length) return;
		const larger = Buffer.allocUnsafeSlow(Math.max(size, 2 * this.#bytes.length));
		this.#bytes.copy(larger, 0, 0, this.#used);
		this.#bytes = larger;
	}
}

const KEPT_BYTES = 256 * 1024;
const UTF8_BYTES_PER_UNIT_MAX = 3;
/** Three numbers of sixteen digits, two spaces and two line feeds. */
const FRAMING_BYTES_MAX = 52;
const SPACE = 0x20;
const LINE_FEED = 0x0a;
const ZERO = 0x30;

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

export type LogRow = Record<string, SQLOutputValue>;

/** Logs with their tails. */
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
