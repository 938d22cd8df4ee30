/** I7 through crashes: whatever dies, what the platform shows is the answer, once, in order, whole. */

import { existsSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Bus } from "../../../packages/daemon/src/bus/bus.ts";
import { deliveryWrites } from "../../../packages/daemon/src/ledger/deliveries/port.ts";
import { staleness } from "../../../packages/daemon/src/nex/delivery/recovery.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { NexusError } from "../../../packages/protocol/src/protocol.ts";
import { atEffort } from "../../effort.ts";
import { beginRun, createRig, deathsOf, FAST, finishedRun, type Rig, rigForTest, until } from "./rig.ts";

let rig: Rig;

const main = (channel: string) => ({ channel, id: "main" });
const target = { to: "c1" };

const paragraphs = fc.array(
	fc.string({ minLength: 1, maxLength: 120, unit: "grapheme" }).filter((text) => /\S/.test(text)),
	{
		minLength: 1,
		maxLength: 3,
	},
);

describe("adapter crashes", () => {
	it("I7: killed around every call at random, the visible text is the source exactly once (stream)", {
		timeout: 300_000,
	}, async () => {
		let restarts = 0;
		await fc.assert(
			fc.asyncProperty(paragraphs, fc.integer({ min: 5, max: 60 }), deathsOf(6), async (messages, limit, deaths) => {
				const each = createRig("full", { deaths, limit: String(limit) });
				try {
					const runId = await finishedRun(each.bus, messages);
					const { id } = await each.outbound.deliver({ runId, account: main("full"), target });
					const done = await each.outbound.settled(id);
					expect(done).toMatchObject({ state: "complete" });
					expect(each.visible("c1").join("")).toBe(messages.join(""));
					expect(each.visible("c1").length).toBe(messages.reduce((n, text) => n + Math.ceil(text.length / limit), 0));
					restarts += each.outbound.accounts()[0]!.restarts;
				} finally {
					await each.close();
				}
			}),
			{ numRuns: atEffort(32, 8) },
		);
		expect(restarts).toBeGreaterThan(5);
	});

	it("I7: an intent that was never allowed is withdrawn, not looked up", async () => {
		rig = createRig("full", { deaths: "1" });
		const runId = await finishedRun(rig.bus, ["short"]);
		expect(await rig.send({ runId })).toMatchObject({ state: "complete" });
		expect(rig.visible("c1")).toEqual(["short"]);
	});

	it("an adapter that cannot be resumed is flagged, never repeated", async () => {
		rig = createRig("collecting", { deaths: "1" });
		const runId = await finishedRun(rig.bus, ["maybe"]);
		const done = await rig.send({ runId });
		expect(done.state).toBe("unknown");
		expect(done.error).toMatch(/cannot tell/);
		expect(rig.visible("c1")).toEqual([]);
	});

	it("an adapter that goes silent with the whole answer is ended and resumed", async () => {
		rig = rigForTest((channel) => ({ full: channel("full", { silentAtEnd: "1" }) }), {
			limits: { ...FAST, answerMs: 1500 },
		});
		const runId = await finishedRun(rig.bus, ["still here"]);
		expect(await rig.send({ runId })).toMatchObject({ state: "complete" });
		expect(rig.visible("c1")).toEqual(["still here"]);
		expect(rig.outbound.accounts()[0]!.processes.stream).toMatchObject({
			restarts: expect.toSatisfy((n: number) => n >= 1),
		});
		expect(rig.outbound.accounts()[0]!.lastError).toMatch(/did not finish/);
	});
});

describe("daemon crashes", () => {
	it("I7: what an earlier process owes is finished once, in the same message", async () => {
		rig = createRig("full");
		const { run, id } = await rig.begin();
		run.text("Before the crash, ");
		await until(() => rig.visible("c1").join("") === "Before the crash, ", "the first half is visible");
		await until(() => rig.deliveries.get(id)!.messages[0]?.shown === 18, "the ledger knows");
		const old = rig.outbound.accounts()[0]!.processes.stream!.pid!;
		await rig.restart();
		await run.endIn(rig.bus, "and after it.", true);
		await rig.outbound.start();
		await until(() => !existsSync(`/proc/${old}/stat`), "the old adapter process is ended");
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete", cursor: 31 });
		expect(rig.visible("c1")).toEqual(["Before the crash, and after it."]);
		const starts = rig.calls().filter(({ op }) => op === "start");
		expect(starts.map(({ resume }) => resume)).toEqual([
			undefined,
			expect.objectContaining({ position: 0, ordinal: 1, shown: 18 }),
		]);
	});

	it("I7: killed again and again, after any number of calls, the visible text is the source exactly once", {
		timeout: 300_000,
	}, async () => {
		const gaps = fc.sample(fc.integer({ min: 0, max: 12 }), 6);
		rig = createRig("full", { limit: "40" });
		const words = (n: number) => `word ${n} is said here, and `;
		const runs = await Promise.all([1, 2, 3].map((n) => beginRun(rig.bus, `s${n}`)));
		const all = await Promise.all(
			runs.map(({ runId }, n) => rig.outbound.deliver({ runId, account: main("full"), target: { to: `c${n}` } })),
		);
		runs.forEach((run) => {
			for (let n = 0; n < 20; n++) run.text(words(n));
		});
		await until(() => rig.visible("c0").length > 0, "the first message");
		const source = Array.from({ length: 20 }, (_, n) => words(n)).join("");
		let first = true;
		const isOver = () => all.every(({ id }) => rig.deliveries.get(id)!.state !== "active");
		for (const gap of gaps) {
			const calls = rig.calls().length;
			await until(() => rig.calls().length >= calls + gap || isOver(), `${gap} more calls`);
			await rig.restart();
			if (first) for (const run of runs) await run.endIn(rig.bus, "", true);
			first = false;
			await rig.outbound.start();
		}
		for (const { id } of all) expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
		for (const n of [0, 1, 2]) {
			expect(rig.visible(`c${n}`).join("")).toBe(source);
			expect(rig.visible(`c${n}`)).toHaveLength(Math.ceil(source.length / 40));
		}
	});

	it("I7: one that the store does not let be taken over holds up neither the start nor the others, and follows later", async () => {
		rig = createRig("full");
		const runs = await Promise.all(["s1", "s2"].map((session) => beginRun(rig.bus, session)));
		const [first, second] = await Promise.all(
			runs.map(({ runId }, n) => rig.outbound.deliver({ runId, account: main("full"), target: { to: `c${n}` } })),
		);
		for (const run of runs) run.text("Owed.");
		await Promise.all(runs.map((run) => run.room()));
		let broken = true;
		const told: object[] = [];
		const write: Bus["write"] = async (writes, patienceMs) => {
			if (broken && JSON.stringify(writes).includes(first!.id)) throw new NexusError("unavailable", "the disk is full");
			await rig.bus.write(writes, patienceMs);
		};
		await rig.restart({
			committer: { write, fenced: new AbortController().signal },
			log: { ...silentLog, error: (facts: object) => void told.push(facts) },
		});
		for (const run of runs) await run.endIn(rig.bus, "", true);
		await rig.outbound.start();
		expect(told[0]).toMatchObject({ err: { message: "the disk is full" } });
		expect(await rig.outbound.settled(second!.id)).toMatchObject({ state: "complete" });
		expect(rig.deliveries.get(first!.id)).toMatchObject({ state: "active" });
		broken = false;
		await until(() => rig.deliveries.get(first!.id)!.state === "complete", "the first one follows");
		expect(rig.visible("c0")).toEqual(["Owed."]);
	});

	it("a delivery that is too old is marked stale and logged, not sent", async () => {
		rig = createRig("full", { deaths: Array(1000).fill(1).join() });
		const run = await beginRun(rig.bus);
		const live = await beginRun(rig.bus, "other");
		run.text("old news");
		live.text("fresh");
		await run.end();
		const [old, fresh] = await Promise.all(
			[run, live].map(({ runId }) => rig.outbound.deliver({ runId, account: main("full"), target })),
		);
		await until(() => rig.deliveries.get(old!.id)!.mode === "stream", "it began");
		const told: string[] = [];
		const log = { ...silentLog, warn: (_: object, message: string) => told.push(message) };
		await rig.restart({ log, limits: { ...FAST, staleMs: -1 } });
		await rig.outbound.start();
		expect(rig.deliveries.get(old!.id)).toMatchObject({ state: "stale" });
		expect(told.join()).toMatch(/was not sent/);
		// A run that is still alive is never stale.
		expect(rig.deliveries.get(fresh!.id)).toMatchObject({ state: "active" });
		await live.endIn(rig.bus, "", false);
	});

	it.each(["stale", "failed"] as const)(
		"I7: a delivery that is %s sends the remainder once when it is requested again",
		async (state) => {
			rig = createRig("full");
			const runId = await finishedRun(rig.bus, ["out, ", "owed"]);
			const row = { runId, channel: "full", account: "main", options: {}, createdAt: Date.now() };
			const doubtful = { to: "c2" };
			const message = { ordinal: 1, nonce: "n1", from: 0 };
			await rig.bus.write([
				deliveryWrites.open({ ...row, id: "dlv_1", target }),
				deliveryWrites.put("dlv_1", { ...message, state: "sent", messageId: "m1", to: 5 }, { cursor: 5 }, Date.now()),
				deliveryWrites.finish("dlv_1", state, "it was not to be", Date.now()),
				deliveryWrites.open({ ...row, id: "dlv_2", target: doubtful }),
				deliveryWrites.put("dlv_2", { ...message, state: "intended" }, { cursor: 0 }, Date.now()),
				deliveryWrites.finish("dlv_2", state, "it was not to be", Date.now()),
			]);

			const again = await rig.outbound.deliver({ runId, account: main("full"), target });
			expect(again).toMatchObject({ id: "dlv_1", state: "active" });
			const done = await rig.outbound.settled("dlv_1");
			expect(done).toMatchObject({ state: "complete", cursor: 9 });
			expect(done.error).toBeUndefined();
			expect(rig.visible(target.to)).toEqual(["owed"]);
			await rig.outbound.deliver({ runId, account: main("full"), target });
			// A message that may already exist is never sent again blindly.
			expect(await rig.outbound.deliver({ runId, account: main("full"), target: doubtful })).toMatchObject({ state });
			await rig.outbound.settled("dlv_1");
			await rig.outbound.settled("dlv_2");
			expect([rig.visible(target.to), rig.visible("c2")]).toEqual([["owed"], []]);
		},
	);

	it("freshness counts from the last progress when recovery ended the run", async () => {
		rig = createRig("full");
		const run = await beginRun(rig.bus);
		run.text("x");
		await rig.restart();
		await run.endIn(rig.bus, "", true);
		const hour = 3_600_000;
		const row = {
			id: "dlv_1",
			runId: run.runId,
			channel: "full",
			account: "main",
			target: { to: "c1" },
			options: {},
			createdAt: Date.now() - hour,
			updatedAt: Date.now() - hour,
			state: "active" as const,
			cursor: 0,
			messages: [],
		};
		expect(await staleness(rig.bus, row, Date.now(), 900_000)).toMatch(/60 minutes old/);
		expect(await staleness(rig.bus, { ...row, updatedAt: Date.now() - 60_000 }, Date.now(), 900_000)).toBeUndefined();
		const ended = await finishedRun(rig.bus, ["x"]);
		expect(await staleness(rig.bus, { ...row, runId: ended }, Date.now(), 900_000)).toBeUndefined();
		expect(await staleness(rig.bus, { ...row, runId: "run_gone" }, Date.now(), 900_000)).toMatch(/no longer kept/);
	});

	it("I7: an adapter without positions is flagged after a restart, never repeated", async () => {
		rig = createRig("collecting", { slowMs: "200" });
		const runId = await finishedRun(rig.bus, ["maybe there, maybe not"]);
		const { id } = await rig.outbound.deliver({ runId, account: main("collecting"), target });
		await until(() => rig.deliveries.get(id)!.mode === "stream", "it began");
		await rig.restart();
		await rig.outbound.start();
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "unknown" });
	});
});
