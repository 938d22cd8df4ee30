/** Reads a store as it lies on disk, without opening it for work, to look for damage. */

import type { DatabaseSync } from "node:sqlite";
import { isWholeJournal, isWholeSegment } from "./faults.ts";

export interface StoredRecords {
	log: string;
	kind: string;
	sealed: boolean;
	/** In order, up to the first damaged segment. */
	records: Iterable<string>;
	/** The damage of its segments, known once the records were read. */
	problem(): string | undefined;
}

/** Every log with what is in its segments. */
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
