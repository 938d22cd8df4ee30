/** Notices in a SQLite file: a row holds the records that were posted together. */

import { type AtOnce, type Row, type SqliteTable, statement } from "../../ledger/table.ts";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import type { Notice, NoticeOps, NoticePage, NoticeRows } from "./rows.ts";

const STEPS: readonly string[] = [
	`
	-- text: "count" records, joined by line feeds; the last of them is at the place "seq".
	CREATE TABLE notice (
		topic TEXT NOT NULL,
		seq INTEGER NOT NULL,
		count INTEGER NOT NULL,
		at INTEGER NOT NULL,
		text TEXT NOT NULL,
		PRIMARY KEY (topic, seq)
	) STRICT, WITHOUT ROWID;
	-- Lets a topic keep counting after all of its rows were forgotten.
	CREATE TABLE notice_forgotten (topic TEXT PRIMARY KEY, up_to INTEGER NOT NULL) STRICT, WITHOUT ROWID;
	`,
	`
	ALTER TABLE notice ADD COLUMN counted_for TEXT;
	-- Only of what counts for one.
	ALTER TABLE notice ADD COLUMN bytes INTEGER;
	CREATE INDEX notice_counted ON notice (counted_for, bytes) WHERE counted_for IS NOT NULL;
	`,
];

const FORGOTTEN = "ifnull((SELECT up_to FROM notice_forgotten WHERE topic = ?1), 0)";

/** Limit of one read: a reader holds this much in memory. */
const READ_CHARS_MAX = 256 * 1024;

export const noticesInSqlite: SqliteTable<AtOnce<NoticeRows>> = {
	area: "notices",
	steps: STEPS,
	open(file) {
		file.tables.register<NoticeOps>("notices", applier(file));
		const newest = statement(
			file,
			// The first of them may hold records on both sides of the place.
			`SELECT * FROM notice WHERE topic = ?1 AND seq <= ifnull(
				(SELECT seq FROM notice WHERE topic = ?1 AND seq >= ?2 ORDER BY seq LIMIT 1), ?2
			) ORDER BY seq DESC LIMIT ?3 + 1`,
		);
		const range = statement(
			file,
			`SELECT ifnull((SELECT max(seq) FROM notice WHERE topic = ?1), ${FORGOTTEN}) AS last,
			(SELECT seq - count + 1 FROM notice WHERE topic = ?1 ORDER BY seq LIMIT 1) AS first`,
		);
		const oldest = statement(file, "SELECT at FROM notice WHERE topic = ? ORDER BY seq LIMIT 1");
		const topics = statement(
			file,
			"SELECT topic FROM notice WHERE topic >= ?1 AND topic < ?1 || char(1114111) GROUP BY topic",
		);
		const bytes = statement(file, "SELECT ifnull(sum(bytes), 0) AS bytes FROM notice WHERE counted_for = ?");
		return {
			read: reader(file),
			bytes: (countedFor) => Number(bytes.get(countedFor)!.bytes),
			newest(topic, before, limit) {
				const notices = newest.all(topic, before, limit).flatMap(noticesOf);
				return notices.filter(({ sequence }) => sequence < before).slice(0, limit);
			},
			range(topic) {
				const row = range.get(topic)!;
				const last = Number(row.last);
				return { first: row.first === null ? last + 1 : Number(row.first), last };
			},
			isOlder(topic, before) {
				const row = oldest.get(topic);
				return row !== undefined && Number(row.at) < before;
			},
			topics: (prefix) => topics.all(prefix).map(({ topic }) => String(topic)),
		};
	},
};

/** An export reads all that there is: rows as arrays, and no object for each record. */
function reader({ db }: SqliteFile): AtOnce<NoticeRows>["read"] {
	const after = db.prepare("SELECT seq, count, text FROM notice WHERE topic = ? AND seq > ? ORDER BY seq LIMIT ?");
	after.setReturnArrays(true);
	return (topic, place, limit) => {
		let page: NoticePage | undefined;
		for (const row of after.iterate(topic, place, limit)) {
			const [seq, count, text] = row as unknown as [number, number, string];
			if (page) {
				page.count += count;
				page.text += `\n${text}`;
			} else page = { first: seq - count + 1, count, text };
			if (page.count >= limit || page.text.length >= READ_CHARS_MAX) break;
		}
		return page;
	};
}

function applier(file: SqliteFile): ApplierOf<NoticeOps> {
	const post = statement(
		file,
		`INSERT INTO notice (topic, seq, count, at, text, counted_for, bytes)
		SELECT ?1, ifnull(max(seq), ${FORGOTTEN}) + ?4, ?4, ?2, ?3, ?5, iif(?5 IS NULL, NULL, octet_length(?3))
		FROM notice WHERE topic = ?1`,
	);
	// Forgets only from the start, so that the kept rows have no gap: the clock may have been set back between two of them.
	const oldest = statement(
		file,
		`SELECT max(seq) AS up_to FROM (SELECT seq FROM notice WHERE topic = ?1 AND seq < ifnull(
			(SELECT seq FROM notice WHERE topic = ?1 AND at >= ?2 ORDER BY seq LIMIT 1), 9007199254740991
		) ORDER BY seq LIMIT ?3)`,
	);
	const forgotten = statement(file, "INSERT OR REPLACE INTO notice_forgotten (topic, up_to) VALUES (?, ?)");
	const forget = statement(file, "DELETE FROM notice WHERE topic = ? AND seq <= ?");
	return {
		post: (_, topic, text, at, count, countedFor) => void post.run(topic, at, text, count, countedFor ?? null),
		forget(_, topic, before, limit) {
			const upTo = oldest.get(topic, before, limit)?.up_to;
			if (upTo == null) return;
			forgotten.run(topic, Number(upTo));
			forget.run(topic, Number(upTo));
		},
	};
}

/** Newest first. */
function noticesOf(row: Row): Notice[] {
	const at = Number(row.at);
	const last = Number(row.seq);
	const texts = String(row.text).split("\n").reverse();
	return texts.map((text, n) => ({ sequence: last - n, at, text }));
}
