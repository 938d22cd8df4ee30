/** `nexus doctor` on a database with damage in it: named, with what to do. */

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { doctor } from "../../src/cli/commands/doctor.ts";
import type { Terminal } from "../../src/cli/terminal.ts";
import { openStore } from "../../src/runtime/store.ts";
import { silentLog } from "../../src/std/log.ts";
import { freshFolder } from "../runtime/folder.ts";

it.each([true, false])(
	"P4.12: finds damaged runs, without being asked in a small database (--deep: %s)",
	async (deep) => {
		const data = freshFolder();
		const path = join(data, "nexus.db");
		const store = openStore(path, "process", silentLog);
		await (await store.bus.create({ log: "run_1", kind: "run" }, ["one"])).seal(["two"]);
		await store.close();
		const db = new DatabaseSync(path);
		db.exec("UPDATE segment SET records = replace(records, 'two', 'tWo')");
		db.close();
		let said = "";
		const terminal = {
			out: (text: string) => (said += text),
			paint: (_: string, text: string) => text,
		} as unknown as Terminal;
		expect(await doctor(terminal, { data, port: "0", json: true, deep })).toBe(1);
		const findings = said
			.trim()
			.split("\n")
			.map((line) => JSON.parse(line) as { check: string });
		expect(findings.find(({ check }) => check === "database")).toMatchObject({
			result: "fail",
			detail: expect.stringMatching(/run_1: records from offset 1 on are damaged/),
			todo: expect.stringMatching(/backup/),
		});
	},
);
