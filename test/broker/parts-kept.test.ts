/** Attachments of an answer are in its turn and in the context of the next run. */

import type { EngineEvent, EngineRequest } from "@nexus-stream/protocol/engine";
import { expect, test } from "vitest";
import { never, request, rig, tempFile, text, until } from "./rig.ts";

const part = (modality: string, contentType: string, payload: string): EngineEvent => ({
	type: "part",
	modality,
	contentType,
	payload,
});
const card = part("card", "application/json", '{"title":"Blue shoes","price":"49 €"}');
const facts = part("data", "text/plain", "some facts");
const picture = part("image", "image/png", "AAAA".repeat(30_000));
const events = [
	{ type: "reasoning", delta: "hmm, " },
	text("Look: "),
	card,
	facts,
	picture,
	{ type: "reasoning", delta: "yes" },
] as const;

const kept = [
	{
		modality: "card",
		contentType: "application/json",
		description: "card: Blue shoes, 49 €",
		after: 6,
		bytes: 39,
		payload: '{"title":"Blue shoes","price":"49 €"}',
	},
	{
		modality: "data",
		contentType: "text/plain",
		description: expect.any(String),
		after: 6,
		bytes: 10,
		payload: "some facts",
	},
	{ modality: "image", contentType: "image/png", description: "image (image/png)", bytes: 90_000, after: 6 },
];

async function* play(): AsyncGenerator<EngineEvent, void, undefined> {
	yield* events;
}

test("cards, pictures and sound are in the turn and in the next context by description; reasoning is not by default", async () => {
	const asked: EngineRequest[] = [];
	const { broker } = rig((approvals) => {
		asked.push(approvals);
		return play();
	});
	const turn = await broker.execute(request()).result;
	expect(turn.messages[1]).toEqual({ role: "assistant", messageId: "run_1.1", text: "Look: ", parts: kept });
	await broker.execute(request({ runId: "run_2" })).result;
	expect(asked[1]!.messages[1]!.text).toBe(
		"Look: \n\n[Shown with this answer: card: Blue shoes, 49 €, 39 bytes | data (text/plain), 10 bytes | image (image/png), 90000 bytes]",
	);
});

test("reasoning is kept and shown to the next run if configured, up to its limit", async () => {
	const asked: EngineRequest[] = [];
	const { broker, look } = rig(
		(approvals) => {
			asked.push(approvals);
			return play();
		},
		{ limits: { reasoningCharsMax: 7 } },
	);
	await broker.execute(request()).result;
	expect(look.turn("run_1")!.messages[1]).toMatchObject({ reasoning: "hmm, ye", parts: kept });
	await broker.execute(request({ runId: "run_2" })).result;
	expect(asked[1]!.messages[1]!.text).toMatch(/^\[Reasoning before this answer: hmm, ye\]\n\nLook: /);
});

test("I5: a run that a dead process left keeps them too", async () => {
	const path = tempFile();
	const first = rig(
		async function* () {
			yield* events;
			await never;
		},
		{ path, dies: true },
	);
	await first.broker.execute(request()).established;
	await until(async () => ((await first.bus.describe("run_1"))?.head ?? 0) >= 12);
	await first.bus.close();
	first.file.close();

	const { broker, look } = rig(play, { path, limits: { reasoningCharsMax: 100 } });
	await broker.recover();
	expect(look.turn("run_1")!.messages.at(-1)).toMatchObject({ text: "Look: ", parts: kept, reasoning: "hmm, yes" });
});

test("a character of the reasoning that comes in two deltas is kept whole", async () => {
	async function* halves(): AsyncGenerator<EngineEvent, void, undefined> {
		yield { type: "reasoning", delta: "so \ud83d" };
		yield { type: "reasoning", delta: "\ude00 it is" };
		yield text("Yes.");
	}
	const { broker } = rig(halves, { limits: { reasoningCharsMax: 100 } });
	const turn = await broker.execute(request()).result;
	expect(turn.messages[1]).toMatchObject({ reasoning: "so \u{1f600} it is" });
});
