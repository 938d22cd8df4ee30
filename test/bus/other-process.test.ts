/** Following across processes: no notification comes from another process on the same file, so its commits are found by polling (ST22). */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { createBus, follow, sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import type { Storage } from "../../packages/daemon/src/bus/storage.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { quiet } from "../quiet.ts";

const RECORDS = 20;

it("ST22, I4: a session that another process writes is read live, and its reader asks only for its own link", async () => {
	const folder = mkdtempSync(join(tmpdir(), "nexus-bus-"));
	const path = join(folder, "bus.db");
	const file = openSqlite(path, "process");
	const inner = sqliteStorage(file);
	const asked: string[] = [];
	const storage = new Proxy(inner, {
		get(_, name: keyof Storage) {
			asked.push(name);
			return (inner[name] as (...args: unknown[]) => unknown).bind(inner);
		},
	});
	const bus = createBus({ ...quiet, storage, shared: true });
	onTestFinished(async () => {
		await bus.close();
		file.close();
		rmSync(folder, { recursive: true, maxRetries: 20 });
	});
	const cursor = await bus.cursor({ chain: "session:s" }, 0);
	const script = join(import.meta.dirname, "writing-process.ts");
	const child = spawn(process.execPath, ["--conditions=nexus-source", script, path, `${RECORDS}`], {
		stdio: ["ignore", "ignore", "inherit"],
	});
	const ended = once(child, "exit");
	const records: string[] = [];
	let batches = 0;
	for await (const batch of follow(cursor)) {
		records.push(...batch.records);
		batches++;
		if (records.at(-1) === "end") break;
	}
	expect(records).toEqual(["begin", ...Array.from({ length: RECORDS }, (_, n) => `record ${n}`), "end"]);
	expect(batches).toBeGreaterThan(1);
	expect(asked.filter((name) => name === "link" || name === "find" || name === "read").length).toBeLessThan(8);
	expect(await ended).toEqual([0, null]);
});
