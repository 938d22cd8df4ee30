/** The life of the channel lab's process: started by use, stopped by disuse, replaced when it dies. */

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { createBus, sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import { createLab } from "../../packages/daemon/src/runtime/lab/lab.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { systemClock } from "../../packages/protocol/src/clock.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { manualClock } from "../clock.ts";
import { isAlive } from "../engine/mcp/rig.ts";
import { linesOf } from "../lines.ts";
import { beginRun } from "../nex/outbound/rig.ts";
import { quiet } from "../quiet.ts";
import { until } from "../until.ts";
import { freshFolder } from "./folder.ts";

const UNUSED_MS = 10 * 60_000;

/** A host without platforms: only its process matters here. */
const HOST = `
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
appendFileSync(new URL("pids", import.meta.url), process.pid + "\\n");
const server = createServer((_, response) => response.end('{"channels":{}}'));
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ channels: {}, url: "http://127.0.0.1:" + server.address().port })));
process.stdin.resume().once("end", () => process.exit(0));
`;

function labWith(program: string) {
	const dir = freshFolder();
	const host = join(dir, "host.mjs");
	writeFileSync(host, program);
	const file = openSqlite(join(dir, "nexus.db"), "process");
	const clock = manualClock(1_000_000);
	const bus = createBus({ ...quiet, storage: sqliteStorage(file) });
	const receive = () => Promise.reject(new Error("nothing is sent here"));
	const lab = createLab({ bus, receive, dataDir: dir, clock, log: silentLog, host });
	onTestFinished(async () => {
		await lab.close();
		await bus.close();
		file.close();
	});
	const pids = () => linesOf(join(dir, "pids")).map(Number);
	return { lab, clock, host, pids, dir };
}

it("I7: forgets what adapters noted of earlier fakes, whose ids come again", async () => {
	const { lab, dir } = labWith(HOST);
	const folder = join(dir, "lab", "adapters", "sms", "lab");
	mkdirSync(folder, { recursive: true });
	const notes = ["state.json", "state.json.sent"].map((name) => join(folder, name));
	for (const file of notes) writeFileSync(file, "{}");
	await lab.state();
	expect(notes.filter((file) => existsSync(file))).toEqual([]);
});

it("starts with the first use, stops after ten minutes without one, and starts again", async () => {
	const { lab, clock, pids } = labWith(HOST);
	expect(pids()).toEqual([]);
	expect(await lab.state()).toEqual({ now: 1_000_000, questionOpen: false, channels: [] });
	const [first = 0] = pids();
	clock.advance(UNUSED_MS - 1);
	await lab.state();
	clock.advance(UNUSED_MS - 1);
	expect(isAlive(first)).toBe(true);
	clock.advance(1);
	await vi.waitFor(() => expect(isAlive(first)).toBe(false), { timeout: 30_000 });
	expect(pids()).toEqual([first]);
	await lab.state();
	expect(pids()).toHaveLength(2);
	await lab.close();
	await vi.waitFor(() => expect(pids().filter(isAlive)).toEqual([]), { timeout: 30_000 });
});

it("is replaced when its process dies", async () => {
	const { lab, pids } = labWith(HOST);
	await lab.state();
	process.kill(pids()[0]!, "SIGKILL");
	// Asked while it dies it says so; then there is a new one.
	await vi.waitFor(
		async () => {
			await lab.state();
			expect(pids()).toHaveLength(2);
		},
		{ timeout: 30_000 },
	);
	expect(await lab.state()).toMatchObject({ channels: [] });
});

it("says why it cannot start, and tries again at the next use", async () => {
	const { lab, host } = labWith("process.exit(3);");
	await expect(lab.state()).rejects.toMatchObject({
		code: "unavailable",
		message: "the channel lab did not start: its process ended with 3",
	});
	writeFileSync(host, HOST);
	expect(await lab.state()).toMatchObject({ channels: [] });
});

/** A platform whose sign of typing never goes out, as one that shows it for a while after the last call. */
function keepTyping(): void {
	const { fetch } = globalThis;
	const asked = vi.spyOn(globalThis, "fetch").mockImplementation(async (...args) => {
		const answer = await fetch(...args);
		if (!answer.url.endsWith("/state")) return answer;
		const state = (await answer.json()) as { channels: Record<string, object> };
		for (const shown of Object.values(state.channels)) Object.assign(shown, { typing: true });
		return Response.json(state);
	});
	onTestFinished(() => asked.mockRestore());
}

/** With the real platforms; every message is answered by one run, which the test plays. */
async function realLab() {
	const dataDir = freshFolder();
	const file = openSqlite(join(dataDir, "nexus.db"), "process");
	const bus = createBus({ ...quiet, storage: sqliteStorage(file) });
	const run = await beginRun(bus);
	const receive = async () => ({ eventId: "evt", runId: run.runId, disposition: { state: "started" } }) as never;
	const lab = createLab({ bus, receive, dataDir, clock: systemClock, log: silentLog });
	onTestFinished(async () => {
		await lab.close();
		await bus.close();
		file.close();
	});
	return { lab, run };
}

it("typing ends with the answer, however long a platform shows its sign", async () => {
	const { lab, run } = await realLab();
	keepTyping();
	await lab.send("Hi", ["telegram"]);
	const shown = async () => (await lab.state()).channels.find(({ channel }) => channel === "telegram")!;
	expect(await shown()).toMatchObject({ typing: true, delivery: { state: "active" } });
	run.text("Hello.");
	await run.end();
	await until("it is delivered", async () => (await shown()).delivery?.state !== "active");
	expect(await shown()).toMatchObject({
		typing: false,
		delivery: { state: "complete" },
		messages: [{ text: "Hello." }],
	});
});

it("A14: a question has buttons where a platform has them; the first press decides it everywhere", async () => {
	const { lab } = await realLab();
	await lab.ask("Run it?", ["telegram", "sms"]);
	const shown = async (channel: string) =>
		(await lab.state()).channels.find((row) => row.channel === channel)?.messages.at(-1);
	await until("it is asked", async () => (await shown("telegram"))?.buttons?.join() === "Approve,Deny");
	await until("it is asked in words", async () => (await shown("sms"))?.text.includes("Reply approve") === true);
	const { id = "" } = (await shown("telegram")) ?? {};
	// A page that shows it has to look again: no button was pressed.
	expect((await lab.state()).questionOpen).toBe(true);
	await lab.press("telegram", id, "Deny");
	for (const channel of ["telegram", "sms"])
		await until("it is decided", async () => (await shown(channel))?.text === "Denied by Ann on telegram.");
	expect((await shown("telegram"))?.buttons).toBeUndefined();
	await until("nothing of it is under way", async () => !(await lab.state()).questionOpen);
	await expect(lab.press("telegram", id, "Deny")).rejects.toMatchObject({ code: "not_found" });
});
