/** I7: an adapter that knows only the basic fields, when its process or the daemon dies, or it gives up half-way (ADR 17). */

import { describe, expect, it } from "vitest";
import { encodeFrame, newRunId } from "../../../packages/protocol/src/protocol.ts";
import { beginRun, createRig, FAST, type Flavour, type Rig, rigForTest, strike, until } from "./rig.ts";

let rig: Rig;

const at = (channel: Flavour) => ({ channel, id: "main" });
const target = { to: "c1" };
const BEGINNING = "The beginning";
const REST = " and then the rest of it.";

/** A live run of which the beginning is visible. */
async function begin(settings: Record<string, string> = {}) {
	rig = createRig("basic", settings, { errorText: "Sorry." });
	const { run, id } = await rig.begin();
	run.text(BEGINNING);
	await until(() => rig.visible("c1").length > 0, "the beginning is visible");
	const counted = settings.quiet ? undefined : BEGINNING.length;
	const known = () => rig.deliveries.get(id)?.messages[0];
	await until(() => known()?.state === "open" && known()?.shown === counted, "what it shows is on record");
	return { run, id };
}

const streamPid = () => rig.outbound.accounts()[0]!.processes.stream!.pid!;

describe("a delivery_error in the middle", () => {
	it.each([
		["that counts", {}],
		["that tells of a message only when it grows", { skipCreated: "1" }],
	])("an adapter %s: the beginning is shown once, the rest in a new message", async (_, settings) => {
		const { run, id } = await begin({ ...settings, failAfter: "20" });
		run.text(REST);
		await run.end();
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete", mode: "blocks" });
		expect(rig.visible("c1")).toEqual([BEGINNING, "… and then the rest of it."]);
	});

	it("of an adapter that does not count: what it was given is not said again, and the delivery is unknown", async () => {
		const { run, id } = await begin({ quiet: "1", failAfter: "20" });
		run.text(" and then");
		await until(() => rig.deliveries.get(id)?.mode === "blocks", "it gave up");
		run.text(" the rest of it.");
		await run.end();
		expect(await rig.outbound.settled(id)).toMatchObject({
			state: "unknown",
			error: expect.stringMatching(/cannot tell/),
		});
		expect(rig.visible("c1")).toEqual([BEGINNING, "… the rest of it."]);
	});
});

describe("a process that dies in the middle", () => {
	it("what it was not given comes in a new message; all that it was given was counted", async () => {
		const { run, id } = await begin();
		strike(streamPid());
		await until(() => rig.deliveries.get(id)?.mode === "blocks", "it is gone");
		run.text(REST);
		await run.end();
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
		expect(rig.visible("c1")).toEqual([BEGINNING, "… and then the rest of it."]);
	});

	it("nothing that it may have shown is said again, and the delivery is unknown", async () => {
		const { run, id } = await begin({ quiet: "1" });
		strike(streamPid());
		await until(() => rig.deliveries.get(id)?.mode === "blocks", "it is gone");
		run.text("\n\n# A heading\n\nwith text.");
		await run.end();
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "unknown", cursor: 38 });
		expect(rig.visible("c1").join("|")).toBe(`${BEGINNING}|…\n\n# A heading\n\nwith text.`);
		const states = rig.deliveries.get(id)!.messages.map(({ from, to, state }) => [from, to, state]);
		expect(states.slice(0, 2)).toEqual([
			[0, 0, "sent"],
			[0, 13, "unknown"],
		]);
	});

	it.each<Record<string, string>>([{}, { quiet: "1" }])(
		"the error text follows when the run fails then (%j)",
		async (settings) => {
			const { run, id } = await begin(settings);
			strike(streamPid());
			await until(() => rig.deliveries.get(id)?.mode === "blocks", "it is gone");
			await run.fail("the model broke");
			await rig.outbound.settled(id);
			expect(rig.visible("c1")).toEqual([BEGINNING, "Sorry."]);
		},
	);

	it("with all of the answer: what is missing is not known, so the error text says that something may be", async () => {
		rig = createRig("collecting", { deaths: "1" }, { errorText: "Sorry." });
		const run = await beginRun(rig.bus);
		run.text("maybe");
		await run.end();
		expect(await rig.send({ runId: run.runId })).toMatchObject({ state: "unknown" });
		expect(rig.visible("c1")).toEqual(["Sorry."]);
	});
});

describe("a daemon that dies in the middle", () => {
	it("the error text follows when the run ended with it, nothing is repeated", async () => {
		const { run, id } = await begin();
		await rig.restart();
		await run.endIn(rig.bus, "", true);
		await rig.outbound.start();
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
		expect(rig.visible("c1")).toEqual([BEGINNING, "Sorry."]);
	});

	it("continues after the text that may be shown when it dies again", async () => {
		const { run, id } = await begin({ quiet: "1", refusals: "1000", retryAfterMs: "1" });
		strike(streamPid());
		await until(() => rig.deliveries.get(id)?.mode === "blocks", "it is gone");
		run.text(" the rest.");
		await until(() => rig.calls().some(({ op }) => op === "refused"), "the rest is being sent");
		await rig.restart();
		await run.endIn(rig.bus, "", false);
		await rig.outbound.start();
		await rig.outbound.stop(0);
		expect(rig.deliveries.get(id)!.messages.at(-1)).toMatchObject({ text: "… the rest.", from: 13 });
	});
});

describe("what an adapter of the basic lines hears otherwise", () => {
	const say = async (flavour: Flavour, limits: Partial<typeof FAST> = {}) => {
		rig = rigForTest((channel) => ({ [flavour]: channel(flavour, {}, { streaming: { reasoning: true } }) }), {
			limits: { ...FAST, ...limits },
		});
		const run = await beginRun(rig.bus);
		run.say({ type: "reasoning", text: "Hm." });
		run.text("Before. ");
		run.part("card", "application/json", JSON.stringify({ title: "A card" }));
		run.text("After.");
		await run.end();
		const { id } = await rig.outbound.deliver({ runId: run.runId, account: at(flavour), target });
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
		return rig.calls().map(({ op, text }) => `${op === "reasoning" ? "thinks " : ""}${text?.trim()}`);
	};

	it("a card comes where it stands, reasoning once", async () => {
		expect(await say("basic")).toEqual(["thinks Hm.", "Before.", "**A card**", "After."]);
	});

	it("behind the text, when the adapter finishes no message before its end", async () => {
		expect(await say("collecting", { attachmentMs: 20 })).toEqual(["thinks Hm.", "Before. After.", "**A card**"]);
	});

	it.each<Record<string, string>>([{}, { quiet: "1" }])(
		"the error text of a run that failed is sent behind what there is (%j)",
		async (settings) => {
			const { run, id } = await begin(settings);
			run.next();
			run.text("More.");
			await until(() => rig.visible("c1").length > 1, "more is visible");
			await run.fail("the model broke");
			expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
			expect(rig.visible("c1")).toEqual([BEGINNING, "More.", "Sorry."]);
		},
	);

	it("I2: an answer of which nothing can be read is damaged at once", async () => {
		rig = createRig("collecting", {}, { errorText: "Sorry." });
		const runId = newRunId();
		const frame = encodeFrame({
			type: "stream.chunk",
			message_id: "x",
			seq_no: 1,
			payload: "a",
			is_partial: true,
			ts: 1,
		});
		await (await rig.bus.create({ log: runId, kind: "run", meta: { session: "main" } }, [frame.slice(9)])).seal([]);
		expect(await rig.send({ runId })).toMatchObject({ state: "damaged" });
		expect(rig.visible("c1")).toEqual(["Sorry."]);
	});
});
