/** Databases on the PostgreSQL server of the run: each test gets one for itself, copied from one that is migrated. */

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { migrateDatabase } from "../packages/daemon/src/runtime/data/postgres.ts";
import { asked, DOOR, MAKE, MISSING, urlIn } from "./postgres-server.ts";
import { quiet } from "./quiet.ts";

const TEMPLATE = "nexus_template";

const clockFile = (folder: string, database: string): string => join(folder, `clock-${database}`);

/** Migrated, with a table of notes, and with a clock that a test can set. */
export async function addTemplate(folder: string): Promise<void> {
	const url = (database: string) => urlIn(folder, database);
	await asked(url("postgres"), `CREATE DATABASE ${TEMPLATE}`);
	await migrateDatabase({ ...quiet, url: url(TEMPLATE), random: Math.random });
	await asked(
		url(TEMPLATE),
		`CREATE OR REPLACE FUNCTION clock() RETURNS bigint LANGUAGE sql VOLATILE AS $$
			SELECT coalesce(pg_read_file('${clockFile(folder, "")}' || current_database(), 0, 20, true)::bigint,
				(extract(epoch FROM clock_timestamp()) * 1000)::bigint) $$`,
		`CREATE TABLE note (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text COLLATE "C" NOT NULL UNIQUE)`,
	);
}

let asking: Promise<string> | undefined;

async function serverFolder(): Promise<string> {
	const path = process.env[DOOR];
	if (path === undefined) throw new Error(MISSING);
	const socket = createConnection(path).setEncoding("utf8");
	const [answer] = (await once(socket, "data")) as [string];
	if (answer.startsWith("failed: ")) throw new Error(answer);
	const isFirst = answer.startsWith(MAKE);
	const folder = isFirst ? answer.slice(MAKE.length) : answer;
	try {
		if (isFirst) await addTemplate(folder);
		if (isFirst) socket.write("made");
	} finally {
		socket.end();
	}
	return folder;
}

export interface TestDatabase {
	url: string;
	/** Asks on a separate connection. */
	query(text: string): Promise<Record<string, unknown>[]>;
	/** Sets the clock of the database. */
	setClock(now: number): void;
	/** Makes it as good as new for the next test. */
	drop(): Promise<void>;
}

/** Databases that were used and emptied: that takes less time than another copy. */
const emptied: TestDatabase[] = [];

/** In any order, whatever refers to what. Counters begin again, too. */
const EMPTY = `DO $$ DECLARE name text; BEGIN
	PERFORM set_config('session_replication_role', 'replica', true);
	FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_version' LOOP
		EXECUTE 'DELETE FROM ' || quote_ident(name);
	END LOOP;
	PERFORM setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S';
END $$`;

/** A database like the template. */
export async function databaseForTest(): Promise<TestDatabase> {
	asking ??= serverFolder();
	const folder = await asking;
	const used = emptied.pop();
	if (used) return used;
	const name = `t_${randomUUID().replaceAll("-", "")}`;
	await asked(urlIn(folder, "postgres"), `CREATE DATABASE ${name} TEMPLATE ${TEMPLATE}`);
	const url = urlIn(folder, name);
	const client = new pg.Client({ connectionString: url });
	// The server ends before this process does.
	client.on("error", () => {});
	await client.connect();
	(client.connection.stream as Socket).unref();
	const query: TestDatabase["query"] = async (text) => (await client.query<Record<string, unknown>>(text)).rows;
	const file = clockFile(folder, name);
	let last: number | undefined;
	const database: TestDatabase = {
		url,
		query,
		setClock(now) {
			if (now === last) return;
			last = now;
			writeFileSync(`${file}.new`, String(now));
			renameSync(`${file}.new`, file);
		},
		async drop() {
			last = undefined;
			rmSync(file, { force: true });
			await query(EMPTY);
			emptied.push(database);
		},
	};
	return database;
}
