/** The tables of the Bus in a SQLite file, and every statement on them. */

import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Kinds } from "../storage.ts";

export const BUS_AREA = "bus";

export const BUS_STEPS: readonly string[] = [
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
	// NULL in segments of before: those are taken as they are. A row of the journal without a checksum is damaged.
	`ALTER TABLE segment ADD COLUMN crc INTEGER;
	ALTER TABLE journal ADD COLUMN crc INTEGER;
	UPDATE journal SET crc = journal_crc(entries);`,
	// The owner of a log and the maker of a commit. Older rows belong to node 0, which is dead.
	`CREATE TABLE IF NOT EXISTS node (id INTEGER PRIMARY KEY, name TEXT NOT NULL, renewed_at INTEGER NOT NULL, dead INTEGER NOT NULL DEFAULT 0) STRICT;
	CREATE TABLE reserved (name TEXT PRIMARY KEY, next INTEGER NOT NULL) STRICT, WITHOUT ROWID;
	ALTER TABLE log ADD COLUMN node INTEGER NOT NULL DEFAULT 0;
	ALTER TABLE log ADD COLUMN cut_at INTEGER NOT NULL DEFAULT 0;
	ALTER TABLE log ADD COLUMN made INTEGER NOT NULL DEFAULT 0;
	CREATE INDEX log_made ON log (made, id);
	ALTER TABLE journal ADD COLUMN node INTEGER NOT NULL DEFAULT 0;
	ALTER TABLE journal ADD COLUMN n INTEGER NOT NULL DEFAULT 0;
	ALTER TABLE journal ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
	ALTER TABLE journal ADD COLUMN refused TEXT;`,
	// In whose share its bytes count: a sum over an index. Logs of before count as far as they say whose they are.
	`ALTER TABLE log ADD COLUMN counted_for TEXT;
	UPDATE log SET counted_for = meta ->> '$.appId' WHERE kind IN ('scenario', 'realtime') AND json_valid(meta);
	CREATE INDEX log_counted ON log (counted_for, bytes) WHERE counted_for IS NOT NULL;`,
	// Since when a node has renewed without a gap; the logs that a commit created and sealed, for those who follow it.
	`ALTER TABLE node ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
	ALTER TABLE journal ADD COLUMN changes TEXT;`,
];

const IS_DEAD = "NOT EXISTS (SELECT 1 FROM node WHERE node.id = log.node AND node.dead = 0)";

const IS_OF_KINDS = "(?1 IS NULL OR kind = ?1) AND kind NOT IN (SELECT value FROM json_each(?2))";

/** In the order of commits: ids are reserved in blocks, and say nothing about it. */
const IS_BEFORE = "(?4 IS NULL OR (made, id) < (SELECT made, id FROM log WHERE name = ?4))";

const STATEMENTS = {
	savepoint: "SAVEPOINT unit",
	release: "RELEASE unit",
	undo: "ROLLBACK TO unit",
	killAll: "UPDATE node SET dead = 1 WHERE dead = 0",
	forgetDead: "DELETE FROM node WHERE dead = 1 AND id < (SELECT max(id) FROM node)",
	addNode: "INSERT INTO node (name, renewed_at, since) VALUES (?1, ?2, ?2)",
	renew:
		"UPDATE node SET since = CASE WHEN renewed_at < ?1 - ?2 / 2 THEN ?1 ELSE since END, renewed_at = ?1 WHERE id = ?3 AND dead = 0",
	expire: `UPDATE node SET dead = 1 WHERE dead = 0 AND id <> ?1 AND renewed_at <= ?2
		AND (SELECT since FROM node WHERE id = ?1 AND dead = 0) <= ?2 RETURNING id`,
	leave: "UPDATE node SET dead = 1 WHERE id = ?",
	isAlive: "SELECT 1 FROM node WHERE id = ? AND dead = 0",
	reserved: "SELECT next FROM reserved WHERE name = 'log'",
	reserve:
		"INSERT INTO reserved VALUES ('log', ?1) ON CONFLICT (name) DO UPDATE SET next = max(next, excluded.next) RETURNING next",
	lastLog: "SELECT coalesce(max(id), 0) AS id FROM log",
	firstRow: "SELECT coalesce(min(id), 1) AS id FROM journal",
	standing:
		"SELECT (SELECT coalesce(max(id), 0) FROM journal) AS id, EXISTS (SELECT 1 FROM node WHERE id = ? AND dead = 0) AS is_alive",
	lastRow: "SELECT coalesce(max(id), 0) AS id FROM journal",
	// The first counts the changes of other connections, the second those of this one.
	version: "SELECT data_version AS others, total_changes() AS own FROM pragma_data_version",
	rowsAfter: `SELECT id, node, n, at, crc, changes, CASE WHEN node <> ?2 AND ?3 THEN CAST(entries AS BLOB) END AS entries
		FROM journal WHERE id > ?1 ORDER BY id LIMIT ?4`,
	madeBy: "SELECT * FROM log WHERE made = ? AND removed = 0",
	journal: "SELECT id, entries, crc FROM journal ORDER BY id",
	journalAfter: "SELECT id, entries, crc FROM journal WHERE id > ? ORDER BY id",
	made: "SELECT at, refused FROM journal WHERE node = ? AND n = ? ORDER BY id DESC LIMIT 1",
	// Text is bound as bytes: they are at hand, and their checksum is taken of them.
	addJournal: "INSERT INTO journal (id, entries, crc, node, n, at, refused) VALUES (?, CAST(? AS TEXT), ?, ?, ?, ?, ?)",
	addShared:
		"INSERT INTO journal (id, entries, crc, node, n, at, refused, changes) VALUES (?, CAST(? AS TEXT), ?, ?, ?, ?, ?, ?)",
	removeJournal: "DELETE FROM journal WHERE id < ?",
	othersFrom: "SELECT min(cut_at) AS cut_at FROM log WHERE sealed_at IS NULL AND node <> ?",
	leftBehind: `SELECT * FROM log WHERE sealed_at IS NULL AND removed = 0 AND cut_at < ? AND ${IS_DEAD} LIMIT 4`,
	createLog:
		"INSERT INTO log (id, name, kind, chain, base, meta, created_at, head, bytes, node, cut_at, made, counted_for) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, ?8, ?9 - 1, ?9, ?10)",
	chainEnd: `SELECT base, head, sealed_at, (SELECT up_to FROM chain_removed WHERE chain = ?1) AS up_to
		FROM log WHERE chain = ?1 AND removed = 0 ORDER BY base DESC LIMIT 1`,
	addSegment: "INSERT INTO segment (log, first, count, records, crc) VALUES (?, ?, ?, CAST(? AS TEXT), ?)",
	cutLog: "UPDATE log SET head = max(head, ?1), bytes = bytes + ?2, sealed_at = ?3, cut_at = ?4 WHERE id = ?5",
	adopt: "UPDATE log SET node = ? WHERE id = ?",
	find: "SELECT * FROM log WHERE name = ? AND removed = 0",
	byId: "SELECT * FROM log WHERE id = ? AND removed = 0",
	owned: `SELECT *, ${IS_DEAD} AS is_left FROM log WHERE name = ? AND removed = 0 AND sealed_at IS NULL`,
	segment: "SELECT first, count, records, crc FROM segment WHERE log = ? AND first <= ? ORDER BY first DESC LIMIT 1",
	link: `SELECT * FROM log WHERE chain = ?1 AND removed = 0 AND (sealed_at IS NULL OR base + head > ?2) ORDER BY base LIMIT 1`,
	lastLink: "SELECT * FROM log WHERE chain = ? AND removed = 0 ORDER BY base DESC LIMIT 1",
	removedUpTo: "SELECT up_to FROM chain_removed WHERE chain = ?",
	list: `SELECT * FROM log WHERE removed = 0 AND (?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR chain = ?2)
		AND (?3 IS NULL OR (sealed_at IS NULL) = ?3) AND ${IS_BEFORE} ORDER BY made DESC, id DESC LIMIT ?5`,
	listLive: `SELECT *, ${IS_DEAD} AS is_left FROM log WHERE sealed_at IS NULL AND removed = 0
		AND (?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR chain = ?2) AND (?3 = 0 OR is_left)
		AND ${IS_BEFORE} ORDER BY made DESC, id DESC LIMIT ?5`,
	oldestSealed: `SELECT * FROM log WHERE sealed_at IS NOT NULL AND removed = 0 AND ${IS_OF_KINDS}
		ORDER BY sealed_at, id LIMIT 1`,
	countedSealed: "SELECT * FROM log WHERE counted_for = ? AND sealed_at IS NOT NULL AND removed = 0 LIMIT 1",
	totalBytes: "SELECT coalesce(sum(bytes), 0) AS bytes FROM log WHERE removed = 0",
	countedBytes: "SELECT coalesce(sum(bytes), 0) AS bytes FROM log WHERE counted_for = ?",
	halfRemoved: "SELECT id FROM log WHERE removed = 1 LIMIT 4",
	rememberRemoval: `INSERT INTO chain_removed SELECT chain, base + head FROM log WHERE id = ? AND chain IS NOT NULL
		ON CONFLICT (chain) DO UPDATE SET up_to = max(up_to, excluded.up_to)`,
	markRemoved: "UPDATE log SET removed = 1 WHERE id = ? AND removed = 0",
	removeSegments: "DELETE FROM segment WHERE rowid IN (SELECT rowid FROM segment WHERE log = ? LIMIT ?)",
	removeLog: "DELETE FROM log WHERE id = ?",
} as const;

export type Statements = Record<keyof typeof STATEMENTS, StatementSync>;

export const prepared = (db: DatabaseSync): Statements =>
	Object.fromEntries(Object.entries(STATEMENTS).map(([name, sql]) => [name, db.prepare(sql)])) as Statements;

/** The two values of a condition on kinds. */
export const kindColumns = (kinds: Exclude<Kinds, { countedFor: string }>): [string | null, string] =>
	"only" in kinds ? [kinds.only, "[]"] : [null, JSON.stringify(kinds.except)];
