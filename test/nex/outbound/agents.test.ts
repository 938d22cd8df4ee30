/** Deliveries of runs with several agents: messages in the order of their begins, whole, and hidden words never (A7, A8). */

import type { EngineEvent } from "@nexus-stream/protocol/engine";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createBus } from "../../../packages/daemon/src/bus/bus.ts";
import { readSource, type SourceEvent } from "../../../packages/daemon/src/nex/delivery/source.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { createFold, decodeFrame, newRunId, type RunView } from "../../../packages/protocol/src/protocol.ts";
import { memoryStorage } from "../../bus/memory.ts";
import { atEffort } from "../../effort.ts";
import { quiet } from "../../quiet.ts";
import { recordsOf, saidBy } from "./framed.ts";
import { createRig, type Rig, until } from "./rig.ts";

const by = (agent: string | undefined) => (agent === undefined ? {} : { agent });
const words = fc.oneof(
	fc.string({ minLength: 1, maxLength: 12 }),
	fc.string({ minLength: 1, maxLength: 12, unit: "grapheme" }),
	fc.constant('"}\n\\","'),
);
const said: fc.Arbitrary<EngineEvent> = fc
	.tuple(
		fc.constantFrom(undefined, "lead", "a", "b"),
		fc.oneof(
			{ weight: 8, arbitrary: words.map((delta): EngineEvent => ({ type: "text", delta })) },
			{ weight: 2, arbitrary: fc.boolean().map((visible): EngineEvent => ({ type: "message", visible })) },
			fc.constant<EngineEvent>({ type: "message_end" }),
			words.map((delta): EngineEvent => ({ type: "reasoning", delta })),
			words.map((payload): EngineEvent => ({ type: "part", modality: "card", contentType: "text/plain", payload })),
			fc
				.tuple(fc.nat({ max: 2 }), fc.constantFrom("started" as const, "completed" as const))
				.map(([n, status]): EngineEvent => ({ type: "tool", callId: `c${n}`, name: "look", status })),
		),
	)
	.map(([agent, event]) => ({
		...event,
		...by(agent),
		...(event.type === "tool" && { callId: `${agent}${event.callId}` }),
	}));

const viewOf = (records: readonly string[]): RunView => {
	const fold = createFold();
	for (const record of records) fold.push(decodeFrame(record));
	return fold.view();
};

/** Writes the records in groups, and reads them meanwhile from a position. */
async function readFrom(records: readonly string[], group: number, position: number): Promise<SourceEvent[]> {
	const bus = createBus({ ...quiet, storage: memoryStorage() });
	const runId = newRunId();
	const writer = await bus.create({ log: runId, kind: "run" }, records.slice(0, 1));
	const found: SourceEvent[] = [];
	const signal = new AbortController().signal;
	const reading = (async () => {
		for await (const batch of readSource(bus, runId, { position, signal, log: silentLog })) found.push(...batch);
	})();
	for (let at = 1; at < records.length - 1; at += group) {
		for (const record of records.slice(at, Math.min(at + group, records.length - 1))) writer.append(record);
		await writer.flushed();
	}
	await writer.seal(records.slice(-1));
	await reading;
	await bus.close();
	return found;
}

describe("for all interleavings of agents", () => {
	it("I7, P3.11: from any position on, the messages come complete, in the order of their begins, and the end once", async () => {
		const cases = fc.asyncProperty(
			fc.array(said, { maxLength: 40 }),
			fc.integer({ min: 1, max: 50 }),
			fc.nat({ max: 80 }),
			async (events, group, at) => {
				const records = recordsOf(newRunId(), events);
				const shown = viewOf(records).messages.filter(({ visible }) => visible !== false);
				const text = shown.map((message) => message.text).join("");
				const position = Math.min(at, text.length);
				const found = await readFrom(records, group, position);
				let next = position;
				for (const { event, position: stands } of found) {
					if (event.type !== "token") continue;
					expect(stands).toBe(next);
					expect(text.startsWith(event.text, next)).toBe(true);
					next += event.text.length;
				}
				expect(next).toBe(text.length);
				expect(found.at(-1)).toMatchObject({ event: { type: "stream_end", final: true }, position: text.length });
				expect(found.filter(({ event }) => event.type === "stream_end" && event.final !== false)).toHaveLength(1);
			},
		);
		await fc.assert(cases, { numRuns: atEffort(400, 150) });
	});

	it("I7, P3.10: tools and parts come once each, and nothing hidden does", async () => {
		const cases = fc.asyncProperty(
			fc.array(said, { maxLength: 40 }),
			fc.integer({ min: 1, max: 50 }),
			async (events, group) => {
				const records = recordsOf(newRunId(), events);
				const { messages } = viewOf(records);
				const shown = messages.filter(({ visible }) => visible !== false);
				const found = await readFrom(records, group, 0);
				const parts = found.flatMap(({ event }) =>
					event.type === "part" ? [`${event.modality} ${event.payload}`] : [],
				);
				const owed = shown.flatMap(({ parts: cards, reasoning }) => [
					...cards.map(({ payload }) => `card ${payload}`),
					...reasoning.map(({ text }) => `reasoning ${text}`),
				]);
				expect(parts.toSorted()).toEqual(owed.toSorted());
				const statuses = found.filter(({ event }) => event.type === "tool_status");
				expect(statuses).toHaveLength(records.filter((record) => record.includes("tool_status")).length);
				const offsets = found.map(({ offset }) => offset);
				expect(new Set(offsets).size).toBe(offsets.length);
			},
		);
		await fc.assert(cases, { numRuns: atEffort(400, 150) });
	});

	it("I7: a call that reports after its message has ended comes once, also when that message had to wait", async () => {
		const look = (status: "started" | "progress"): EngineEvent => ({ type: "tool", callId: "c", name: "look", status });
		const text = (agent: string): EngineEvent => ({ type: "text", delta: ".", agent });
		const records = recordsOf(newRunId(), [text("lead"), look("started"), text("a"), look("progress")]);
		const statuses = (await readFrom(records, 1, 0)).flatMap(({ event }) =>
			event.type === "tool_status" ? [event.status] : [],
		);
		expect(statuses).toEqual(["started", "progress", "failed"]);
	});

	it("I4: the events do not depend on how much of the log existed", async () => {
		const cases = fc.asyncProperty(
			fc.array(said, { maxLength: 40 }),
			fc.integer({ min: 1, max: 50 }),
			async (events, group) => {
				const records = recordsOf(newRunId(), events);
				expect(await readFrom(records, group, 0)).toEqual(await readFrom(records, records.length, 0));
			},
		);
		await fc.assert(cases, { numRuns: atEffort(200, 80) });
	});
});

describe("on a platform", () => {
	let rig: Rig;
	const text = (agent: string, delta: string): EngineEvent => ({ type: "text", delta, agent });
	const message = (agent: string, visible = true): EngineEvent => ({ type: "message", agent, visible });
	const thought = (agent: string): EngineEvent => ({ type: "reasoning", delta: "hidden thought", agent });
	const end = (agent: string): EngineEvent => ({ type: "message_end", agent });

	it.each(["full", "blocks"] as const)(
		"A7, A8 (%s): one message after another, as soon as it may be, without hidden words",
		async (flavour) => {
			rig = createRig(flavour, {}, { streaming: { reasoning: true } });
			const runId = newRunId();
			const said: EngineEvent[] = [
				...[message("lead", false), text("lead", "secret"), thought("lead")],
				...[message("a"), message("b"), text("b", "B one. "), text("a", "A one. ")],
				...[text("b", "B two."), end("b"), text("a", "A two."), end("a")],
				...[message("lead", false), text("lead", "secret too")],
			];
			const records = recordsOf(runId, said);
			const isLive = flavour === "full";
			// Up to the second half of A's message: B's is whole by then, and waits.
			const cut = records.findIndex((record) => record.includes("A two."));
			const writer = await rig.bus.create(
				{ log: runId, kind: "run", meta: { session: "main" } },
				records.slice(0, cut),
			);
			const { id } = await rig.deliver({ runId });
			if (isLive)
				await until(
					() => rig.visible("c1").join("|") === "A one. ",
					"the first message is visible while the second waits",
				);
			for (const record of records.slice(cut, -1)) writer.append(record);
			if (isLive)
				await until(
					() => rig.visible("c1").join("|") === "A one. A two.|B one. B two.",
					"the second follows when the first is whole",
				);
			await writer.seal(records.slice(-1));
			expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete", cursor: 26 });
			expect(rig.visible("c1").map((shown) => shown.trim())).toEqual(["A one. A two.", "B one. B two."]);
			expect(JSON.stringify(rig.calls())).not.toMatch(/secret|hidden/);
		},
	);
});

it("A9: the end of a message tells its agent, model and phase, and the run's end what it used", async () => {
	const records = recordsOf(newRunId(), [
		...saidBy("a", "x"),
		...[{ type: "phase", name: "plan", because: "asked" } as const, { type: "message_end", agent: "a" } as const],
		...saidBy("b", "y"),
	]);
	const found = await readFrom(records, 1, 0);
	const ends = found.flatMap(({ event, facts }) => (event.type === "stream_end" ? [facts] : []));
	expect(ends).toEqual([
		{ agent: "a", model: "model-a", phase: "plan" },
		{ agent: "b", model: "model-b", phase: "plan", usage: { input: 3, output: 4 } },
	]);
});
