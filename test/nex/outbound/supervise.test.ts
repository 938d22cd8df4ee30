import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { InboundMessage, StreamLine } from "../../../packages/adapter/src/port.ts";
import { createLines } from "../../../packages/daemon/src/nex/delivery/stream/stream-pusher.ts";
import {
	RESTART_RULES,
	type Supervision,
	stepSupervision,
	UNSTARTED,
} from "../../../packages/daemon/src/std/supervision.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { beginRun, createRig, FAST, finishedRun, onlyMessages, type Rig, rigForTest, until } from "./rig.ts";

let rig: Rig;

setFlagsFromString("--expose_gc");
const collect = runInNewContext("gc") as () => void;

function memoryBytes(): number {
	collect();
	const { heapUsed, external } = process.memoryUsage();
	return heapUsed + external;
}

const main = (channel: string) => ({ channel, id: "main" });
const target = { to: "c1" };
const status = (of: Rig) => of.outbound.accounts()[0]!;

describe("restart policy", () => {
	const rules = {
		...RESTART_RULES,
		backoffMs: 100,
		backoffMsMax: 1000,
		failuresMax: 4,
		circuitMs: 5000,
		circuitMsMax: 9000,
	};
	const step = (state: Supervision, type: "want" | "unwant" | "spawned" | "tick", now: number) =>
		stepSupervision(state, { type }, now, rules, 0.5).state;
	const crash = (state: Supervision, now: number, clean = false, unreachable = false) =>
		stepSupervision(step(state, "spawned", now), { type: "exited", clean, unreachable }, now, rules, 0.5).state;

	it("backs off exponentially, then opens the circuit, longer with every failed try", () => {
		let state = step(UNSTARTED, "want", 0);
		const waits: [string, number][] = [];
		for (let n = 0, now = 0; n < 6; n++) {
			state = crash(state, now);
			if (!("until" in state.phase)) throw new Error("it waits");
			waits.push([state.phase.at, state.phase.until - now]);
			now = state.phase.until;
			expect(step(state, "tick", now - 1).phase).toEqual(state.phase);
			state = step(state, "tick", now);
			expect(state.phase.at).toBe("starting");
		}
		expect(waits).toEqual([
			["backing_off", 100],
			["backing_off", 200],
			["backing_off", 400],
			["open_circuit", 5000],
			["open_circuit", 9000],
			["open_circuit", 9000],
		]);
	});

	it("asks again at a steady pace for a platform that cannot be reached", () => {
		let state = step(UNSTARTED, "want", 0);
		let now = 0;
		for (let n = 0; n < 8; n++) {
			state = crash(state, now, false, true);
			if (!("until" in state.phase)) throw new Error("it waits");
			expect(state.phase.until - now).toBeLessThanOrEqual(5000);
			now = state.phase.until;
			state = step(state, "tick", now);
		}
		expect(crash(state, now).phase).toMatchObject({ at: "open_circuit", until: now + 9000 });
	});

	it("forgets failures once a process was healthy, and takes a clean end for what it is", () => {
		let state = step(UNSTARTED, "want", 0);
		for (let n = 0; n < 3; n++) state = step(crash(state, n), "tick", 1e9);
		const healthy = step(state, "spawned", 0);
		const ended = stepSupervision(healthy, { type: "exited", clean: false }, rules.healthyMs, rules, 0.5).state;
		expect(ended).toMatchObject({ failures: 1, phase: { at: "backing_off" } });
		expect(crash(state, 1, true)).toMatchObject({ failures: 0, phase: { at: "stopped" } });
		// A process that is no longer needed is not awaited, and is not restarted.
		const unwanted = step(ended, "unwant", rules.healthyMs);
		expect(unwanted.phase).toEqual({ at: "stopped" });
		expect(step(unwanted, "tick", 1e9).phase).toEqual({ at: "stopped" });
	});

	it("whatever happens, a wanted process is running, starting, or waiting for a time that comes", () => {
		const input = fc.constantFrom("want", "spawned", "tick", "exited", "clean");
		fc.assert(
			fc.property(fc.array(fc.tuple(input, fc.nat(20_000))), (inputs) => {
				let state = step(UNSTARTED, "want", 0);
				let now = 0;
				for (const [type, wait] of inputs) {
					now += wait;
					const alive = state.phase.at === "running" || state.phase.at === "starting";
					if (type === "exited" || type === "clean") {
						if (alive) state = crash(state, now, type === "clean");
						if (type === "clean") state = step(state, "want", now);
					} else if (type === "spawned") {
						if (state.phase.at === "starting") state = step(state, "spawned", now);
					} else state = step(state, type as "want" | "tick", now);
					expect(state.phase.at).not.toBe("stopped");
					if ("until" in state.phase) expect(step(state, "tick", state.phase.until).phase.at).toBe("starting");
				}
			}),
		);
	});
});

describe("adapter processes", () => {
	it("are started on first use, one per account, and kept", async () => {
		rig = createRig("full");
		expect(status(rig).processes).toEqual({});
		const runs = await Promise.all([1, 2, 3].map((n) => finishedRun(rig.bus, [`answer ${n}`], `s${n}`)));
		await Promise.all(runs.map((runId, n) => rig.send({ runId, target: { to: `c${n}` } })));
		expect(status(rig)).toMatchObject({ processes: { stream: { state: "running", restarts: 0 } }, deliveries: 0 });
		const pids = new Set(
			rig
				.calls()
				.filter(({ op }) => op === "create")
				.map(({ id }) => id!.split("-")[0]),
		);
		expect(pids.size).toBe(1);
	});

	it("find their account in a file that only this user can read, and nothing of the daemon's environment", async () => {
		process.env.NEXUS_TEST_SECRET = "key";
		rig = rigForTest((channel) => ({
			env: {
				...channel("full"),
				command: [
					process.execPath,
					"-e",
					"console.log(JSON.stringify({channel:Object.keys(process.env).join(),supports:[],limits:{textMax:1}}))",
					"--",
				],
			},
		}));
		const { channel } = await rig.outbound.info("env");
		delete process.env.NEXUS_TEST_SECRET;
		expect(channel.split(",")).toContain("PATH");
		expect(channel).not.toMatch(/NEXUS_TEST_SECRET/);
		rig.outbound.accounts();
		const path = join(rig.dir, "adapters", "env", "main", "account.json");
		expect(statSync(path).mode & 0o777).toBe(0o600);
		expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({
			id: "main",
			settings: { file: join(rig.dir, "platform.jsonl") },
		});
	});

	it("say what they can and how they are", async () => {
		rig = rigForTest((channel) => ({
			full: channel("full"),
			broken: { ...channel("full"), command: ["/nonexistent/x"] },
		}));
		expect(await rig.outbound.info("full")).toMatchObject({ channel: "full", protocol: 1 });
		expect(await rig.outbound.health("full", "main")).toMatchObject({ ok: true });
		await expect(rig.outbound.info("broken")).rejects.toMatchObject({ code: "unavailable" });
		expect(await rig.outbound.health("broken", "main")).toMatchObject({ ok: false });
		expect(rig.outbound.accounts()[1]).toMatchObject({
			channel: "broken",
			infoError: expect.stringMatching(/nonexistent/),
		});
	});

	it("garbage and lines that are too long are counted, logged and skipped", async () => {
		const told: string[] = [];
		const log = {
			...silentLog,
			warn: (facts: object, message: string) => told.push(`${message} ${JSON.stringify(facts)}`),
		};
		const limits = { ...FAST, process: { ...FAST.process, lineBytesMax: 10_000 } };
		rig = rigForTest((channel) => ({ full: channel("full", { garbage: "1", flood: "50000" }) }), { log, limits });
		const runId = await finishedRun(rig.bus, ["clean"]);
		expect(await rig.send({ runId })).toMatchObject({ state: "complete" });
		expect(status(rig)).toMatchObject({ garbage: 4, restarts: 0 });
		expect(told.filter((line) => line.startsWith("garbage"))).toHaveLength(4);
		expect(told.join()).toMatch(/longer than 10000 bytes/);
	});

	it("stderr goes to the log with the account, cut", async () => {
		const told: { stderr?: string; account?: string }[] = [];
		const log = { ...silentLog, info: (facts: object) => told.push(facts) };
		rig = rigForTest((channel) => ({ full: channel("full", { stderr: "1" }) }), { log });
		await rig.send({ text: "x" });
		const said = () => told.filter(({ stderr }) => stderr !== undefined);
		// Another pipe than that of the answers.
		await until(() => said().length > 1, "both lines arrived");
		const lines = said();
		expect(lines.map(({ stderr }) => stderr!.length)).toEqual([2000, 5]);
		expect(lines[0]).toMatchObject({ channel: "full", account: "main", verb: "stream" });
	});

	it("one that dies at once opens the circuit, which shows, and nothing is lost meanwhile", async () => {
		const restart = { ...FAST.restart, failuresMax: 3, circuitMs: 60_000 };
		rig = rigForTest((channel) => ({ full: channel("full", { dieAtOnce: "3" }) }), { limits: { ...FAST, restart } });
		const { id } = await rig.outbound.deliver({ text: "waits", account: main("full"), target });
		await until(() => status(rig).processes.stream?.state === "open_circuit", "the circuit opens");
		expect(status(rig)).toMatchObject({
			restarts: 3,
			deliveries: 1,
			lastError: "ended with code 3: the platform refuses the credentials",
		});
		expect(status(rig).processes.stream!.until).toBeGreaterThan(Date.now());
		expect((await rig.outbound.deliveries({ limit: 1 }))[0]).toMatchObject({ id, state: "active" });
	});

	it("one that cannot reach its platform is tried at a steady pace", { timeout: 300_000 }, async () => {
		const restart = { ...FAST.restart, failuresMax: 1, circuitMs: 10, circuitMsMax: 3_600_000 };
		rig = rigForTest((channel) => ({ full: channel("full", { dieAtOnce: "7" }) }), { limits: { ...FAST, restart } });
		await rig.outbound.deliver({ text: "waits", account: main("full"), target });
		// Twice as long every time, the fifteenth try would be after five minutes.
		await until(() => status(rig).restarts >= 15, "it is tried");
	});

	it("one that uses too much memory is ended", { skip: process.platform !== "linux" }, async () => {
		const limits = { ...FAST, process: { ...FAST.process, memoryBytesMax: 200 * 2 ** 20, memoryCheckMs: 100 } };
		rig = rigForTest((channel) => ({ full: channel("full", { memoryMb: "300" }) }), { limits });
		const run = await beginRun(rig.bus);
		await rig.outbound.deliver({ runId: run.runId, account: main("full"), target });
		await until(() => /memoryBytesMax/.test(status(rig).lastError ?? ""), "it is ended for its memory");
	});

	it("I6: behind a slow reader nothing is dropped and nothing grows", { timeout: 300_000 }, async () => {
		rig = createRig("full", { slowMs: "60" });
		const run = await beginRun(rig.bus);
		const slow = await rig.outbound.deliver({ runId: run.runId, account: main("full"), target });
		run.text("first");
		await until(() => rig.visible("c1").length === 1, "it reads");
		const before = memoryBytes();
		const chunk = "0123456789".repeat(1000);
		for (let n = 0; n < 4000; n++) {
			run.text(chunk);
			if (n % 4 === 0) await new Promise((resolve) => setImmediate(resolve));
			await run.room();
		}
		await run.end();
		// Forty megabytes were said; what waits for the slow one is on disk.
		expect(memoryBytes() - before).toBeLessThan(20 * 2 ** 20);
		expect((await rig.outbound.deliveries({ limit: 1 }))[0]).toMatchObject({ id: slow.id, state: "active" });
	});

	it("I6: tokens behind a full pipe leave as fewer lines, each within the limit, that say how far they go", () => {
		const rules = { fields: { delivery: "d" }, reasoning: false, parts: false, tokenCharsMax: 10 };
		const tokens = ["abcd", "efgh", "ij", "kl", "a token that is longer than the limit", "m"];
		const events = tokens.map((text, offset) => ({ event: { type: "token" as const, text }, offset, position: 0 }));
		const lines = createLines(rules)(events).map((line) => JSON.parse(line) as Extract<StreamLine, { type: "token" }>);
		expect(lines.map(({ text, offset }) => [offset, text])).toEqual([
			[2, "abcdefghij"],
			[3, "kl"],
			[4, "a token that is longer than the limit"],
			[5, "m"],
		]);
	});

	it("stop lets finished answers go out, ends the processes and leaves the rest for the next start", async () => {
		rig = createRig("full");
		const run = await beginRun(rig.bus);
		run.text("unfinished");
		const { id } = await rig.outbound.deliver({ runId: run.runId, account: main("full"), target });
		await until(() => rig.visible("c1").length === 1, "it is visible");
		const { pid } = status(rig).processes.stream!;
		await rig.outbound.stop(50);
		expect(() => process.kill(pid!, 0)).toThrow();
		expect(rig.deliveries.get(id)).toMatchObject({ state: "active", messages: [{ state: "open", shown: 10 }] });
		await expect(rig.outbound.deliver({ text: "x", account: main("full"), target })).rejects.toMatchObject({
			code: "unavailable",
		});
	});
});

describe("monitor", () => {
	it("hands messages on in order, and acknowledges each only once it is safe", async () => {
		rig = createRig("full", { inbound: "5" });
		const seen: InboundMessage[] = [];
		let let3: () => void = () => {};
		rig.outbound.monitor(
			"full",
			"main",
			onlyMessages(async (message) => {
				seen.push(message);
				if (message.eventId === "e2") throw new TypeError("not taken");
				if (message.eventId === "e3") await new Promise<void>((resolve) => (let3 = resolve));
			}),
		);
		const acks = () =>
			rig!
				.calls()
				.filter(({ op }) => op === "ack")
				.map(({ eventId }) => eventId);
		await until(() => acks().length === 1 && seen.length === 3, "the third waits");
		expect(acks()).toEqual(["e1"]);
		let3();
		await until(() => acks().length === 4, "the others follow");
		expect(acks()).toEqual(["e1", "e3", "e4", "e5"]);
		expect(seen.map(({ text }) => text)).toEqual(["t1", "t2", "t3", "t4", "t5"]);
		expect(seen[0]).toEqual({
			eventId: "e1",
			from: { id: "u1" },
			chat: { id: "c1", type: "direct" },
			text: "t1",
			target: { to: "c1" },
			ts: 1,
		});
		expect(() => rig.outbound.monitor("full", "main", onlyMessages())).toThrow(/already/);
	});

	it("I10: a message that the store refuses for a while is tried again, in its order, until it is safe", async () => {
		rig = createRig("full", { inbound: "3" });
		const seen: string[] = [];
		let full = 3;
		rig.outbound.monitor(
			"full",
			"main",
			onlyMessages(async ({ eventId }) => {
				if (eventId === "e2" && full-- > 0) throw new Error("the disk is full");
				seen.push(eventId);
			}),
		);
		await until(() => rig.calls().filter(({ op }) => op === "ack").length === 3, "all are acknowledged");
		expect(seen).toEqual(["e1", "e2", "e3"]);
	});

	it("is kept running, and answers webhooks", async () => {
		rig = createRig("full");
		rig.outbound.monitor("full", "main", onlyMessages());
		const ask = () =>
			rig.outbound.webhook("full", "main", { method: "POST", query: "a=1", headers: {}, body: btoa("hello") });
		expect(await ask()).toEqual({ status: 202, headers: {}, body: "POST hello" });
		const { pid } = status(rig).processes.monitor!;
		process.kill(pid!, "SIGKILL");
		await until(() => status(rig).processes.monitor?.pid !== pid, "the old one is gone");
		expect(await ask()).toMatchObject({ status: 202 });
		expect(status(rig).processes.monitor).toMatchObject({ state: "running", restarts: 1 });
	});
});
