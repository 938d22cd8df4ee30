/** `nexus doctor` on a database with damage in it: named, with what to do. */

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { openStore } from "../../packages/daemon/src/runtime/data/store.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { freshFolder } from "../runtime/folder.ts";
import { jsonLines, run } from "./in-process.ts";

it.each([true, false])(
	"P4.12: finds damaged runs, without being asked in a small database (--deep: %s)",
	async (deep) => {
		const data = freshFolder();
		const path = join(data, "nexus.db");
		const store = await openStore(path, { durability: "process" }, silentLog);
		await (await store.bus.create({ log: "run_1", kind: "text" }, ["one"])).seal(["two"]);
		await store.close();
		const db = new DatabaseSync(path);
		db.exec("UPDATE segment SET records = replace(records, 'two', 'tWo')");
		db.close();
		const { code, out } = await run(["doctor", "--data", data, "--json", ...(deep ? ["--deep"] : [])], { cwd: data });
		expect(code).toBe(1);
		expect(jsonLines(out).find(({ check }) => check === "database")).toMatchObject({
			result: "fail",
			detail: expect.stringMatching(/run_1: records from offset 1 on are damaged/),
			todo: expect.stringMatching(/backup/),
		});
	},
);
