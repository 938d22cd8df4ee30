/** One connection to PostgreSQL that comes back after it was lost, with its statements parsed. It runs one batch after another. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { type Backoff, backoffMs, jittered, sleep } from "@nexus-stream/protocol/retry";
import type { Client, ClientConfig, CustomTypesConfig } from "pg";
import { loadOnce } from "../load-once.ts";
import { type PgAnswer, type PgStatement, Preparation, StatementBatch } from "./batch.ts";
import { BatchFailure, isLost } from "./failure.ts";

export interface PostgresLimits {
	/** How long a connection may take to be made, and an answer to come, before the connection counts as lost. */
	connectMsMax: number;
	answerMsMax: number;
	/** The server ends a statement, and a wait for a lock, after so long. */
	statementMsMax: number;
	lockMsMax: number;
	/** The waits between attempts to connect. */
	reconnect: Backoff;
}

export const POSTGRES_LIMITS: PostgresLimits = {
	connectMsMax: 5000,
	answerMsMax: 15_000,
	statementMsMax: 10_000,
	lockMsMax: 5000,
	reconnect: { firstMs: 50, maxMs: 2000 },
};

/** Where the server is, and how it is reached. */
export interface PostgresAddress {
	/** `postgres://user:password@host/database`; its parameter `sslmode` is honoured. */
	readonly url: string;
	readonly tls?: ClientConfig["ssl"];
}

export interface PostgresConnectionParts extends PostgresAddress {
	readonly limits: PostgresLimits;
	readonly clock: Clock;
	readonly log: Log;
	/** In [0, 1). */
	random(): number;
	/** Settings of the session, for example `synchronous_commit`. */
	readonly settings?: Readonly<Record<string, string>>;
	/** pg writes one query after the other without waiting for answers. Such a connection takes no batches. */
	readonly pipeline?: boolean;
}

const KEEP_ALIVE_MS = 10_000;
const INT8 = 20;
const NUMERIC = 1700;

const load = loadOnce(() => import("pg"));

/** Connects once. Integers of any size are numbers: none here is above 2^53. */
export async function connected(parts: PostgresConnectionParts, onLost: (cause: unknown) => void): Promise<Client> {
	const { url, tls, limits, settings = {}, pipeline = false } = parts;
	const { Client: PgClient, types } = (await load()).default;
	const getTypeParser = ((oid: number, format: "text") =>
		oid === INT8 || oid === NUMERIC ? Number : types.getTypeParser(oid, format)) as CustomTypesConfig["getTypeParser"];
	const client = new PgClient({
		connectionString: url,
		...(tls !== undefined && { ssl: tls }),
		keepAlive: true,
		keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
		connectionTimeoutMillis: limits.connectMsMax,
		statement_timeout: limits.statementMsMax,
		lock_timeout: limits.lockMsMax,
		idle_in_transaction_session_timeout: limits.statementMsMax,
		application_name: "nexus",
		options: Object.entries(settings)
			.map(([name, value]) => `-c ${name}=${value}`)
			.join(" "),
		types: { getTypeParser },
		pipeline,
	});
	// Without a listener the loss of an idle connection would end the process.
	client.on("error", onLost);
	client.on("end", () => onLost(new Error("Connection terminated")));
	try {
		await client.connect();
	} catch (cause) {
		void client.end().catch(() => {});
		throw cause;
	}
	return client;
}

/** Ends the connection without a farewell: whatever is under way fails. */
export const destroyed = (client: Client): void => void client.connection.stream.destroy();

/** Makes a connection when it is needed, and again when it was lost. */
export class Reconnecting<T> {
	readonly #parts: Pick<PostgresConnectionParts, "limits" | "clock" | "random">;
	readonly #make: (onLost: () => void) => Promise<T>;
	#made: Promise<T> | undefined;
	#failures = 0;

	constructor(
		parts: Pick<PostgresConnectionParts, "limits" | "clock" | "random">,
		make: (onLost: () => void) => Promise<T>,
	) {
		this.#parts = parts;
		this.#make = make;
	}

	/** The connection, if there is one or it is being made. */
	get current(): Promise<T> | undefined {
		return this.#made;
	}

	/** One attempt for all who ask meanwhile. After a failure it begins later, so that a server that is down is not asked all the time. */
	get(): Promise<T> {
		if (this.#made) return this.#made;
		const made = this.#attempt(() => this.#forget(made));
		this.#made = made;
		made.then(
			() => {
				this.#failures = 0;
			},
			() => {
				this.#failures++;
				this.#forget(made);
			},
		);
		return made;
	}

	async #attempt(onLost: () => void): Promise<T> {
		const { limits, clock, random } = this.#parts;
		if (this.#failures > 0)
			await sleep(clock, jittered(backoffMs(limits.reconnect, this.#failures - 1), random()), undefined, "due");
		return this.#make(onLost);
	}

	#forget(made: Promise<T>): void {
		if (this.#made === made) this.#made = undefined;
	}
}

interface OpenSession {
	client: Client;
	/** The names under which statements are parsed, by their text. */
	names: Map<string, string>;
	/** The next batch gets another connection. */
	lose(): void;
}

/** Statements in one transaction of more than one round trip. */
export type RunBatch = (statements: readonly PgStatement[]) => Promise<PgAnswer[]>;

export class BatchConnection {
	readonly #parts: PostgresConnectionParts;
	readonly #open: Reconnecting<OpenSession>;
	/** All statements that were ever parsed: a new connection parses them at once. */
	readonly #known: Set<string>;
	#last: Promise<unknown> = Promise.resolve();
	#isClosed = false;

	/** `statements` are parsed as soon as the connection is made. */
	constructor(parts: PostgresConnectionParts, statements: Iterable<string>) {
		this.#parts = parts;
		this.#known = new Set(statements);
		this.#open = new Reconnecting(parts, (onLost) => this.#connect(onLost));
	}

	async #connect(onLost: () => void): Promise<OpenSession> {
		const client = await connected(this.#parts, onLost);
		const lose = () => {
			onLost();
			destroyed(client);
		};
		const session = { client, names: new Map<string, string>(), lose };
		await this.#prepare(session, this.#known);
		return session;
	}

	/** A failure ends the connection: it is not known which of the names are taken. */
	async #prepare(session: OpenSession, texts: Iterable<string>): Promise<void> {
		const { names } = session;
		const missing = new Map<string, string>();
		for (const text of texts)
			if (!names.has(text) && !missing.has(text)) missing.set(text, `s${names.size + missing.size}`);
		if (missing.size === 0) return;
		try {
			await this.#inTime(session, new Preparation(missing));
		} catch (cause) {
			session.lose();
			throw cause;
		}
		for (const [text, name] of missing) {
			names.set(text, name);
			this.#known.add(text);
		}
	}

	async #inTime({ client, lose }: OpenSession, batch: StatementBatch | Preparation): Promise<PgAnswer[]> {
		const { clock, limits } = this.#parts;
		// A connection that is half open says nothing: without this limit it would be waited for until the system gives it up.
		const cancel = clock.after(limits.answerMsMax, lose);
		client.query(batch);
		try {
			return await batch.done;
		} catch (cause) {
			// The server says that it ends the connection before it does.
			if (cause instanceof BatchFailure && isLost(cause.cause)) lose();
			throw cause;
		} finally {
			cancel();
		}
	}

	/** One batch is one transaction. Rejects with `BatchFailure`. */
	run(statements: readonly PgStatement[]): Promise<PgAnswer[]> {
		return this.transaction((run) => run(statements));
	}

	/** Several batches in a row with nothing else between them; the first opens and the last ends the transaction. */
	transaction<T>(work: (run: RunBatch) => Promise<T>): Promise<T> {
		const result = this.#last.then(() => this.#session()).then((session) => work((batch) => this.#run(session, batch)));
		this.#last = result.catch(() => {});
		return result;
	}

	async #session(): Promise<OpenSession> {
		if (this.#isClosed) throw new BatchFailure(new Error("Client was closed"), 0, false);
		return this.#open.get().catch((cause: unknown) => {
			throw cause instanceof BatchFailure ? cause : new BatchFailure(cause, 0, false);
		});
	}

	async #run(session: OpenSession, statements: readonly PgStatement[]): Promise<PgAnswer[]> {
		try {
			await this.#prepare(
				session,
				statements.map(({ text }) => text),
			);
		} catch (cause) {
			throw new BatchFailure(cause, 0, false);
		}
		return this.#inTime(session, new StatementBatch(statements, (text) => session.names.get(text)!));
	}

	/** Waits for what is under way. */
	async close(): Promise<void> {
		this.#isClosed = true;
		await this.#last;
		const session = await this.#open.current?.catch(() => undefined);
		await session?.client.end();
	}
}
