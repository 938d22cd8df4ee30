/** A PostgreSQL database as a store: its connections, and versioned migrations. Knows no Nexus word. The door of this folder. */

import type { Clock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Log } from "@nexus-stream/protocol/log";
import type { PgStatement } from "./batch.ts";
import {
	BatchConnection,
	POSTGRES_LIMITS,
	type PostgresAddress,
	type PostgresConnectionParts,
	type PostgresLimits,
} from "./connection.ts";
import { Listener } from "./listener.ts";
import { ReadPool } from "./reads.ts";

export type { PgAnswer, PgStatement, PgValue } from "./batch.ts";
export type { BatchConnection, RunBatch } from "./connection.ts";
export { BatchFailure, postgresFailure, stateOf, UNMET } from "./failure.ts";
export type { Listener } from "./listener.ts";
export type { PgQuery, PgRow, ReadPool } from "./reads.ts";

export interface PostgresOptions extends PostgresAddress {
	/** Where notifications come from, when `url` is that of a pooler. */
	readonly listenUrl?: string;
	/** Connections for reads. */
	readonly readsMax?: number;
	readonly limits?: Partial<PostgresLimits>;
	readonly clock: Clock;
	readonly log: Log;
	/** In [0, 1). */
	random(): number;
}

/** Connections are made when they are first needed, and again when they were lost. */
export interface Postgres {
	/** Durable transactions. */
	readonly commits: BatchConnection;
	/** Small changes that need no flush of their own: whatever durable transaction depends on them flushes them. */
	readonly side: BatchConnection;
	readonly reads: ReadPool;
	readonly clock: Clock;
	listener(channel: string, on: Pick<Listening, "onPayload" | "onState">): Listener;
	/** Waits for what is under way. */
	close(): Promise<void>;
}

interface Listening {
	onPayload(payload: string): void;
	onState(isSure: boolean): void;
}

const READ_CONNECTIONS = 4;

/** `statements` are parsed as soon as the connection for commits is made. */
export function openPostgres(options: PostgresOptions, statements: Iterable<string> = []): Postgres {
	const { listenUrl = options.url, readsMax = READ_CONNECTIONS, clock } = options;
	const parts: PostgresConnectionParts = { ...options, limits: withDefaults(POSTGRES_LIMITS, options.limits) };
	const unflushed = { ...parts, settings: { synchronous_commit: "off" } };
	const commits = new BatchConnection(parts, statements);
	const side = new BatchConnection(unflushed, []);
	const reads = new ReadPool(parts, readsMax);
	const listeners: Listener[] = [];
	const closing = (): Promise<unknown> =>
		Promise.all([commits.close(), side.close(), reads.close(), ...listeners.map((listener) => listener.close())]);
	let closed: Promise<unknown> | undefined;
	return {
		commits,
		side,
		reads,
		clock,
		listener(channel, on) {
			const notify = async (payload: string) => void (await side.run([notification(channel, payload)]));
			const listener = new Listener({ ...parts, url: listenUrl, channel, notify, ...on });
			listeners.push(listener);
			return listener;
		},
		async close() {
			closed ??= closing();
			await closed;
		},
	};
}

export const notification = (channel: string, payload: string): PgStatement => ({
	text: "SELECT pg_notify($1, $2)",
	values: [channel, payload],
});

/** The database was written by a newer program: using it with older rules could damage it. */
export class PostgresTooNew extends Error {
	constructor(area: string, oldest: number, known: number) {
		super(
			`the database needs a program that knows schema version ${oldest} of "${area}", this one knows up to ${known}. ` +
				"Start the newer version that changed it, or choose another database.",
		);
		this.name = "PostgresTooNew";
	}
}

const VERSIONS = [
	`CREATE TABLE IF NOT EXISTS schema_version (area text COLLATE "C" PRIMARY KEY, version bigint NOT NULL, oldest bigint NOT NULL)`,
];
const LOCK = "SELECT version, oldest FROM schema_version WHERE area = $1 FOR UPDATE";

/**
 * Brings one area of the database up to date: step n lifts it to version n + 1. All steps commit together or not at all. Steps only add, so that
 * programs of the version before can use the database at the same time; a step that they would not survive raises `oldest`.
 */
export async function migratePostgres(
	{ side }: Pick<Postgres, "side">,
	area: string,
	steps: readonly (readonly string[])[],
	oldest = 1,
): Promise<void> {
	// Not on the connection for commits: the statements that it parses at once need the tables.
	await createdOnce(side);
	await side.run([
		{ text: "INSERT INTO schema_version VALUES ($1, 0, 0) ON CONFLICT (area) DO NOTHING", values: [area] },
	]);
	await side.transaction(async (run) => {
		// The row is locked until the end: two programs that start together take turns.
		const [, locked] = await run([{ text: "BEGIN" }, { text: LOCK, values: [area] }]);
		const [found, needed] = locked!.rows[0]!.map(Number) as [number, number];
		try {
			if (needed > steps.length) throw new PostgresTooNew(area, needed, steps.length);
			for (const text of steps.slice(found).flat()) await run([{ text }]);
			const version = Math.max(found, steps.length);
			await run([
				{
					text: "UPDATE schema_version SET version = $2, oldest = greatest(oldest, $3) WHERE area = $1",
					values: [area, version, oldest],
				},
				{ text: "COMMIT" },
			]);
		} catch (cause) {
			await run([{ text: "ROLLBACK" }]).catch(() => {});
			throw cause;
		}
	});
}

/** When two programs create a table at the same moment, one of them fails because it exists, and tries again. */
async function createdOnce(side: BatchConnection): Promise<void> {
	const create = () => side.run(VERSIONS.map((text) => ({ text })));
	await create().catch(create);
}
