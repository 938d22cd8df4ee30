/** Notices in SQL: a row holds the records that were posted together. In a SQLite file a topic is counted inside the transaction. */

import { type Row, type SchemaStep, type SqlReader, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import { whenRead } from "../../std/write.ts";
import type { Notice, NoticeOps, NoticePage, NoticeRows } from "./rows.ts";

export const NOTICE_SCHEMA: readonly SchemaStep[] = [
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

const FORGOTTEN = "coalesce((SELECT up_to FROM notice_forgotten WHERE topic = ?1), 0)";

const SQL = {
	post: `INSERT INTO notice (topic, seq, count, at, text, counted_for, bytes)
		SELECT ?1, coalesce(max(seq), ${FORGOTTEN}) + ?4, ?4, ?2, ?3, ?5, CASE WHEN ?5 IS NULL THEN NULL ELSE octet_length(?3) END
		FROM notice WHERE topic = ?1`,
	// Forgets only from the start, so that the kept rows have no gap: the clock may have been set back between two of them.
	forgotten: `INSERT INTO notice_forgotten (topic, up_to) SELECT ?1, oldest.up_to FROM (
			SELECT max(seq) AS up_to FROM (SELECT seq FROM notice WHERE topic = ?1 AND seq < coalesce(
				(SELECT seq FROM notice WHERE topic = ?1 AND at >= ?2 ORDER BY seq LIMIT 1), 9007199254740991
			) ORDER BY seq LIMIT ?3) AS old
		) AS oldest WHERE oldest.up_to IS NOT NULL ON CONFLICT (topic) DO UPDATE SET up_to = greatest(notice_forgotten.up_to, excluded.up_to)`,
	forget: `DELETE FROM notice WHERE topic = ?1 AND seq <= ${FORGOTTEN}`,
};

export const FORGET_NOTICES = { forgotten: SQL.forgotten, forget: SQL.forget };

export const forgetSteps: StepsOf<NoticeOps>["forget"] = (_, topic, before, limit) => [
	step(SQL.forgotten, topic, before, limit),
	step(SQL.forget, topic),
];

const ops: StepsOf<NoticeOps> = {
	post: (_, topic, text, at, count, countedFor) => [step(SQL.post, topic, at, text, count, countedFor ?? null)],
	forget: forgetSteps,
};

export const noticesInSqlite: SqlTable<NoticeRows> = {
	name: "notices",
	schema: NOTICE_SCHEMA,
	sql: SQL,
	ops,
	reads: noticeReads,
};

export function noticeReads(db: SqlReader): NoticeRows {
	const newest = db.all(
		// The first of them may hold records on both sides of the place.
		`SELECT * FROM notice WHERE topic = ?1 AND seq <= coalesce(
			(SELECT seq FROM notice WHERE topic = ?1 AND seq >= ?2 ORDER BY seq LIMIT 1), ?2
		) ORDER BY seq DESC LIMIT ?3 + 1`,
		noticesOf,
	);
	const oldest = db.get("SELECT at FROM notice WHERE topic = ? ORDER BY seq LIMIT 1", ({ at }) => Number(at));
	const topics = db.all("SELECT topic FROM notice WHERE topic >= ? AND topic < ? GROUP BY topic", ({ topic }) =>
		String(topic),
	);
	return {
		read: reader(db),
		bytes: db.one("SELECT coalesce(sum(bytes), 0) AS bytes FROM notice WHERE counted_for = ?", ({ bytes }) =>
			Number(bytes),
		),
		newest: (topic, before, limit) =>
			whenRead(newest(topic, before, limit), (posts) =>
				posts
					.flat()
					.filter(({ sequence }) => sequence < before)
					.slice(0, limit),
			),
		range: db.one(
			`SELECT coalesce((SELECT max(seq) FROM notice WHERE topic = ?1), ${FORGOTTEN}) AS last,
			(SELECT seq - count + 1 FROM notice WHERE topic = ?1 ORDER BY seq LIMIT 1) AS first`,
			({ first, last }) => ({ first: first === null ? Number(last) + 1 : Number(first), last: Number(last) }),
		),
		isOlder: (topic, before) => whenRead(oldest(topic), (at) => at !== undefined && at < before),
		topics: (prefix) => topics(prefix, `${prefix}\u{10FFFF}`),
	};
}

/** Limit of one read: a reader holds this much in memory. */
const READ_CHARS_MAX = 256 * 1024;

/** An export reads all that there is: rows as arrays, and no object for each record. */
function reader(db: SqlReader): NoticeRows["read"] {
	const after = db.each("SELECT seq, count, text FROM notice WHERE topic = ? AND seq > ? ORDER BY seq LIMIT ?");
	return (topic, place, limit) => {
		let page: NoticePage | undefined;
		const read = after([topic, place, limit], (row) => {
			const [seq, count, text] = row as [number, number, string];
			if (page) {
				page.count += count;
				page.text += `\n${text}`;
			} else page = { first: seq - count + 1, count, text };
			return page.count < limit && page.text.length < READ_CHARS_MAX;
		});
		return whenRead(read, () => page);
	};
}

/** Newest first. */
function noticesOf(row: Row): Notice[] {
	const at = Number(row.at);
	const last = Number(row.seq);
	const texts = String(row.text).split("\n").reverse();
	return texts.map((text, n) => ({ sequence: last - n, at, text }));
}
