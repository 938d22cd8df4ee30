/** Notices in a SQLite file. */

import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { type AtOnce, type Row, type SqliteThing, statement } from "../thing.ts";
import type { Notice, NoticeOps, Notices } from "./port.ts";

const STEPS: readonly string[] = [
	`
	CREATE TABLE notice (
		topic TEXT NOT NULL,
		seq INTEGER NOT NULL,
		at INTEGER NOT NULL,
		text TEXT NOT NULL,
		PRIMARY KEY (topic, seq)
	) STRICT, WITHOUT ROWID;
	-- So that a topic goes on counting when all of it was forgotten.
	CREATE TABLE notice_forgotten (topic TEXT PRIMARY KEY, up_to INTEGER NOT NULL) STRICT, WITHOUT ROWID;
	`,
];

/** The last place of topic ?1 that was ever used. */
const LAST = `max(
	ifnull((SELECT max(seq) FROM notice WHERE topic = ?1), 0),
	ifnull((SELECT up_to FROM notice_forgotten WHERE topic = ?1), 0)
)`;

/** Of one read: what a reader holds in memory. */
const READ_CHARS_MAX = 512 * 1024;

export const noticesInSqlite: SqliteThing<AtOnce<Notices>> = {
	area: "notices",
	steps: STEPS,
	open(file) {
		file.things.register<NoticeOps>("notices", applier(file));
		const after = file.db.prepare("SELECT seq, at, text FROM notice WHERE topic = ? AND seq > ? ORDER BY seq LIMIT ?");
		const newest = statement(
			file,
			"SELECT seq, at, text FROM notice WHERE topic = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
		);
		const range = statement(file, `SELECT ${LAST} AS last, (SELECT min(seq) FROM notice WHERE topic = ?1) AS first`);
		const oldest = statement(file, "SELECT at FROM notice WHERE topic = ? ORDER BY seq LIMIT 1");
		const topics = statement(
			file,
			"SELECT topic FROM notice WHERE topic >= ?1 AND topic < ?1 || char(1114111) GROUP BY topic",
		);
		return {
			read(topic, place, limit) {
				const notices: Notice[] = [];
				let chars = 0;
				for (const row of after.iterate(topic, place, limit)) {
					const notice = noticeOf(row);
					notices.push(notice);
					chars += notice.text.length;
					if (chars >= READ_CHARS_MAX) break;
				}
				return notices;
			},
			newest: (topic, before, limit) => newest.all(topic, before, limit).map(noticeOf),
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

function applier(file: SqliteFile): ApplierOf<NoticeOps> {
	const post = statement(file, `INSERT INTO notice (topic, seq, at, text) SELECT ?1, ${LAST} + 1, ?2, ?3`);
	// What is kept has no hole: the clock may have been set back between two of them.
	const oldest = statement(
		file,
		`SELECT max(seq) AS up_to FROM (SELECT seq FROM notice WHERE topic = ?1 AND seq < ifnull(
			(SELECT seq FROM notice WHERE topic = ?1 AND at >= ?2 ORDER BY seq LIMIT 1), 9007199254740991
		) ORDER BY seq LIMIT ?3)`,
	);
	const forgotten = statement(file, "INSERT OR REPLACE INTO notice_forgotten (topic, up_to) VALUES (?, ?)");
	const forget = statement(file, "DELETE FROM notice WHERE topic = ? AND seq <= ?");
	return {
		post: (_, topic, text, at) => void post.run(topic, at, text),
		forget(_, topic, before, limit) {
			const upTo = oldest.get(topic, before, limit)?.up_to;
			if (upTo == null) return;
			forgotten.run(topic, Number(upTo));
			forget.run(topic, Number(upTo));
		},
	};
}

const noticeOf = (row: Row): Notice => ({ sequence: Number(row.seq), at: Number(row.at), text: String(row.text) });
