/** The storages that the contracts run on. Each keeps notes, too. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import { openBusDatabase, postgresStorage } from "../../packages/daemon/src/bus/postgres/postgres.ts";
import type { Storage } from "../../packages/daemon/src/bus/storage.ts";
import type { Postgres } from "../../packages/daemon/src/std/postgres/postgres.ts";
import { type Durability, openSqlite, type SqliteFile } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { Tables } from "../../packages/daemon/src/std/write.ts";
import { databaseForTest } from "../postgres.ts";
import { quiet } from "../quiet.ts";
import type { StorageUnderTest } from "./contract.ts";
import { memoryStorage } from "./memory.ts";
import { answerNotes, keepNotes, keepNotesInMemory, noteSteps } from "./notes.ts";
import { answered } from "./remove.ts";

export function inMemory(): StorageUnderTest {
	const tables = new Tables();
	let now: () => number = Date.now;
	const storage = memoryStorage(tables, () => now());
	return {
		open(clock) {
			now = clock;
			return storage;
		},
		notes: keepNotesInMemory(tables),
		dispose() {},
	};
}

/** A separate connection for each caller that opens it. */
export function inSqlite(durability: Durability): StorageUnderTest {
	const folder = mkdtempSync(join(tmpdir(), "nexus-bus-"));
	const files: SqliteFile[] = [];
	let notes: () => string[] = () => [];
	return {
		open(now) {
			const file = openSqlite(join(folder, "bus.db"), durability);
			files.push(file);
			notes = keepNotes(file);
			return sqliteStorage(file, now);
		},
		notes: () => notes(),
		dispose() {
			for (const file of files) file.close();
			rmSync(folder, { recursive: true, maxRetries: 20 });
		},
	};
}

/** A separate database, and separate connections for each caller that opens it. */
export function inPostgres(): StorageUnderTest {
	const database = databaseForTest();
	const opened: Postgres[] = [];
	return {
		open(now) {
			const inner = database.then(({ url }) => {
				const postgres = openBusDatabase({ ...quiet, url, readsMax: 1, random: Math.random });
				opened.push(postgres);
				return postgresStorage({ postgres, stepsOf: noteSteps, answer: answerNotes, log: quiet.log });
			});
			// The server has the same clock as this process.
			const setClock = async (at: number) => (now === Date.now ? undefined : (await database).setClock(at));
			return askedLater(inner, now, setClock);
		},
		async notes() {
			const rows = await (await database).query("SELECT text FROM note ORDER BY id");
			return rows.map(({ text }) => String(text));
		},
		isRemote: true,
		async dispose() {
			await Promise.all(opened.map((postgres) => postgres.close()));
			await (await database).drop();
		},
	};
}

/** Renewals, each at the time of its call: the clock of a test passes many of them in one step. */
let renewals: Promise<unknown> = Promise.resolve();

/** Every call waits until the store is there. Following begins after joining, so that it is there by then. */
function askedLater(store: Promise<Storage>, now: () => number, setClock: (at: number) => Promise<void>): Storage {
	let inner: Storage | undefined;
	const follow: Storage["follow"] = (...args) => inner!.follow(...args);
	const asking = async (name: keyof Storage, args: unknown[], at: number): Promise<unknown> => {
		inner = await store;
		await setClock(at);
		return (inner[name] as (...args: unknown[]) => unknown)(...args);
	};
	const renewing = async (args: unknown[], at: number): Promise<unknown> => {
		await renewals;
		const renewed = await asking("renew", args, at);
		await setClock(now());
		return renewed;
	};
	return new Proxy({} as Storage, {
		get(_, name: keyof Storage) {
			if (name === "follow") return follow;
			return (...args: unknown[]) => {
				if (name !== "renew") return answered(asking(name, args, now()));
				const renewed = renewing(args, now());
				renewals = renewed.catch(() => {});
				return answered(renewed);
			};
		},
	});
}
