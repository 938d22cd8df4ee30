/** Sending in messages: blocks, whole answers, the remainder of a stream, and unknown outcomes. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { atEffort } from "../../effort.ts";
import { createRig, deathsOf, FAST, type Flavour, finishedRun, type Rig, rigForTest, until } from "./rig.ts";

let rig: Rig;

const main = (channel: string) => ({ channel, id: "main" });
const target = { to: "c1" };
const ops = (of: Rig, op: string) => of.calls().filter((call) => call.op === op);

async function deliver(of: Rig, flavour: Flavour, messages: string[], options = {}) {
	const runId = await finishedRun(of.bus, messages);
	const { id } = await of.outbound.deliver({ runId, account: main(flavour), target, options });
	return of.outbound.settled(id);
}

describe("the way of a delivery", () => {
	it("mail: one message per answer, when it is finished", async () => {
		rig = createRig("mail");
		const { run, id } = await rig.begin();
		run.text("Dear reader,");
		run.next();
		run.text("the end.");
		await until(() => rig.deliveries.get(id)!.mode === "whole", "it began");
		expect(rig.visible("c1")).toEqual([]);
		await run.end();
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete", cursor: 20 });
		expect(rig.visible("c1")).toEqual(["Dear reader,\n\nthe end."]);
	});

	it("disable_streaming: nothing is shown before the answer is finished", async () => {
		rig = createRig("full");
		const done = await deliver(rig, "full", ["All at once."], { disableStreaming: true });
		expect(done).toMatchObject({ state: "complete", mode: "whole" });
		expect(rig.visible("c1")).toEqual(["All at once."]);
		expect(ops(rig, "start")).toEqual([]);
	});
});

describe("a separate text", () => {
	it.each([
		[" \n", "invalid"],
		["x".repeat(11), "too_large"],
	])("I11: %j is refused as %s, as a message would be", async (text, code) => {
		rig = rigForTest((channel) => ({ blocks: channel("blocks") }), { limits: { ...FAST, textCharsMax: 10 } });
		await expect(rig.outbound.deliver({ text, account: main("blocks"), target })).rejects.toMatchObject({ code });
	});
});

describe("degrading", () => {
	it("a stream that fails sends the remainder, and only that", async () => {
		rig = createRig("full", { failAfter: "20" });
		const { run, id } = await rig.begin();
		run.text("Shown before it fails");
		run.text(" and sent after it.");
		await run.end();
		const done = await rig.outbound.settled(id);
		expect(done).toMatchObject({ state: "complete", mode: "blocks" });
		expect(rig.visible("c1").join("")).toBe("Shown before it fails and sent after it.");
	});

	it("what an open message shows stays; the rest follows in another", async () => {
		rig = createRig("full", { failAfter: "15" });
		const { run, id } = await rig.begin();
		run.text("Visible. ");
		await until(() => rig.deliveries.get(id)!.messages[0]?.shown === 9, "the beginning is visible");
		run.text("Not any more by editing.");
		await run.end();
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
		expect(rig.visible("c1")).toEqual(["Visible. ", "Not any more by editing."]);
	});

	it("an unknown outcome is flagged, and nothing is sent", async () => {
		rig = createRig("full", { failAfter: "0", failCode: "unknown_outcome" });
		const done = await deliver(rig, "full", ["maybe"]);
		expect(done).toMatchObject({ state: "unknown", error: "unknown_outcome: set to fail" });
		expect(ops(rig, "create")).toEqual([]);
	});

	it("an adapter without positions that refuses before it showed anything is degraded too", async () => {
		rig = createRig("collecting", { failAfter: "3" });
		expect(await deliver(rig, "collecting", ["refused as a stream"])).toMatchObject({
			state: "complete",
			mode: "blocks",
		});
		expect(rig.visible("c1")).toEqual(["refused as a stream"]);
	});

	it("without a send verb it has failed", async () => {
		rig = createRig("streamonly", { failAfter: "0", failCode: "denied" });
		expect(await deliver(rig, "streamonly", ["x"])).toMatchObject({ state: "failed", error: "denied: set to fail" });
	});
});

describe("sends", () => {
	it("I7: a rate limit pauses the account, and the final is not lost", async () => {
		// Long enough to be seen by a test that has its turn only now and then.
		const retryAfterMs = 500;
		rig = createRig("mail", { refusals: "3", retryAfterMs: String(retryAfterMs) });
		const running = deliver(rig, "mail", ["patience"]);
		await until(() => rig.outbound.accounts()[0]!.pausedUntil !== undefined, "the account is paused");
		expect(await running).toMatchObject({ state: "complete" });
		expect(rig.visible("c1")).toEqual(["patience"]);
		const times = rig.calls().map(({ at }) => at);
		for (const [n, at] of times.slice(1).entries()) expect(at - times[n]!).toBeGreaterThanOrEqual(retryAfterMs - 10);
	});

	it("what the platform will never take has failed, with its reason", async () => {
		rig = createRig("mail", { refuse: "gone" });
		expect(await deliver(rig, "mail", ["x"])).toMatchObject({ state: "failed", error: "gone: no", messages: [] });
	});

	it("I7: killed around every call, each text is there once: a send without an answer is looked up", {
		timeout: 300_000,
	}, async () => {
		let lookedUp = 0;
		const text = fc.string({ minLength: 1, maxLength: 300, unit: "grapheme-ascii" }).filter((each) => /\S/.test(each));
		await fc.assert(
			fc.asyncProperty(text, deathsOf(5), async (source, deaths) => {
				const each = createRig("blocks", { deaths });
				try {
					expect(await deliver(each, "blocks", [source])).toMatchObject({ state: "complete" });
					expect(each.visible("c1").join("").replaceAll(/\s/g, "")).toBe(source.replaceAll(/\s/g, ""));
					lookedUp += ops(each, "find").length;
				} finally {
					await each.close();
				}
			}),
			{ numRuns: atEffort(32, 8) },
		);
		expect(lookedUp).toBeGreaterThan(0);
	});

	it("I7: however often the adapter dies over the question, it is asked again", { timeout: 300_000 }, async () => {
		rig = createRig("blocks", { deaths: Array(12).fill(1).join() });
		expect(await deliver(rig, "blocks", ["at last"])).toMatchObject({ state: "complete" });
		expect(rig.visible("c1")).toEqual(["at last"]);
		expect(rig.outbound.accounts()[0]!.restarts).toBe(12);
	});

	it("I7: where the platform cannot tell, it is flagged and never repeated", async () => {
		rig = createRig("blind", { deaths: "1" });
		const done = await deliver(rig, "blind", ["maybe"]);
		expect(done).toMatchObject({ state: "unknown", messages: [{ state: "unknown" }] });
		expect(done.error).toMatch(/cannot tell/);
	});

	it("I7: after a daemon crash the open question is settled first, with the same text and nonce", async () => {
		rig = createRig("mail", { slowMs: "300" });
		const runId = await finishedRun(rig.bus, ["exactly once"]);
		const { id } = await rig.outbound.deliver({ runId, account: main("mail"), target });
		await until(() => rig.visible("c1").length === 1, "it was created");
		expect(rig.deliveries.get(id)!.messages[0]).toMatchObject({ nonce: ops(rig, "create")[0]!.nonce });
		await rig.restart();
		await rig.outbound.start();
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete", cursor: 12 });
		expect(rig.visible("c1")).toEqual(["exactly once"]);
	});

	it("an adapter that ends after each send is started for each", async () => {
		rig = createRig("collecting");
		const all = await Promise.all(
			["one", "two", "three"].map((text) =>
				rig.outbound.deliver({ text, account: main("collecting"), target, options: { disableStreaming: true } }),
			),
		);
		for (const { id } of all) expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
		expect(rig.visible("c1")).toEqual(["one", "two", "three"]);
		expect(rig.outbound.accounts()[0]!.processes.send).toMatchObject({ state: "stopped", restarts: 0 });
	});

	it("an adapter that does not answer is ended, and what it was asked is looked up", async () => {
		rig = rigForTest((channel) => ({ mail: channel("mail", { hang: "1" }) }), {
			limits: { ...FAST, answerMs: 1000 },
		});
		expect(await deliver(rig, "mail", ["slow but once"])).toMatchObject({ state: "complete" });
		expect(rig.visible("c1")).toEqual(["slow but once"]);
		expect(ops(rig, "find").length).toBeGreaterThan(0);
	});
});

describe("typing", () => {
	it("is shown while a tool runs, and off at the end", async () => {
		rig = createRig("blocks");
		const { run, id } = await rig.begin();
		const tool = { type: "tool_status", toolName: "t", toolCallId: "1" } as const;
		run.say({ ...tool, status: "started" });
		await until(() => ops(rig!, "typing").length >= 4, "it is renewed");
		run.say({ ...tool, status: "completed" });
		run.text("done");
		await run.end();
		await rig.outbound.settled(id);
		await until(() => ops(rig!, "typing").at(-1)!.on === false, "it is off");
		expect(ops(rig, "typing")[0]).toMatchObject({ delivery: id, runId: run.runId });
	});

	it("names its delivery and its run in a stream", async () => {
		rig = createRig("full");
		const done = await deliver(rig, "full", ["x"]);
		expect(ops(rig, "typing")[0]).toMatchObject({ on: true, delivery: done.id, runId: done.runId });
	});

	it("is not shown when the channel's config says so", async () => {
		rig = createRig("full", {}, { typing: { enabled: false } });
		await deliver(rig, "full", ["x"]);
		expect(ops(rig, "typing")).toEqual([]);
	});
});
