/** What a plugin's `onComplete` sees of a finished run. */

import { expect, test } from "vitest";
import type { EngineEvent } from "../../../src/engine/engine.ts";
import type { Delivery } from "../../../src/ledger/ledger.ts";
import type { HookResponse } from "../../../src/nex/hooks/port.ts";
import { until } from "../../broker/rig.ts";
import { nexRig } from "./rig.ts";

const events: EngineEvent[] = [
	{ type: "tool", callId: "c", name: "look", status: "started", args: { at: 1 } },
	{ type: "tool", callId: "c", name: "look", status: "completed", result: "seen" },
	{ type: "text", delta: "one " },
	{ type: "text", delta: "two" },
	{ type: "part", modality: "card", contentType: "application/json", payload: '{"title":"A"}' },
];

const delivery = (id: string): Delivery => ({
	...{ id, runId: "r", channel: "telegram", account: "bot", target: { to: "c1" }, options: {}, mode: "stream" },
	...{ state: "complete", cursor: 7, createdAt: 100, updatedAt: 350, endedAt: 350 },
	messages: [
		{ ordinal: 1, nonce: "n1", from: 0, to: 7, messageId: "m1", state: "sent", edits: 3 },
		{ ordinal: 2, nonce: "n2", from: 7, to: 7, messageId: "m2", state: "sent", edits: 1 },
	],
});

test("tool calls, parts, what became of each delivery, and streaming metrics", async () => {
	const seen: HookResponse[] = [];
	const rig = nexRig(
		async function* () {
			yield* events;
		},
		{
			config: { channels: { telegram: { acl: { unknown: "allow" }, accounts: { bot: {} } } } },
			plugins: [{ name: "p", onComplete: ({ response }) => void seen.push(response!) }],
			outbound: { settled: async (id) => delivery(id) },
		},
	);
	await rig.nex.receive({
		...{ channel: "telegram", account: "bot" },
		message: {
			...{
				eventId: "1",
				from: { id: "7" },
				chat: { id: "7", type: "direct" },
				text: "hi",
				target: { to: "c1" },
				ts: 1,
			},
		},
	});
	await until(() => seen.length === 1);
	const [response] = seen;
	expect(response).toMatchObject({
		text: "one two",
		status: "completed",
		toolCalls: [{ callId: "c", name: "look", status: "completed", args: { at: 1 }, result: "seen" }],
		parts: [{ modality: "card", description: "card: A", payload: '{"title":"A"}' }],
		deliveries: [{ id: "dlv_1", channel: "telegram", success: true, streamed: true, message_ids: ["m1", "m2"] }],
		metrics: { chunks: 5, edits: 4, deliveryMs: 250 },
	});
	expect(response!.metrics.firstTokenMs).toBeGreaterThanOrEqual(0);
});

test("the request can ask for its answer in one piece: its deliveries are whole, its frames too", async () => {
	const rig = nexRig(async function* () {
		yield* events.filter(({ type }) => type === "text");
	});
	const { runId } = await rig.nex.receive({ session: "s", text: "hi", disableStreaming: true });
	await rig.runSettled(runId!);
	const chunks = (await rig.frames(runId!)).filter((frame) => frame.type === "stream.chunk");
	expect(chunks).toMatchObject([{ payload: "one two", is_partial: false }]);
});
