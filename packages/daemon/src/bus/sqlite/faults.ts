/** Faults of a unit, a commit or a stored record: a flipped byte on disk is found by its checksum when it is read, and never served. */

import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import { crc32 } from "node:zlib";
import { NexusError, type RefusalKind, Refused, wordsOf } from "@nexus-stream/protocol";
import { storeFailure } from "../../std/store-failure.ts";
import { type Commit, type Committed, fenced, type UnitOutcome } from "../storage.ts";

/** A unit is to be refused, and the others of its commit are not. */
export class UnitFault extends Error {
	constructor(cause: unknown) {
		super("a unit is refused", { cause });
	}
}

/** A refused unit as a journal row keeps it: its place in the commit, and why. */
export type Refusal = [place: number, kind: RefusalKind, message: string];

export function refusalsIn(text: string | null): Map<number, UnitOutcome> {
	const refusals = JSON.parse(text ?? "[]") as Refusal[];
	return new Map(refusals.map(([place, kind, message]) => [place, { refused: new Refused(kind, message) }]));
}

export function allFenced({ units }: Commit, now: number): Committed {
	return { now, outcomes: new Map(units.map((_, place) => [place, { refused: fenced() }])) };
}

/** Any failure inside a unit refuses that unit; the others of the commit stand. */
export function refusalOf(cause: unknown): Refused {
	if (cause instanceof Refused) return cause;
	const kind = storeFailure(cause)?.kind === "duplicate" ? "duplicate" : "conflict";
	return new Refused(kind, wordsOf(cause), { cause });
}

export const damaged = (log: string, offset: number): NexusError =>
	new NexusError(
		"data_loss",
		`the records of ${log} from offset ${offset} on are damaged on disk: restore the data directory from a backup (\`nexus doctor --deep\` lists what is damaged)`,
	);

/** Undefined where the file is damaged: the caller looks elsewhere, or reports what it misses. */
export function unlessCorrupt<T>(read: () => T): T | undefined {
	try {
		return read();
	} catch (cause) {
		if (storeFailure(cause)?.kind === "corrupt") return undefined;
		throw cause;
	}
}

type ChecksumRow = Record<string, SQLOutputValue>;

/** Over the place, too: a segment that answers for another log or offset is as wrong as a flipped byte. */
export const segmentCrc = (log: number, first: number, count: number, records: string | Uint8Array): number =>
	crc32(records, crc32(`${log} ${first} ${count}\n`));

/** Segments from before there were checksums have none. */
export const isWholeSegment = (log: number, { first, count, records, crc }: ChecksumRow): boolean =>
	typeof crc !== "number" || crc === segmentCrc(log, Number(first), Number(count), records as string);

/** Every row has one: a row that lost it proves nothing. A file of the first version has no such column. */
export const isWholeJournal = ({ entries, crc }: ChecksumRow): boolean =>
	crc === undefined || crc === crc32(entries as string);

interface StoredRecords {
	log: string;
	kind: string;
	sealed: boolean;
	/** In order, up to the first damaged segment. */
	records: Iterable<string>;
	/** The damage of its segments, known once the records were read. */
	problem(): string | undefined;
}

/** Every log with what is in its segments, read without opening the store for work. */
export function* storedLogs(db: DatabaseSync): Generator<StoredRecords, void, undefined> {
	// A file of an older version has no checksums to select.
	const segments = db.prepare("SELECT * FROM segment WHERE log = ? ORDER BY first");
	for (const row of db.prepare("SELECT id, name, kind, sealed_at, head FROM log WHERE removed = 0 ORDER BY id").all()) {
		let problem: string | undefined;
		const id = Number(row.id);
		const head = Number(row.head);
		yield {
			log: String(row.name),
			kind: String(row.kind),
			sealed: row.sealed_at !== null,
			records: (function* () {
				let next = 1;
				for (const segment of segments.iterate(id)) {
					if (Number(segment.first) !== next || !isWholeSegment(id, segment)) break;
					next += Number(segment.count);
					yield* String(segment.records).split("\n");
				}
				if (next <= head) problem = `records from offset ${next} on are damaged`;
			})(),
			problem: () => problem,
		};
	}
}

/** How many rows of the journal, which holds the newest records of live logs, are damaged. */
export function damagedJournalRows(db: DatabaseSync): number {
	let damaged = 0;
	for (const row of db.prepare("SELECT * FROM journal").iterate()) if (!isWholeJournal(row)) damaged++;
	return damaged;
}
