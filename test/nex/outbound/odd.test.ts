import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { checkLine, MONITOR_SHAPES, SEND_SHAPES, STREAM_SHAPES } from "../../../packages/adapter/src/shapes.ts";
import { type Clock, systemClock } from "../../../packages/protocol/src/clock.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { NexusError } from "../../../packages/protocol/src/protocol.ts";
import { supervisorOf } from "./process-kit.ts";
import { beginRun, FAST, finishedRun, onlyMessages, type Rig, rigForTest, until } from "./rig.ts";

const ODD = fileURLToPath(new URL("./adapters/odd.mjs", import.meta.url));

let rig: Rig;

/** A process that is only slow to start reads nothing either: it must not be taken for a deaf one. */
const SOON = { ...FAST, process: { ...FAST.process, endGraceMs: 150, termGraceMs: 150, unreadMs: 5000 } };
const target = { to: "c1" };
const account = { channel: "odd", id: "main" };

const oddRig = (what: string, env: Record<string, string> = {}) =>
	rigForTest(
		(channel) => ({
			odd: {
				command: [process.execPath, "--conditions=nexus-source", ODD, what],
				env,
				accounts: { main: { settings: {} } },
			},
			full: channel("full"),
		}),
		{ limits: SOON },
	);

const deliver = async (of: Rig, text: string, to = account) =>
	of.outbound.settled((await of.outbound.deliver({ text, account: to, target })).id);
const status = (of: Rig) => of.outbound.accounts()[0]!;
const lives = (pid: number): boolean => {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
};

describe("an adapter's lines", () => {
	const wrong: [typeof STREAM_SHAPES, object][] = [
		[STREAM_SHAPES, { type: "message_creating", from: 0, ordinal: 1 }],
		[STREAM_SHAPES, { type: "message_creating", nonce: "n", from: "0", ordinal: 1 }],
		[STREAM_SHAPES, { type: "message_created", messageId: { id: 1 } }],
		[STREAM_SHAPES, { type: "message_created", messageId: 12 }],
		[STREAM_SHAPES, { type: "message_updated", messageId: "m", to: -1 }],
		[STREAM_SHAPES, { type: "message_sent", final: true }],
		[STREAM_SHAPES, { type: "message_sent", messageId: "m", to: 1.5 }],
		[STREAM_SHAPES, { type: "rate_limited", retryAfterMs: "soon" }],
		[STREAM_SHAPES, { type: "rate_limited" }],
		[STREAM_SHAPES, { type: "delivery_complete", delivery: 7 }],
		[SEND_SHAPES, { type: "message_sent", messageId: "", nonce: "n" }],
		[SEND_SHAPES, { type: "found", nonce: "n", known: "yes" }],
		[MONITOR_SHAPES, { type: "message", eventId: "1" }],
		[
			MONITOR_SHAPES,
			{ type: "message", eventId: 1, from: { id: "u" }, chat: { id: "c", type: "direct" }, target: { to: "c" } },
		],
		[
			MONITOR_SHAPES,
			{ type: "message", eventId: "1", from: { id: "u" }, chat: { id: "c", type: "direct" }, target: { to: 5 } },
		],
		[MONITOR_SHAPES, { type: "message_failed" }],
		[MONITOR_SHAPES, { type: "webhook_response", id: "w1", status: "fine" }],
		[STREAM_SHAPES, { type: 5 }],
		[STREAM_SHAPES, {}],
	];

	it.each(wrong)("of a known type with wrong fields are faults: %#", (shapes, line) => {
		expect(checkLine(line, shapes)).toHaveProperty("fault");
	});

	it("of unknown types are passed over; null is a field that is not there, what can be left out is filled in", () => {
		expect(checkLine({ type: "constructor" }, STREAM_SHAPES)).toEqual({ unknown: "constructor" });
		const sent = { type: "message_sent", messageId: "m", nonce: null, own: [1] };
		expect(checkLine(sent, SEND_SHAPES)).toEqual({
			value: { type: "message_sent", messageId: "m", final: true, own: [1] },
		});
		expect(checkLine({ type: "delivery_complete" }, STREAM_SHAPES)).toEqual({
			value: { type: "delivery_complete", messageIds: [] },
		});
		expect(checkLine({ type: "delivery_error" }, STREAM_SHAPES)).toMatchObject({
			value: { error: expect.stringMatching(/no reason/) },
		});
	});

	it("that are invalid are counted and logged, and affect neither their delivery nor another account", async () => {
		const lines = wrong.filter(([shapes]) => shapes !== MONITOR_SHAPES).map(([, line]) => line);
		rig = oddRig("plain", { LINES: JSON.stringify(lines) });
		expect(await deliver(rig, "all the same")).toMatchObject({ state: "complete", cursor: 12 });
		expect(await deliver(rig, "of another", { channel: "full", id: "main" })).toMatchObject({ state: "complete" });
		expect(rig.deliveries.list({ limit: 9 }).map(({ state }) => state)).toEqual(["complete", "complete"]);
		expect(status(rig)).toMatchObject({ restarts: 0, garbage: lines.length - 1 });
		expect(status(rig).lastError).toMatch(/^garbage on stdout: /);
	});

	it("of a monitor that are invalid are dropped, those after them are delivered", async () => {
		const good = { type: "message", eventId: "1", from: { id: "u" }, chat: { id: "c", type: "direct" } };
		const lines = [...wrong.filter(([shapes]) => shapes === MONITOR_SHAPES).map(([, line]) => line)];
		const nameless = { from: { id: "u", name: null }, target: { ...target, thread_id: null } };
		rig = oddRig("plain", { LINES: JSON.stringify([...lines, { ...good, text: "hi", ...nameless }]) });
		const heard: string[] = [];
		rig.outbound.monitor(
			"odd",
			"main",
			onlyMessages(async ({ text }) => void heard.push(text)),
		);
		await until(() => heard.length > 0, "the valid one arrived");
		expect(heard).toEqual(["hi"]);
		expect(status(rig).garbage).toBe(lines.length);
	});
});

describe("an adapter process that is of no use is ended, and the next one does the work", () => {
	it.each([
		["deaf", "x".repeat(900_000), /read nothing for 5000 ms/],
		["closes-input", "x".repeat(900_000), /closed its input/],
		["closes-output", "short", /closed its output/],
	])("%s", async (what, text, why) => {
		rig = oddRig(what);
		expect(await deliver(rig, text)).toMatchObject({ state: "complete", cursor: text.length });
		expect(status(rig)).toMatchObject({ restarts: 1, lastError: expect.stringMatching(why) });
	});

	it("one that was started by a wrapper ends with it", async () => {
		const folder = mkdtempSync(join(tmpdir(), "nexus-inner-"));
		onTestFinished(() => rmSync(folder, { recursive: true }));
		const file = join(folder, "pid");
		rig = oddRig("wraps", { INNER_PID_FILE: file });
		expect(await deliver(rig, "first")).toMatchObject({ state: "complete" });
		await until(() => existsSync(file) && readFileSync(file, "utf8") !== "", "it has started another");
		const inner = Number(readFileSync(file, "utf8"));
		expect(lives(inner)).toBe(true);
		process.kill(status(rig).processes.stream!.pid!, "SIGKILL");
		await until(() => !lives(inner), "the inner one ends too");
		expect(await deliver(rig, "second")).toMatchObject({ state: "complete" });
	});

	it("one that the system refuses to start is tried again", async () => {
		const told: string[] = [];
		const log = { ...silentLog, warn: (facts: object) => told.push(JSON.stringify(facts)) };
		// Longer than an argument may be.
		const command = [process.execPath, "x".repeat(3_000_000)];
		const limits = { limits: SOON.process, rules: SOON.restart };
		const supervisor = supervisorOf({ command, ...limits, log, shapes: STREAM_SHAPES });
		const over = new AbortController();
		const wanted = supervisor.running(over.signal).catch(() => "not there");
		await until(() => supervisor.status().restarts > 1, "it is tried again");
		expect(supervisor.status().lastError).toMatch(/could not be started/);
		over.abort();
		expect(await wanted).toBe("not there");
		await supervisor.stop();
	});
});

it("I7: delivery_complete without any message is not taken for a delivery", async () => {
	rig = oddRig("says-nothing");
	expect(await deliver(rig, "where is it?")).toMatchObject({
		state: "unknown",
		error: expect.stringMatching(/without any message/),
	});
	const empty = await rig.outbound.deliver({
		runId: await finishedRun(rig.bus, [" \n"]),
		account,
		target: { to: "c2" },
	});
	expect(await rig.outbound.settled(empty.id)).toMatchObject({ state: "complete" });
});

it.each([
	[{ limits: { textMax: 0 } }, /limits.textMax/],
	[{ typing: { intervalMs: 0, expiryMs: 0 } }, /typing.intervalMs/],
	[{ blocks: { maxChars: "all" } }, /blocks.maxChars/],
	[{ supports: {} }, /supports/],
	[{ protocol: 2 }, /protocol/],
])("an info that cannot be relied on is refused with what is wrong: %j", async (info, what) => {
	rig = oddRig("plain", { INFO: JSON.stringify(info) });
	await expect(rig.outbound.info("odd")).rejects.toMatchObject({ code: "unavailable", message: what });
});

it("an adapter that cannot be asked says in its own words why", async () => {
	rig = oddRig("plain", { INFO: "not JSON" });
	const failure = await rig.outbound.info("odd").catch((cause: Error) => cause.message);
	expect(failure).toMatch(/SyntaxError: /);
	expect(failure).not.toMatch(/\bat .*odd\.mjs|Node\.js v/);
});

it("what an info leaves out is filled in, what is new in it is passed over", async () => {
	const more = { supports: ["send", "telepathy"], fields: null, settings: null, version: null };
	rig = oddRig("plain", { INFO: JSON.stringify({ ...more, limits: { textMax: 50 } }) });
	expect(await rig.outbound.info("odd")).toMatchObject({
		fields: [],
		settings: [],
		limits: { textMax: 50, unit: "utf16" },
	});
});

describe("a store that refuses what deliveries report", () => {
	it("I12: does not keep the outbound side from ending; the next one finishes the pending deliveries", async () => {
		rig = rigForTest((channel) => ({ blocks: channel("blocks") }), { limits: { ...FAST, recordMs: 50 } });
		const { deliveries, outbound, bus } = rig;
		const runId = await finishedRun(bus, ["Hello."]);
		const { id } = await outbound.deliver({ runId, account: { channel: "blocks", id: "main" }, target });
		let refused = 0;
		bus.write = () => {
			refused++;
			return Promise.reject(new NexusError("unavailable", "database or disk is full"));
		};
		await until(() => refused > 0, "the delivery reports something");
		await outbound.stop(0);
		expect(deliveries.get(id)!.state).toBe("active");
		await rig.restart();
		await rig.outbound.start();
		await until(() => rig.deliveries.get(id)!.state === "complete", "the delivery is complete");
		expect(rig.visible("c1")).toEqual(["Hello."]);
	});
});

describe("a clock that is set back by an hour", () => {
	it("I7: what is there of an answer is sent when nothing more comes", async () => {
		// Far from all other times here, so that its timer is known also when it is set late.
		const idleMs = 777;
		let back = 0;
		const clock: Clock = {
			now: () => Date.now() - back,
			after(ms, callback) {
				// The text arrived, and waits for more.
				if (ms > idleMs / 2 && ms <= idleMs) back = 3_600_000;
				return systemClock.after(ms, callback);
			},
		};
		const blocks = { idleMs, humanDelayMs: null };
		rig = rigForTest((channel) => ({ blocks: channel("blocks", {}, { blocks }) }), { clock });
		const run = await beginRun(rig.bus);
		await rig.outbound.deliver({ runId: run.runId, account: { channel: "blocks", id: "main" }, target });
		run.text("Hello.");
		await until(() => rig.visible("c1").length > 0, "the first block");
		expect(back).toBeGreaterThan(0);
		await run.end();
	});
});
