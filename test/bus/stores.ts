/** The storages that the contracts run on. Each keeps notes, too. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import { type Durability, openSqlite, type SqliteFile } from "../../packages/daemon/src/std/sqlite.ts";
import { Tables } from "../../packages/daemon/src/std/write.ts";
import type { StorageUnderTest } from "./contract.ts";
import { memoryStorage } from "./memory.ts";
import { keepNotes, keepNotesInMemory } from "./notes.ts";

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
