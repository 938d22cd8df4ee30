/**
 * Notices in PostgreSQL. A count inside of a commit would make all daemons wait for one another, so a commit adds rows without a number, and
 * who reads numbers them first: densely, and a notice that was committed before another one was begun comes before it.
 */

import type { Postgres } from "../../std/postgres/postgres.ts";
import { type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import type { NoticeOps, NoticeRows } from "./rows.ts";
import { FORGET_NOTICES, forgetSteps, NOTICE_SCHEMA, noticeReads } from "./rows-sqlite.ts";

const NEW_ROWS: SchemaStep = `
	CREATE TABLE notice_new (
		id INTEGER PRIMARY KEY,
		topic TEXT NOT NULL,
		count INTEGER NOT NULL,
		at INTEGER NOT NULL,
		text TEXT NOT NULL,
		counted_for TEXT
	);
`;

const SQL = {
	post: "INSERT INTO notice_new (topic, count, at, text, counted_for) VALUES (?1, ?2, ?3, ?4, ?5)",
	...FORGET_NOTICES,
};

const ops: StepsOf<NoticeOps> = {
	post: (_, topic, text, at, count, countedFor) => [step(SQL.post, topic, count, at, text, countedFor ?? null)],
	forget: forgetSteps,
};

const HAS_NEW = "SELECT 1 FROM notice_new LIMIT 1";

/** The order of ids is that of commits of which one was answered before the other was begun. Flushed: a number that was read stays. */
const NUMBERING = [
	"SELECT set_config('synchronous_commit', 'on', true)",
	// One numbers at a time.
	"SELECT version FROM schema_version WHERE area = 'notices' FOR UPDATE",
	`WITH taken AS (DELETE FROM notice_new RETURNING id, topic, count, at, text, counted_for)
	INSERT INTO notice (topic, seq, count, at, text, counted_for, bytes)
	SELECT topic, coalesce(
			(SELECT max(seq) FROM notice WHERE notice.topic = taken.topic),
			(SELECT up_to FROM notice_forgotten WHERE notice_forgotten.topic = taken.topic), 0
		) + sum(count) OVER (PARTITION BY topic ORDER BY id), count, at, text, counted_for,
		CASE WHEN counted_for IS NULL THEN NULL ELSE octet_length(text) END
	FROM taken`,
].map((text) => ({ text }));

/** Numbers what was committed before the call. Calls that come meanwhile share the next one. */
function numberingOf({ reads, side }: Pick<Postgres, "reads" | "side">): () => Promise<void> {
	let current: Promise<void> = Promise.resolve();
	let next: Promise<void> | undefined;
	const number = async () => {
		if (await reads.get(HAS_NEW)) await side.run(NUMBERING);
	};
	const begin = () => {
		current = next!;
		next = undefined;
		return number();
	};
	return () => {
		next ??= current.then(begin, begin);
		return next;
	};
}

export const noticesInPostgres = (postgres: Pick<Postgres, "reads" | "side">): SqlTable<NoticeRows> => ({
	name: "notices",
	schema: [...NOTICE_SCHEMA, NEW_ROWS],
	sql: SQL,
	ops,
	reads(db) {
		const numbered = numberingOf(postgres);
		const reads = noticeReads(db);
		const after =
			<Args extends unknown[], T>(read: (...args: Args) => T) =>
			async (...args: Args): Promise<Awaited<T>> => {
				await numbered();
				return await read(...args);
			};
		return {
			read: after(reads.read),
			newest: after(reads.newest),
			range: after(reads.range),
			isOlder: after(reads.isOlder),
			topics: after(reads.topics),
			bytes: after(reads.bytes),
		};
	},
});
