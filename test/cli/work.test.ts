/** `nexus continue`, `phase` and `log`, against a daemon with the scripted model. */

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Daemon, startDaemon } from "../../packages/daemon/src/runtime/runtime.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { removeFolder } from "../runtime/folder.ts";
import { jsonLines, run } from "./in-process.ts";

let folder: string;
let data: string;
let daemon: Daemon;

beforeAll(async () => {
	folder = mkdtempSync(join(tmpdir(), "nexus-work-"));
	data = join(folder, "data");
	const script = join(folder, "script.yaml");
	const steps = [
		{ text: "I look. ", calls: [{ name: "time", args: {} }], tokensPerSecond: 0 },
		{ text: "It is", error: { message: "the model went away" }, tokensPerSecond: 0 },
	];
	writeFileSync(script, JSON.stringify(steps));
	const options = { engine: "reason-act", reasonAct: { provider: "scripted", script, phase: "chat" } } as const;
	daemon = await startDaemon({ ...options, data, port: 0, logger: silentLog });
});

afterAll(async () => {
	await daemon.close();
	removeFolder(folder);
});

const on = (...args: string[]) => run([...args, "--data", data]);

describe("a run that failed", () => {
	it("is continued, the newest of its session when none is named; its log tells the tool once", async () => {
		const failed = await on("send", "what time is it?", "--session", "work");
		expect([failed.code, failed.out]).toEqual([8, expect.stringContaining("I look.")]);
		expect(failed.err).toMatch(/hint: `nexus continue run_\w+` continues it\n$/);
		const again = await on("continue", "--session", "work");
		expect(again.code).toBe(8);
		const log = await on("log", "work", "--json");
		const entries = jsonLines<{ kind: string; run_id: string; data?: { status?: string } }>(log.out);
		const tools = entries.filter(({ kind }) => kind === "tool").map(({ data }) => data?.status);
		expect(tools).toEqual(["started", "completed"]);
		expect(new Set(entries.map((entry) => entry.run_id)).size).toBe(2);
		const table = await on("log", "work", "--limit", "100");
		expect(table.out).toMatch(/time completed after \d+ ms/);
	});

	it("is retried, from the start", async () => {
		const failed = await on("send", "what time is it?", "--session", "retried");
		expect(failed.code).toBe(8);
		const again = await on("retry", "--session", "retried");
		expect([again.code, again.out]).toEqual([8, expect.stringContaining("I look.")]);
		const { out } = await on("runs", "--session", "retried", "--json");
		const runs = jsonLines<{ run_id: string; messages: object[] }>(out);
		expect(runs).toHaveLength(2);
		expect(runs[0]!.messages[0]).toEqual(runs[1]!.messages[0]);
		expect((await on("runs", runs[0]!.run_id)).out).toContain(`nexus retry ${runs[0]!.run_id}`);
		const none = await on("retry", "--session", "nothing-here");
		expect([none.code, none.err]).toEqual([4, expect.stringContaining("has no run to retry")]);
	});

	it("cannot be continued twice as two runs, nor when there is none", async () => {
		const { out } = await on("runs", "--session", "work", "--json");
		const [newest, oldest] = jsonLines<{ run_id: string; continues?: string }>(out);
		expect(newest!.continues).toBe(oldest!.run_id);
		expect((await on("runs", newest!.run_id)).out).toContain(`nexus continue ${newest!.run_id}`);
		expect((await on("runs", "--session", "work")).out).toContain(`(continues ${oldest!.run_id})`);
		const same = await on("continue", oldest!.run_id);
		expect(same.out).toBe((await on("replay", newest!.run_id, "--speed", "max")).out);
		const none = await on("continue", "--session", "nothing-here");
		expect([none.code, none.err]).toEqual([4, expect.stringContaining("has no run to continue")]);
	});
});

describe("nexus trust", () => {
	it("shows whether a session's history is trusted, and sets it", async () => {
		expect((await on("trust", "shared")).out).toBe("shared: the history is not trusted\n");
		expect((await on("trust", "shared", "on")).out).toBe("shared: the history is trusted\n");
		expect(JSON.parse((await on("trust", "shared", "--json")).out)).toEqual({ session: "shared", trust_history: true });
		expect((await on("log", "shared")).out).toContain("the owner trusts the history");
		expect((await on("trust", "shared", "off")).out).toBe("shared: the history is not trusted\n");
		expect((await on("trust", "shared", "maybe")).code).not.toBe(0);
	});
});

describe("nexus phase", () => {
	it("shows and sets what a session works on", async () => {
		expect((await on("phase", "fresh")).err).toContain("has no phase yet");
		const set = await on("phase", "fresh", "plan", "--because", "there is much to do");
		expect(set.out).toMatch(/^plan, since 0 s ago from chat \(there is much to do\): 0 turns, 0 completions\n$/);
		const shown = await on("phase", "fresh", "--json");
		expect(JSON.parse(shown.out)).toMatchObject({ session: "fresh", phase: { name: "plan" } });
		const refused = await on("phase", "fresh", "party");
		expect([refused.code, refused.err]).toEqual([2, expect.stringContaining("the phases are chat, ")]);
	});
});
