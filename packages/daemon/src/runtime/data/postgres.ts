/** Everything that is stored, in a PostgreSQL database: the Bus, the Ledger and the rows of the services. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import { systemClock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { postgresBus, type Storage } from "../../bus/bus.ts";
import { type Ledger, ledgerAnswers, TABLES } from "../../ledger/ledger.ts";
import {
	openPostgres,
	type Postgres,
	type PostgresOptions,
	PostgresTooNew,
	postgresFailure,
	stateOf,
} from "../../std/postgres/postgres.ts";
import { type ServerFacts, serverFacts } from "../../std/postgres/server.ts";
import { migrateTables, openPostgresTables, readsOn, stepsIn } from "../../std/postgres/tables.ts";
import type { Query } from "../../std/write.ts";
import type { FileConfig } from "../config/config-schema.ts";
import { postgresServiceTables, type ServiceRows } from "./tables.ts";

/** `look` comes first. On separate connections: a statement of an old step may not be taken any more once a later one is done. */
export async function migrateDatabase(
	options: PostgresOptions,
	look?: (postgres: Postgres) => Promise<unknown>,
): Promise<void> {
	const { migrateBusDatabase, openBusDatabase } = await postgresBus();
	const postgres = openBusDatabase(options);
	try {
		await look?.(postgres);
		await migrateBusDatabase(postgres);
		await migrateTables(postgres, { ...TABLES, ...postgresServiceTables(postgres) });
	} finally {
		await postgres.close();
	}
}

export interface DatabaseParts {
	readonly postgres: Postgres;
	readonly storage: Storage;
	readonly ledger: Ledger;
	readonly rows: ServiceRows;
}

/** The database is migrated. */
export async function openDatabase(
	options: PostgresOptions,
	more: { durability?: "process" | "power"; log: Log },
): Promise<DatabaseParts> {
	const { openBusDatabase, postgresStorage } = await postgresBus();
	const postgres = openBusDatabase(options);
	const services = postgresServiceTables(postgres);
	const storage = postgresStorage({
		postgres,
		stepsOf: stepsIn({ ...TABLES, ...services }),
		answer: async <T>({ table, op, args }: Query<T>, query: Parameters<typeof readsOn>[0]) => {
			if (table !== "ledger" || op !== "sessionSnapshot") throw new TypeError(`${table} cannot answer ${op}`);
			const { turns, inbox } = TABLES;
			const answers = ledgerAnswers(readsOn<Pick<Ledger, "turns" | "inbox">>(query, { turns, inbox }));
			return (await answers.sessionSnapshot(...(args as [string, { limit: number }]))) as T;
		},
		...more,
	});
	try {
		const ledger = await openPostgresTables<Ledger>(postgres, TABLES);
		const rows = await openPostgresTables<ServiceRows>(postgres, services);
		return { postgres, storage, ledger, rows };
	} catch (cause) {
		await postgres.close();
		throw cause;
	}
}

export type PostgresSection = NonNullable<NonNullable<FileConfig["store"]>["postgres"]>;

const VERSION_MIN = 140_000;

/** `base` is the folder that files are relative to. */
export function postgresOptions(section: PostgresSection, base: string, log: Log): PostgresOptions {
	const { listenUrl, tls, pool } = section;
	const ssl = tls && {
		...(tls.ca !== undefined && { ca: readIn(base, tls.ca) }),
		rejectUnauthorized: tls.verify !== false,
	};
	return {
		url: urlOf(section, base),
		...(listenUrl !== undefined && { listenUrl }),
		...(ssl && { tls: ssl }),
		...(pool !== undefined && { readsMax: pool }),
		clock: systemClock,
		log,
		random: Math.random,
	};
}

function readIn(base: string, file: string): string {
	try {
		return readFileSync(resolve(base, file), "utf8");
	} catch (cause) {
		throw new NexusError("config", `store.postgres: ${file} cannot be read (${wordsOf(cause)})`);
	}
}

function urlOf({ url, urlFile }: PostgresSection, base: string): string {
	if ((url === undefined) === (urlFile === undefined))
		throw new NexusError("config", "store.postgres: give either `url` or `urlFile`");
	const address = url ?? readIn(base, urlFile!).trim();
	// The text may hold a password, so it is not repeated.
	if (!/^postgres(?:ql)?:$/.test(URL.parse(address)?.protocol ?? ""))
		throw new NexusError(
			"config",
			"store.postgres: the address is not one such as postgres://user:password@host/database",
		);
	return address;
}

/** For people: without the password, and without parameters, which may hold one. */
export function shownAddress(url: string): string {
	const { username, host, pathname } = new URL(url);
	return `postgres://${username === "" ? "" : `${username}@`}${host}${pathname}`;
}

/** An error that waiting does not mend, with the way out; any other failure is returned as it is. */
export function databaseError(cause: unknown, url: string): unknown {
	if (cause instanceof NexusError) return cause;
	const at = shownAddress(url);
	if (cause instanceof PostgresTooNew) return new NexusError("data_loss", `${at}: ${cause.message}`);
	const state = stateOf(cause) ?? "";
	const refused = REFUSALS.find(([prefix]) => state.startsWith(prefix));
	if (refused) return new NexusError("config", `${at}: ${refused[1]} (${wordsOf(cause)})`);
	const failure = postgresFailure(cause);
	if (failure?.message.includes("does not support SSL"))
		return new NexusError(
			"config",
			`${at}: the server has no TLS. Turn it on there, or leave out \`tls\` and \`sslmode\``,
		);
	return cause;
}

/** By the beginning of the SQLSTATE. */
const REFUSALS: readonly (readonly [state: string, todo: string])[] = [
	["28", "the server refuses the user or the password. Correct the address, or the server's pg_hba.conf"],
	["3D000", "there is no such database. Create it, for example: createdb -E UTF8 nexus"],
	["42P07", "the database has tables of another program. Create a separate one for Nexus"],
	["42723", "the database has functions of another program. Create a separate one for Nexus"],
	["42501", "the user may not create tables. Make the user the owner of the database"],
];

/** Asks the server what a start needs to know. Throws when Nexus cannot use it. */
export async function usableServer(postgres: Pick<Postgres, "reads">, url: string): Promise<ServerFacts> {
	const facts = await serverFacts(postgres);
	const { version, versionNumber, encoding } = facts;
	const refuse = (problem: string) => new NexusError("config", `${shownAddress(url)}: ${problem}`);
	if (versionNumber < VERSION_MIN) throw refuse(`PostgreSQL ${version} is too old. Use version 14 or newer`);
	if (encoding !== "UTF8")
		throw refuse(`the database has the encoding ${encoding}. Create one with: createdb -E UTF8 -T template0 nexus`);
	return facts;
}

/** For `nexus doctor`. Changes nothing. */
export async function checkDatabase(
	section: PostgresSection,
	base: string,
	log: Log,
): Promise<ServerFacts & { at: string }> {
	const options = postgresOptions(section, base, log);
	const postgres = openPostgres(options);
	try {
		return { ...(await usableServer(postgres, options.url)), at: shownAddress(options.url) };
	} catch (cause) {
		throw databaseError(cause, options.url);
	} finally {
		await postgres.close();
	}
}
