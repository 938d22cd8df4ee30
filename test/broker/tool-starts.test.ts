/** A tool call starts once for everybody who reads the run, whatever its engine leaves out or says twice. */

import type { EngineEvent } from "@nexus-stream/protocol/engine";
import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeToolStatus } from "../../packages/protocol/src/protocol.ts";
import { atEffort } from "../effort.ts";
import { ask, framesOf, rig, verified } from "./rig.ts";

type Status = Extract<EngineEvent, { type: "tool" }>["status"];

async function told(events: readonly EngineEvent[]) {
	const parts = rig(async function* () {
		yield* events;
	});
	const { runId, result } = await ask(parts.broker, "main", "hi");
	const turn = await result;
	const frames = await framesOf(parts.bus, runId);
	expect(verified(frames)).toBeUndefined();
	const statuses = frames.flatMap((frame) => {
		const status = frame.type === "stream.chunk" ? decodeToolStatus(frame.payload) : undefined;
		return status ? [`${status.toolCallId}:${status.status}`] : [];
	});
	return { statuses, turn };
}

const tool = (callId: string, status: Status, fields = {}): EngineEvent => ({
	type: "tool",
	callId,
	name: "look",
	status,
	...fields,
});

test("P2.3: a second start is progress, and one that was left out is put before what shows that the call runs", async () => {
	const { statuses, turn } = await told([
		...[tool("a", "started"), tool("a", "started", { summary: "still" }), tool("a", "completed", { result: 1 })],
		...[tool("b", "completed", { args: { q: 1 } }), tool("c", "progress"), tool("c", "failed")],
		// It never ran.
		tool("d", "failed"),
	]);
	expect(statuses).toEqual([
		...["a:started", "a:progress", "a:completed", "b:started", "b:completed"],
		...["c:started", "c:progress", "c:failed", "d:failed"],
	]);
	expect(turn.toolCalls.map(({ callId, name, status }) => [callId, name, status])).toEqual([
		...[
			["a", "look", "completed"],
			["b", "look", "completed"],
			["c", "look", "failed"],
			["d", "look", "failed"],
		],
	]);
});

test("P2.3: two calls under one id are two calls, both with their name", async () => {
	const both = [tool("a", "started"), tool("a", "started"), tool("a", "completed"), tool("a", "completed")];
	const { statuses, turn } = await told(both);
	expect(statuses).toEqual(["a:started", "a:progress", "a:completed", "a:started", "a:completed"]);
	expect(turn.toolCalls.map(({ name, status }) => [name, status])).toEqual([
		...[
			["look", "completed"],
			["look", "completed"],
		],
	]);
});

test("P2.3: whatever is said in whatever order, starts and ends take turns", async () => {
	const status = fc.constantFrom<Status>("started", "progress", "completed", "failed");
	await fc.assert(
		fc.asyncProperty(fc.array(status, { maxLength: 12 }), async (said) => {
			const { statuses } = await told(said.map((one) => tool("a", one)));
			const words = statuses.map((one) => one.slice(2)).join(" ");
			expect(words).toMatch(/^(?: ?(?:failed|started(?: progress)* (?:completed|failed)))*$/);
		}),
		{ numRuns: atEffort(100, 10) },
	);
});
