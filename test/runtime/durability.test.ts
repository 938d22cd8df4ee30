/** The effect of `durability` on the database, which only the connection itself shows. */

import { expect, it, vi } from "vitest";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { daemonForTest } from "./daemon.ts";

vi.mock("../../packages/daemon/src/std/sqlite/sqlite.ts", async (original) => {
	const actual = await original<typeof import("../../packages/daemon/src/std/sqlite/sqlite.ts")>();
	return { ...actual, openSqlite: vi.fn(actual.openSqlite) };
});

// https://sqlite.org/pragma.html#pragma_synchronous
it.each(["process", "power"] as const)("I1: durability %s; no commit syncs on the main thread", async (durability) => {
	vi.mocked(openSqlite).mockClear();
	await daemonForTest({ durability });
	const [opened] = vi.mocked(openSqlite).mock.results;
	const file = opened!.value as ReturnType<typeof openSqlite>;
	const pragma = (name: string) => file.db.prepare(`PRAGMA ${name}`).get();
	expect({ ...pragma("journal_mode"), ...pragma("synchronous") }).toEqual({ journal_mode: "wal", synchronous: 1 });
	expect(file.sync !== undefined).toBe(durability === "power");
});
