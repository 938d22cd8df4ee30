/**
 * The durable store of the Bus. A commit of many logs is one journal row, because a row per log and tick would cost more than the
 * tokens it holds; a log's tail becomes a segment row of its own when it is big enough or the log is sealed, and the journal rows go.
 */

import type { SQLOutputValue, StatementSync } from "node:sqlite";
import { NexusError } from "../protocol/protocol.ts";
import { migrate, type SqliteFile, sqliteFailure } from "../std/sqlite.ts";
import type { Write } from "../std/write.ts";
import { Batch } from "./batch.ts";
import { isWholeJournal, isWholeSegment, journalCrc, segmentCrc } from "./checksum.ts";
import type { LogQuery } from "./port.ts";
import type { Attempt, LogWrite, Opened, Storage, StoredLog } from "./storage.ts";

const SCHEMA = [
	`CREATE TABLE log (
		id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, chain TEXT, base INTEGER NOT NULL,
		meta TEXT, created_at INTEGER NOT NULL, sealed_at INTEGER, head INTEGER NOT NULL, bytes INTEGER NOT NULL,
		removed INTEGER NOT NULL DEFAULT 0
	) STRICT;
	CREATE INDEX log_chain ON log (chain, base) WHERE chain IS NOT NULL;
	CREATE INDEX log_live ON log (id) WHERE sealed_at IS NULL;
	CREATE INDEX log_sealed ON log (sealed_at, id) WHERE sealed_at IS NOT NULL;
	CREATE INDEX log_removed ON log (id) WHERE removed = 1;
	CREATE TABLE segment (log INTEGER NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL, records TEXT NOT NULL) STRICT;
	CREATE UNIQUE INDEX segment_place ON segment (log, first);
	CREATE TABLE journal (id INTEGER PRIMARY KEY, entries TEXT NOT NULL) STRICT;
	CREATE TABLE chain_removed (chain TEXT PRIMARY KEY, up_to INTEGER NOT NULL) STRICT, WITHOUT ROWID;`,
	// NULL in rows of before: those are taken as they are.
	`ALTER TABLE segment ADD COLUMN crc INTEGER;
	ALTER TABLE journal ADD COLUMN crc INTEGER;`,
];

/** A log that is not cut is cut once this many journal rows came after its first uncut record. */
const JOURNAL_ROWS_BEHIND_MAX = 4096;
const JOURNAL_ROWS_PER_TIDY = 2048;
const SEGMENTS_PER_REMOVAL = 16;

export function sqliteStorage(file: SqliteFile): Storage {
	migrate(file, "bus", SCHEMA);
	return new SqliteStorage(file);
}

type Row = Record<string, SQLOutputValue>;
type Statements = Record<keyof typeof STATEMENTS, StatementSync>;

class SqliteStorage implements Storage {
	readonly #file: SqliteFile;
	readonly #sql: Statements;
	/** The first journal row that holds uncut records of a log. */
	readonly #journalFrom = new Map<number, number>();
	#journalNext = 1;
	#journalFirst = 1;

	constructor(file: SqliteFile) {
		this.#file = file;
		this.#sql = Object.fromEntries(
			Object.entries(STATEMENTS).map(([name, sql]) => [name, file.db.prepare(sql)]),
		) as Statements;
	}

	open(): Opened {
		const row = this.#sql.totals.get() as Row;
		const { live, lastId } = this.#replay();
		return { lastId: Math.max(Number(row.last_id), lastId), totalBytes: Number(row.bytes), live };
	}

	/** The live logs with what the journal holds of them, and the highest log number it knows. */
	#replay(): Pick<Opened, "live" | "lastId"> {
		let lastId = 0;
		const found = new Map<number, Replayed>();
		for (const row of this.#sql.live.all()) {
			const log = storedOf(row);
			found.set(log.id, { log, tail: [], incomplete: false });
		}
		for (const row of this.#sql.journal.all()) {
			const id = Number(row.id);
			if (this.#journalNext === 1) this.#journalFirst = id;
			this.#journalNext = id + 1;
			if (!isWholeJournal(row)) {
				// Whose records it held is not known; a log that goes on without a gap proves that it lost none.
				for (const live of found.values()) live.incomplete = true;
				continue;
			}
			for (const entry of entriesOf(row.entries as string)) {
				if (entry.log > lastId) lastId = entry.log;
				const live = found.get(entry.log);
				if (live && takeEntry(live, entry) && !this.#journalFrom.has(entry.log)) this.#journalFrom.set(entry.log, id);
			}
		}
		const live = [...found.values()].map(({ log, tail, incomplete }) => ({
			log: incomplete ? { ...log, damaged: "its newest records are damaged on disk" } : log,
			tail: tail.length > 0 ? Batch.of(log.head + 1, tail) : undefined,
		}));
		return { live, lastId };
	}

	commit(work: (attempt: Attempt) => readonly LogWrite[]): void {
		const writes = this.#file.transaction(() => {
			const planned = work((writes) => this.#attempt(writes));
			this.#write(planned);
			return planned;
		});
		this.#remember(writes);
	}

	#attempt(changes: readonly Write[]): { cause: unknown } | undefined {
		const sql = this.#sql;
		sql.savepoint.run();
		try {
			for (const write of changes) this.#file.things.apply(write, { node: 1, now: Date.now() });
			sql.release.run();
			return undefined;
		} catch (cause) {
			// The whole transaction is gone on a full disk; then the commit itself has to fail.
			if (!this.#file.db.isTransaction) throw cause;
			sql.undo.run();
			sql.release.run();
			return { cause };
		}
	}

	#write(writes: readonly LogWrite[]): void {
		const sql = this.#sql;
		let journal = "";
		for (const { id, create, batch, cut, sealedAt } of writes) {
			if (create) {
				const { spec, base, createdAt } = create;
				const meta = spec.meta === undefined ? null : JSON.stringify(spec.meta);
				sql.createLog.run(id, spec.log, spec.kind, spec.chain ?? null, base, meta, createdAt);
			}
			if (cut) {
				const { first, count, text, last } = cut.batch;
				sql.addSegment.run(id, first, count, text, segmentCrc(id, first, count, text));
				sql.cutLog.run(last, cut.bytes, sealedAt ?? null, id);
			} else if (sealedAt !== undefined) {
				sql.cutLog.run(0, 0, sealedAt, id);
			} else if (batch) {
				journal += `${id} ${batch.first} ${batch.count}\n${batch.text}\n`;
			}
		}
		if (journal !== "") sql.addJournal.run(this.#journalNext, journal, journalCrc(journal));
	}

	/** After the commit: which journal row each log still needs. */
	#remember(writes: readonly LogWrite[]): void {
		let journalled = false;
		for (const { id, batch, cut, sealedAt } of writes) {
			if (cut || sealedAt !== undefined) this.#journalFrom.delete(id);
			else if (batch) {
				journalled = true;
				if (!this.#journalFrom.has(id)) this.#journalFrom.set(id, this.#journalNext);
			}
		}
		if (journalled) this.#journalNext++;
	}

	find(log: string): StoredLog | undefined {
		const row = this.#sql.find.get(log);
		return row && storedOf(row);
	}

	segment(id: number, offset: number): Batch | undefined {
		const row = this.#segmentRow(id, offset);
		if (row && Number(row.first) + Number(row.count) > offset && isWholeSegment(id, row))
			return new Batch(Number(row.first), Number(row.count), row.records as string);
		// What retention removed is gone with its log; a log that is still listed has lost it.
		const log = this.#sql.holder.get(id, offset);
		if (log) throw damaged(log.name as string, offset);
		return undefined;
	}

	#segmentRow(id: number, offset: number): Row | undefined {
		try {
			return this.#sql.segment.get(id, offset);
		} catch (cause) {
			if (sqliteFailure(cause)?.kind === "corrupt") return undefined;
			throw cause;
		}
	}

	link(chain: string, after: number): StoredLog | undefined {
		const row = this.#sql.link.get(chain, after);
		return row && storedOf(row);
	}

	chain(chain: string): { start: number; head: number } | undefined {
		const removed = this.#sql.removedUpTo.get(chain);
		const last = this.#sql.lastLink.get(chain);
		const start = removed ? Number(removed.up_to) : 0;
		if (last) return { start, head: Math.max(start, Number(last.base) + Number(last.head)) };
		return removed && { start, head: start };
	}

	list(query: LogQuery): StoredLog[] {
		const live = query.live === undefined ? null : Number(query.live);
		return this.#sql.list
			.all(query.kind ?? null, query.chain ?? null, live, query.before ?? null, query.limit ?? -1)
			.map(storedOf);
	}

	oldestSealed(): StoredLog | undefined {
		const row = this.#sql.oldestSealed.get();
		return row && storedOf(row);
	}

	removeSome(id: number): boolean {
		return this.#file.transaction(() => {
			const sql = this.#sql;
			sql.rememberRemoval.run(id);
			sql.markRemoved.run(id);
			const { changes } = sql.removeSegments.run(id, SEGMENTS_PER_REMOVAL);
			if (Number(changes) === SEGMENTS_PER_REMOVAL) return false;
			sql.removeLog.run(id);
			return true;
		});
	}

	tidy(): { more: boolean; lagging: ReadonlySet<number> } {
		let needed = this.#journalNext;
		const lagging = new Set<number>();
		for (const [id, from] of this.#journalFrom) {
			if (from < needed) needed = from;
			if (this.#journalNext - from > JOURNAL_ROWS_BEHIND_MAX) lagging.add(id);
		}
		const upTo = Math.min(needed, this.#journalFirst + JOURNAL_ROWS_PER_TIDY);
		if (upTo > this.#journalFirst) {
			this.#file.transaction(() => this.#sql.removeJournal.run(upTo));
			this.#journalFirst = upTo;
		}
		for (const row of this.#sql.halfRemoved.all()) this.removeSome(Number(row.id));
		return { more: upTo < needed, lagging };
	}
}

const STATEMENTS = {
	savepoint: "SAVEPOINT participant",
	release: "RELEASE participant",
	undo: "ROLLBACK TO participant",
	totals:
		"SELECT coalesce(max(id), 0) AS last_id, coalesce(sum(bytes) FILTER (WHERE removed = 0), 0) AS bytes FROM log",
	live: "SELECT * FROM log WHERE sealed_at IS NULL ORDER BY id",
	journal: "SELECT id, entries, crc FROM journal ORDER BY id",
	createLog:
		"INSERT INTO log (id, name, kind, chain, base, meta, created_at, head, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0)",
	addSegment: "INSERT INTO segment (log, first, count, records, crc) VALUES (?, ?, ?, ?, ?)",
	cutLog: "UPDATE log SET head = max(head, ?1), bytes = bytes + ?2, sealed_at = ?3 WHERE id = ?4",
	addJournal: "INSERT INTO journal (id, entries, crc) VALUES (?, ?, ?)",
	removeJournal: "DELETE FROM journal WHERE id < ?",
	find: "SELECT * FROM log WHERE name = ? AND removed = 0",
	holder: "SELECT name FROM log WHERE id = ? AND removed = 0 AND head >= ?",
	segment: "SELECT first, count, records, crc FROM segment WHERE log = ? AND first <= ? ORDER BY first DESC LIMIT 1",
	link: "SELECT * FROM log WHERE chain = ?1 AND sealed_at IS NOT NULL AND removed = 0 AND base + head > ?2 ORDER BY base LIMIT 1",
	lastLink:
		"SELECT base, head FROM log WHERE chain = ? AND sealed_at IS NOT NULL AND removed = 0 ORDER BY base DESC LIMIT 1",
	removedUpTo: "SELECT up_to FROM chain_removed WHERE chain = ?",
	list: `SELECT * FROM log WHERE removed = 0 AND (?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR chain = ?2)
		AND (?3 IS NULL OR (sealed_at IS NULL) = ?3) AND (?4 IS NULL OR id < (SELECT id FROM log WHERE name = ?4))
		ORDER BY id DESC LIMIT ?5`,
	oldestSealed: "SELECT * FROM log WHERE sealed_at IS NOT NULL AND removed = 0 ORDER BY sealed_at, id LIMIT 1",
	halfRemoved: "SELECT id FROM log WHERE removed = 1 LIMIT 4",
	rememberRemoval: `INSERT INTO chain_removed SELECT chain, base + head FROM log WHERE id = ? AND chain IS NOT NULL
		ON CONFLICT (chain) DO UPDATE SET up_to = max(up_to, excluded.up_to)`,
	markRemoved: "UPDATE log SET removed = 1 WHERE id = ? AND removed = 0",
	removeSegments: "DELETE FROM segment WHERE rowid IN (SELECT rowid FROM segment WHERE log = ? LIMIT ?)",
	removeLog: "DELETE FROM log WHERE id = ?",
} as const;

function storedOf(row: Row): StoredLog {
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
	if (row.sealed_at !== null) log.sealedAt = Number(row.sealed_at);
	return log;
}

interface Replayed {
	log: StoredLog;
	tail: string[];
	/** Records behind the tail may be missing. */
	incomplete: boolean;
}

/** True when the entry is the log's next; records that a later cut moved into a segment stand in the journal until it is tidied. */
function takeEntry(live: Replayed, { first, records }: { first: number; records: string[] }): boolean {
	const next = live.log.head + live.tail.length + 1;
	if (first > next) live.incomplete = true;
	if (first !== next) return false;
	live.incomplete = false;
	live.tail.push(...records);
	return true;
}

const damaged = (log: string, offset: number): NexusError =>
	new NexusError(
		"data_loss",
		`the records of ${log} from offset ${offset} on are damaged on disk: restore the data directory from a backup (\`nexus doctor --deep\` lists what is damaged)`,
	);

/** The entries of a journal row: a header line with log, first offset and count, then that many records. */
function* entriesOf(text: string): Generator<{ log: number; first: number; records: string[] }> {
	const lines = text.split("\n");
	for (let at = 0; at < lines.length - 1; ) {
		const [log, first, count] = lines[at]!.split(" ").map(Number) as [number, number, number];
		yield { log, first, records: lines.slice(at + 1, at + 1 + count) };
		at += 1 + count;
	}
}
