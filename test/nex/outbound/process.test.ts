/** One adapter process at its limits: a flood on stderr, an exit that is always reported, webhooks without an answer. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { InboundMessage } from "../../../packages/adapter/src/port.ts";
import { SEND_SHAPES } from "../../../packages/adapter/src/shapes.ts";
import { type Exit, startProcess } from "../../../packages/daemon/src/nex/accounts/line-process.ts";
import { PROCESS_LIMITS } from "../../../packages/daemon/src/nex/limits.ts";
import { type Log, silentLog } from "../../../packages/protocol/src/log.ts";
import { manualClock } from "../../clock.ts";
import { common, monitorOf, node, supervisorOf } from "./process-kit.ts";

/** Runs a program to its end. */
const ended = (program: string, log: Log) => {
	const { promise, resolve } = Promise.withResolvers<Exit>();
	startProcess(
		{ ...common, command: node(program), clock: manualClock(), log, facts: { account: "a" } },
		{ lines() {}, garbage() {}, exited: resolve },
	);
	return promise;
};

it("I11: a flood on stderr is counted instead of copied, also when the process ends with it", async () => {
	const copied: object[] = [];
	const warned: object[] = [];
	const log = {
		...silentLog,
		info: (facts: object) => void copied.push(facts),
		warn: (facts: object) => void warned.push(facts),
	};
	await ended(`require("node:fs").writeSync(2, "line\\n".repeat(200))`, log);
	expect(copied).toHaveLength(PROCESS_LIMITS.stderrLinesPerSecondMax);
	expect(warned).toEqual([{ account: "a", lines: 150 }]);
});

it("a line on stderr keeps its level, its words and its facts; one without is logged as it is", async () => {
	const told: [level: string, facts: object, words: string][] = [];
	const at = (level: string) => (facts: object, words: string) => void told.push([level, facts, words]);
	const log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
	const lines = [
		{ level: "debug", msg: "typing was not shown", to: "42", account: "not mine", time: 7 },
		{ level: "error", msg: "the token is refused" },
		{ level: "shout", msg: "no such level" },
		"null",
		"plain words",
	].map((line) => (typeof line === "string" ? line : JSON.stringify(line)));
	await ended(`require("node:fs").writeSync(2, ${JSON.stringify(lines.join("\n"))})`, log);
	expect(told).toEqual([
		["debug", { to: "42", account: "a" }, "adapter: typing was not shown"],
		["error", { account: "a" }, "adapter: the token is refused"],
		["info", { account: "a", stderr: lines[2] }, "adapter"],
		["info", { account: "a", stderr: "null" }, "adapter"],
		["info", { account: "a", stderr: "plain words" }, "adapter"],
	]);
});

it("I11: garbage without end is counted, and does not fill the log", async () => {
	const warned: string[] = [];
	const log = { ...silentLog, warn: (_facts: object, words: string) => void warned.push(words) };
	const over = Promise.withResolvers<void>();
	const supervisor = supervisorOf({
		command: node(`console.log("x\\n".repeat(100) + '{"type":"found","nonce":"n","known":true}')`),
		log,
		shapes: SEND_SHAPES,
		lines: () => over.resolve(),
		lost: () => true,
	});
	await supervisor.running(new AbortController().signal);
	await over.promise;
	expect(supervisor.status().garbage).toBe(100);
	expect(warned.filter((words) => words.startsWith("garbage"))).toHaveLength(20);
	await supervisor.stop();
});

it("one that neither its input's end nor SIGTERM ends is ended by force", async () => {
	const ready = Promise.withResolvers<void>();
	const gone = Promise.withResolvers<Exit>();
	const command = node(`process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); console.log("{}")`);
	const limits = { ...PROCESS_LIMITS, endGraceMs: 50, termGraceMs: 50 };
	const running = startProcess(
		{ ...common, command, limits },
		{ lines: () => ready.resolve(), garbage() {}, exited: gone.resolve },
	);
	await ready.promise;
	await running.stop();
	expect(await gone.promise).toMatchObject({ code: null, detail: "stopped" });
});

it("a process that had ended by itself when it was killed is reported with its own exit", {
	skip: process.platform !== "linux",
}, async () => {
	const gone = Promise.withResolvers<Exit>();
	const running = startProcess(
		{ ...common, command: node("process.exit(3)"), clock: manualClock() },
		{ lines() {}, garbage() {}, exited: gone.resolve },
	);
	// As after a while in which this process had no turn: the timers come before the news.
	const stands = new Int32Array(new SharedArrayBuffer(4));
	while (!/\) Z /.test(readFileSync(`/proc/${running.pid}/stat`, "utf8"))) Atomics.wait(stands, 0, 0, 5);
	running.kill("it closed its input");
	expect(await gone.promise).toEqual({ code: 3, detail: "ended with code 3: the platform refuses the credentials" });
});

it("I11: a monitor that says more than can be taken is made to wait, and loses nothing", {
	timeout: 300_000,
}, async () => {
	const folder = mkdtempSync(join(tmpdir(), "nexus-monitor-"));
	const said = join(folder, "said");
	// Far more than the pipe and the readers' buffers hold.
	const total = 500;
	const command = node(`
		const { writeFileSync, writeSync } = require("node:fs");
		for (let n = 1; n <= ${total}; n++) {
			const text = "x".repeat(4000);
			const line = { type: "message", eventId: String(n), chat: { id: "c", type: "direct" }, from: { id: "s" }, target: { to: "c" }, text, ts: n };
			writeSync(1, JSON.stringify(line) + "\\n");
			writeFileSync(${JSON.stringify(said)}, String(n));
		}
		process.stdin.resume();
	`);
	const release = Promise.withResolvers<void>();
	const heard: string[] = [];
	const onMessage = async ({ eventId }: InboundMessage) => {
		await release.promise;
		heard.push(eventId);
	};
	const monitor = monitorOf({ command, onMessage });
	try {
		let before = 0;
		const count = () => (existsSync(said) ? Number(readFileSync(said, "utf8")) : 0);
		const stands = () => {
			const last = before;
			before = count();
			return before > 0 && before === last;
		};
		await expect.poll(stands, { interval: 1000, timeout: 40_000 }).toBe(true);
		expect(before).toBeLessThan(total);
		release.resolve();
		await expect.poll(() => heard.length, { timeout: 40_000 }).toBe(total);
		expect(heard).toEqual(Array.from({ length: total }, (_, n) => String(n + 1)));
	} finally {
		await monitor.stop();
		rmSync(folder, { recursive: true, force: true });
	}
});

it.each([
	["never answers", "process.stdin.resume()", 504],
	["ends over it", 'process.stdin.once("data", () => process.exit(1))', 503],
])("a webhook's caller does not wait for a monitor that %s", async (_name, program, status) => {
	const monitor = monitorOf({ command: node(program) });
	try {
		const ask = () =>
			monitor.webhook({ method: "POST", query: "", headers: {}, body: "" }, status === 504 ? 500 : 25_000);
		// On a machine that stands still for a while the process may not even run by then.
		const answer = await ask().catch(() => ask());
		expect(answer.status).toBe(status);
	} finally {
		await monitor.stop();
	}
});
