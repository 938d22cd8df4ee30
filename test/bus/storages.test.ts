import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStorage, sqliteStorage } from "../../src/bus/bus.ts";
import { openSqlite, type SqliteFile } from "../../src/std/sqlite.ts";
import { busContract } from "./contract.ts";

busContract("memory", () => {
	const storage = memoryStorage();
	return { open: () => storage, dispose() {} };
});

for (const durability of ["process", "power"] as const) {
	busContract(`SQLite, durability ${durability}`, () => {
		const folder = mkdtempSync(join(tmpdir(), "nexus-bus-"));
		const files: SqliteFile[] = [];
		return {
			open() {
				const file = openSqlite(join(folder, "bus.db"), durability);
				files.push(file);
				return sqliteStorage(file);
			},
			dispose() {
				for (const file of files) file.close();
				rmSync(folder, { recursive: true, maxRetries: 20 });
			},
		};
	});
}
