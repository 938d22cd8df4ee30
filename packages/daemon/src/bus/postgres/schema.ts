/** The tables of the Bus in PostgreSQL, and every statement on them. */

import type { PgStatement, PgValue } from "../../std/postgres/postgres.ts";

export const POSTGRES_BUS_AREA = "bus";

/** Text has the order of its bytes, as in a SQLite file. Steps only add: a program of the version before can use the database at the same time. */
export const POSTGRES_BUS_STEPS: readonly (readonly string[])[] = [
	[
		// The store's time in milliseconds: what is compared between daemons is compared by it.
		`CREATE FUNCTION clock() RETURNS bigint LANGUAGE sql VOLATILE
			AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$`,
		// Fails its batch unless something was found: a batch cannot decide anything between its statements.
		`CREATE FUNCTION must(matches bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE
			AS $$ BEGIN IF matches = 0 THEN RAISE EXCEPTION 'refused' USING ERRCODE = 'NX001'; END IF; RETURN matches; END $$`,
		`CREATE TABLE node (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" NOT NULL, renewed_at bigint NOT NULL,
			since bigint NOT NULL, dead boolean NOT NULL DEFAULT false
		) WITH (fillfactor = 50)`,
		// `prev` is the commit before it, because numbers of commits that were given up are skipped. `heads` belong to `logs`.
		`CREATE TABLE journal (
			node bigint NOT NULL, n bigint NOT NULL, prev bigint NOT NULL, at bigint NOT NULL, logs bigint[] NOT NULL, heads bigint[] NOT NULL,
			created bigint[] NOT NULL, sealed text COLLATE "C", refused text COLLATE "C", entries text COLLATE "C" NOT NULL, crc bigint NOT NULL,
			PRIMARY KEY (node, n)
		) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0)`,
		// A row lives for seconds: compressing it would cost more than it saves.
		"ALTER TABLE journal ALTER entries SET STORAGE EXTERNAL",
		`CREATE TABLE chain (
			chain text COLLATE "C" PRIMARY KEY, live bigint, next bigint NOT NULL DEFAULT 0, removed bigint NOT NULL DEFAULT 0
		) WITH (fillfactor = 70)`,
		`CREATE TABLE log (
			id bigint PRIMARY KEY, name text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, chain text COLLATE "C", base bigint NOT NULL,
			meta text COLLATE "C", created_at bigint NOT NULL, sealed_at bigint, head bigint NOT NULL DEFAULT 0, bytes bigint NOT NULL DEFAULT 0,
			removed boolean NOT NULL DEFAULT false, node bigint NOT NULL, cut_n bigint NOT NULL,
			made bigint GENERATED ALWAYS AS IDENTITY, counted_for text COLLATE "C",
			CONSTRAINT log_name UNIQUE (name)
		) WITH (fillfactor = 70)`,
		"CREATE UNIQUE INDEX log_chain ON log (chain, base) WHERE chain IS NOT NULL",
		"CREATE INDEX log_made ON log (made)",
		"CREATE INDEX log_live ON log (node, id) WHERE sealed_at IS NULL",
		"CREATE INDEX log_sealed ON log (sealed_at, id) WHERE sealed_at IS NOT NULL",
		"CREATE INDEX log_removed ON log (id) WHERE removed",
		"CREATE INDEX log_counted ON log (counted_for, bytes) WHERE counted_for IS NOT NULL",
		`CREATE TABLE segment (
			log bigint NOT NULL, first bigint NOT NULL, count bigint NOT NULL, records text COLLATE "C" NOT NULL, crc bigint NOT NULL,
			PRIMARY KEY (log, first)
		)`,
		`CREATE TABLE reserved (name text COLLATE "C" PRIMARY KEY, next bigint NOT NULL)`,
	],
];

const AT = "(SELECT at FROM journal WHERE node = $1 AND n = $2)";

/** The statements of a commit. Its first one is the fence, the name of the commit and the order of the node's commits in one. */
export const COMMIT = {
	// KEY SHARE waits for those who declare the node dead, and they wait for it; a renewal and it do not wait for each other.
	journal: `WITH j AS (
			INSERT INTO journal (node, n, prev, at, logs, heads, created, sealed, entries, crc)
			SELECT node.id, $2::bigint, $3::bigint, clock(), $4::bigint[], $5::bigint[], $6::bigint[], $7::text, $8::text, $9::bigint FROM node
			WHERE node.id = $1 AND NOT node.dead
				AND ($3::bigint = 0 OR EXISTS (SELECT 1 FROM journal AS before WHERE before.node = $1 AND before.n = $3))
				AND set_config('synchronous_commit', $10::text, true) IS NOT NULL
			FOR KEY SHARE OF node
			RETURNING at
		) SELECT must(count(*)), max(at) FROM j`,
	rewrite: `UPDATE journal SET logs = $3::bigint[], heads = $4::bigint[], created = $5::bigint[], sealed = $6::text, entries = $7::text,
			crc = $8::bigint, refused = $9::text WHERE node = $1 AND n = $2`,
	create: `INSERT INTO log (id, name, kind, base, meta, created_at, node, cut_n, counted_for)
			VALUES ($3::bigint, $4::text, $5::text, 0, $6::text, ${AT}, $1, $2 - 1, $7::text) RETURNING base`,
	createLink: `WITH c AS (
			INSERT INTO chain (chain, live) VALUES ($8::text, $3::bigint)
			ON CONFLICT (chain) DO UPDATE SET live = excluded.live WHERE chain.live IS NULL RETURNING next
		), m AS (SELECT must(count(*)) AS found, max(next) AS base FROM c)
		INSERT INTO log (id, name, kind, chain, base, meta, created_at, node, cut_n, counted_for)
			SELECT $3, $4::text, $5::text, $8, base, $6::text, ${AT}, $1, $2 - 1, $7::text FROM m WHERE found > 0 RETURNING base`,
	cut: `WITH s AS (INSERT INTO segment (log, first, count, records, crc) VALUES ($2::bigint, $3::bigint, $4::bigint, $5::text, $6::bigint))
		UPDATE log SET head = greatest(head, $3 + $4 - 1), bytes = bytes + $7::bigint, cut_n = $1::bigint WHERE id = $2`,
	seal: `WITH l AS (UPDATE log SET sealed_at = ${AT}, cut_n = $2 WHERE id = $3::bigint RETURNING id, chain, base + head AS up_to)
		UPDATE chain SET live = NULL, next = greatest(next, l.up_to) FROM l WHERE chain.chain = l.chain AND chain.live = l.id`,
	begin: "BEGIN",
	savepoint: "SAVEPOINT unit",
	release: "RELEASE SAVEPOINT unit",
	undo: "ROLLBACK TO SAVEPOINT unit",
	rollback: "ROLLBACK",
	commit: "COMMIT",
	made: "SELECT at, refused FROM journal WHERE node = $1 AND n = $2",
	bases: "SELECT id, base FROM log WHERE id = ANY ($1::bigint[])",
	time: "SELECT clock()",
} as const;

/** The head of a live log covers its tail, which is in the journal of its owner. */
const HEAD = `CASE WHEN log.sealed_at IS NULL THEN greatest(log.head, coalesce((
		SELECT heads[array_position(logs, log.id)] FROM journal
		WHERE journal.node = log.node AND journal.n > log.cut_n AND logs @> ARRAY[log.id] ORDER BY journal.n DESC LIMIT 1
	), 0)) ELSE log.head END`;

const COLUMNS = "log.id, name, kind, log.chain, base, meta, created_at, sealed_at, bytes, node, cut_n, counted_for";

const IS_DEAD = "NOT EXISTS (SELECT 1 FROM node WHERE node.id = log.node AND NOT node.dead)";

const IS_OF_KINDS = "($1::text IS NULL OR kind = $1) AND kind <> ALL ($2::text[])";

const LISTED = `FROM log WHERE NOT removed AND ($1::text IS NULL OR kind = $1) AND ($2::text IS NULL OR chain = $2)
	AND ($3::text IS NULL OR made < (SELECT made FROM log WHERE name = $3))`;

const LAST_OF_NODE = "coalesce((SELECT n FROM journal WHERE journal.node = node.id ORDER BY n DESC LIMIT 1), 0)";

export const READ = {
	find: `SELECT ${COLUMNS}, ${HEAD} AS head FROM log WHERE name = $1 AND NOT removed`,
	segment: `SELECT name, first, count, records, crc FROM segment JOIN log ON log.id = segment.log
		WHERE log = $1 AND first <= $2 AND NOT removed ORDER BY first DESC LIMIT 1`,
	tail: `SELECT log.head, log.name, journal.entries, journal.crc FROM log
		JOIN journal ON journal.node = log.node AND journal.n > log.cut_n AND journal.logs @> ARRAY[log.id]
		WHERE log.id = $1 AND log.sealed_at IS NULL AND NOT removed ORDER BY journal.n`,
	link: `SELECT ${COLUMNS}, ${HEAD} AS head FROM log WHERE chain = $1 AND NOT removed AND (sealed_at IS NULL OR base + log.head > $2)
		ORDER BY base LIMIT 1`,
	chain: `SELECT c.removed AS start, l.* FROM chain AS c LEFT JOIN LATERAL (
			SELECT ${COLUMNS}, ${HEAD} AS head FROM log WHERE log.chain = c.chain AND NOT removed ORDER BY base DESC LIMIT 1
		) AS l ON true WHERE c.chain = $1`,
	list: `SELECT ${COLUMNS}, log.head ${LISTED} AND ($5::boolean IS NULL OR (sealed_at IS NULL) = $5) ORDER BY made DESC LIMIT $4`,
	listLeft: `SELECT ${COLUMNS}, log.head ${LISTED} AND sealed_at IS NULL AND ${IS_DEAD} ORDER BY made DESC LIMIT $4`,
	heads: `SELECT l.id, max(l.head) AS head FROM journal CROSS JOIN LATERAL unnest(logs, heads) AS l (id, head)
		WHERE journal.node = ANY ($1::bigint[]) AND logs && $2::bigint[] AND l.id = ANY ($2) GROUP BY l.id`,
	oldestSealed: `SELECT ${COLUMNS}, log.head FROM log WHERE sealed_at IS NOT NULL AND NOT removed AND ${IS_OF_KINDS} ORDER BY sealed_at, id LIMIT 1`,
	countedSealed: `SELECT ${COLUMNS}, log.head FROM log WHERE counted_for = $1 AND sealed_at IS NOT NULL AND NOT removed LIMIT 1`,
	totalBytes: "SELECT coalesce(sum(bytes), 0) AS bytes FROM log WHERE NOT removed",
	countedBytes: "SELECT coalesce(sum(bytes), 0) AS bytes FROM log WHERE counted_for = $1",
	nodes: `SELECT id, ${LAST_OF_NODE} AS n FROM node WHERE id <> $1`,
	// Records leave the server only when one of the wanted logs is among them.
	commits: `SELECT n, prev, at, sealed, logs::text AS logs, crc,
			CASE WHEN $3::bigint[] IS NULL OR logs && $3 THEN entries END AS entries,
			CASE WHEN cardinality(created) > 0 THEN (
				SELECT json_agg(json_build_object('id', log.id, 'name', name, 'kind', kind, 'chain', chain, 'base', base, 'meta', meta, 'created_at',
					created_at, 'sealed_at', sealed_at, 'bytes', bytes, 'counted_for', counted_for, 'head', ${HEAD}) ORDER BY made)
				FROM log WHERE log.id = ANY (journal.created) AND NOT removed
			) END AS created
		FROM journal WHERE node = $1 AND n > $2 ORDER BY n LIMIT $4`,
	entries: "SELECT entries, crc FROM journal WHERE node = $1 AND n = $2",
} as const;

const LOCKED = "SELECT id FROM node WHERE NOT dead";

/** Changes outside of commits. Those who declare a node dead wait for its commit under way: KEY SHARE conflicts with FOR UPDATE alone. */
const SIDE = {
	killAll: `WITH d AS (${LOCKED} ORDER BY id FOR UPDATE) UPDATE node SET dead = true FROM d WHERE node.id = d.id`,
	join: "INSERT INTO node (name, renewed_at, since) VALUES ($1, clock(), clock()) RETURNING id, renewed_at",
	nodes: `SELECT id, ${LAST_OF_NODE} FROM node`,
	renew: `UPDATE node SET since = CASE WHEN renewed_at < c.now - $2::bigint / 2 THEN c.now ELSE since END, renewed_at = c.now
		FROM (SELECT clock() AS now) AS c WHERE id = $1 AND NOT dead`,
	expire: `WITH d AS (
			${LOCKED} AND id <> $1 AND renewed_at <= clock() - $2::bigint
				AND (SELECT since FROM node WHERE id = $1 AND NOT dead) <= clock() - $2 ORDER BY id FOR UPDATE
		) UPDATE node SET dead = true FROM d WHERE node.id = d.id RETURNING node.id`,
	leave: `WITH d AS (${LOCKED} AND id = $1 FOR UPDATE) UPDATE node SET dead = true FROM d WHERE node.id = d.id`,
	reserve: `INSERT INTO reserved VALUES ('log', $1::bigint + 1) ON CONFLICT (name) DO UPDATE SET next = reserved.next + $1 RETURNING next - $1`,
	// A daemon without others sends no notification.
	notify: "SELECT pg_notify($1, $2) WHERE EXISTS (SELECT 1 FROM node WHERE id <> $3 AND NOT dead)",
	lock: `SELECT ${COLUMNS}, head, ${IS_DEAD} FROM log WHERE name = $1 AND NOT removed AND sealed_at IS NULL FOR UPDATE`,
	isAlive: "SELECT 1 FROM node WHERE id = $1 AND NOT dead FOR KEY SHARE",
	tail: `SELECT journal.entries, journal.crc FROM log
		JOIN journal ON journal.node = log.node AND journal.n > log.cut_n AND journal.logs @> ARRAY[log.id]
		WHERE log.name = $1 AND sealed_at IS NULL AND NOT removed ORDER BY journal.n`,
	addSegment: "INSERT INTO segment (log, first, count, records, crc) VALUES ($1, $2, $3, $4, $5)",
	adopt: `UPDATE log SET node = $2::bigint, head = $3, bytes = bytes + $4::bigint,
		cut_n = coalesce((SELECT n FROM journal WHERE journal.node = $2 ORDER BY n DESC LIMIT 1), 0) WHERE id = $1`,
	markRemoved: "UPDATE log SET removed = true WHERE id = $1 AND NOT removed",
	rememberRemoval: `UPDATE chain SET removed = greatest(chain.removed, log.base + log.head) FROM log
		WHERE log.id = $1 AND chain.chain = log.chain`,
	removeSegments: `DELETE FROM segment WHERE log = $1 AND first IN (SELECT first FROM segment WHERE log = $1 ORDER BY first LIMIT $2)`,
	removeLog: "DELETE FROM log WHERE id = $1 AND removed AND NOT EXISTS (SELECT 1 FROM segment WHERE log = $1)",
	isGone: "SELECT NOT EXISTS (SELECT 1 FROM log WHERE id = $1)",
	halfRemoved: "SELECT id FROM log WHERE removed LIMIT 4",
	// Other daemons may not have read the newest rows yet.
	removeJournal: `DELETE FROM journal WHERE node = $1 AND n IN (
			SELECT n FROM journal WHERE node = $1 AND n < $2 AND at < clock() - $3::bigint ORDER BY n LIMIT $4
		)`,
	isUntidy: "SELECT EXISTS (SELECT 1 FROM journal WHERE node = $1 AND n < $2)",
	removeDead: `DELETE FROM journal USING node WHERE journal.node = node.id AND node.dead AND node.renewed_at < clock() - $1::bigint
		AND NOT EXISTS (SELECT 1 FROM log WHERE log.node = node.id AND sealed_at IS NULL)`,
	forgetDead: `DELETE FROM node WHERE dead AND renewed_at < clock() - $1::bigint
		AND NOT EXISTS (SELECT 1 FROM log WHERE log.node = node.id AND sealed_at IS NULL)
		AND NOT EXISTS (SELECT 1 FROM journal WHERE journal.node = node.id)`,
} as const;

export const side = (name: keyof typeof SIDE, ...values: PgValue[]): PgStatement => ({ text: SIDE[name], values });

/** The columns of `lock`, in order: a batch has rows without names. */
export const LOCK_COLUMNS = [
	"id",
	"name",
	"kind",
	"chain",
	"base",
	"meta",
	"created_at",
	"sealed_at",
	"bytes",
	"node",
	"cut_n",
	"counted_for",
	"head",
	"is_left",
] as const;
