/** Signed reasoning and the content parts of tool results are in the turn and in the next context, and in no frame. */

import type { EngineEvent, EngineRequest } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import type { BrokerLimits } from "../../packages/daemon/src/broker/port.ts";
import type { ContentPart } from "../../packages/protocol/src/protocol.ts";
import { request, rig, text, yields } from "./rig.ts";

const picture: ContentPart = { type: "image", contentType: "image/png", data: "UElDVFVSRQ==" };
const page: ContentPart = { type: "resource", uri: "https://example.org/", contentType: "text/html", text: "<p>page" };
const signed = (thought: string, after?: number): EngineEvent => ({
	type: "signed_reasoning",
	text: thought,
	signature: `sig(${thought})`,
	after,
});
const looks = (callId: string, ...content: ContentPart[]): EngineEvent[] => [
	{ type: "tool", callId, name: "look", status: "started", args: { at: callId } },
	{ type: "tool", callId, name: "look", status: "completed", content },
];

/** Runs the events, then a second run: the first turn, its frames, and the answer in the context of the second run. */
async function replayed(events: readonly unknown[], limits: Partial<BrokerLimits> = {}) {
	const asked: EngineRequest[] = [];
	const { broker, frames } = rig(
		async function* (approvals) {
			asked.push(approvals);
			if (asked.length === 1) yield* events as EngineEvent[];
			else yield text("again");
		},
		{ limits },
	);
	const turn = await broker.execute(request()).result;
	await broker.execute(request({ runId: "run_2" })).result;
	return { turn, frames: await frames("run_1"), told: asked[1]!.messages.slice(1, -1) };
}

describe("a later turn", () => {
	test("is given signed reasoning and content where they stood", async () => {
		const { turn, frames, told } = await replayed([
			{ type: "message" },
			signed("why look"),
			...looks("c1", { type: "text", text: "here:" }, picture, page),
			{ type: "message" },
			text("A cat. "),
			text("It sleeps."),
			signed("sure", 7),
		]);
		expect(turn.status).toBe("completed");
		expect(told).toEqual([
			{
				role: "assistant",
				text: "A cat. It sleeps.",
				reasoning: [
					{ text: "why look", signature: "sig(why look)", after: 0, callsBefore: 0 },
					{ text: "sure", signature: "sig(sure)", after: 7, callsBefore: 1 },
				],
				toolCalls: [
					{
						callId: "c1",
						name: "look",
						args: { at: "c1" },
						status: "completed",
						after: 0,
						result: "here:\n[image image/png]\n<p>page",
						content: [{ type: "text", text: "here:" }, picture, page],
					},
				],
			},
		]);
		const wire = JSON.stringify(frames);
		expect(wire).not.toContain("sig(");
		expect(wire).not.toContain(picture.type === "image" && picture.data);
		expect(wire).toContain("[image image/png]");
	});

	test("gets reasoning as text only if none of it is signed, and calls stay where they were made", async () => {
		const limits = { reasoningCharsMax: 100 };
		const thought = { type: "reasoning", delta: "hm" };
		const plain = await replayed([thought, text("So: "), ...looks("c1"), text("done")], limits);
		expect(plain.told[0]).toMatchObject({ text: "[Reasoning before this answer: hm]\n\nSo: done" });
		const [call] = plain.told[0]!.toolCalls!;
		expect(plain.told[0]!.text.slice(call!.after)).toBe("done");
		const { told } = await replayed([thought, text("So: "), signed("hm", 0)], limits);
		expect(told[0]).toMatchObject({ text: "So: ", reasoning: [{ text: "hm" }] });
	});

	test("what a person is shown may differ from what the model gets", async () => {
		const done = { type: "tool", callId: "c1", name: "look", status: "completed", result: { ok: true } };
		const { told, frames } = await replayed([{ ...done, content: [picture] }]);
		expect(told[0]!.toolCalls).toMatchObject([{ result: '{"ok":true}', content: [picture] }]);
		expect(JSON.stringify(frames)).not.toContain("image/png");
	});

	test("an answer in one piece stays in one piece although something was signed", async () => {
		const { broker, frames } = rig(yields(text("a "), signed("x", 0), text("b")));
		await broker.execute(request({ disableStreaming: true })).result;
		expect((await frames("run_1")).filter(({ type }) => type === "stream.chunk")).toMatchObject([
			{ payload: "a b", is_partial: false },
		]);
	});
});

describe("I11: what a turn keeps has limits", () => {
	const room = JSON.stringify(picture).length;
	const note = (what: string) => ({ type: "text", text: `[${what}: left out, too long to be kept]` });
	const words: ContentPart = { type: "text", text: "w".repeat(room * 3) };

	test("an image that does not fit becomes a note; text and a smaller image after it are kept", async () => {
		const large: ContentPart = { ...picture, data: "A".repeat(room * 4) };
		const { turn } = await replayed([...looks("c1", picture, large, words), ...looks("c2", picture, page, page)], {
			toolContentCharsMax: room,
		});
		expect(turn.toolCalls.map(({ content }) => content)).toEqual([
			[picture, note(`image image/png, ${room * 3} bytes`), words],
			[
				picture,
				note("resource https://example.org/, 7 characters"),
				note("resource https://example.org/, 7 characters"),
			],
		]);
	});

	test("the text of one call is cut like a result, and of very many parts the first are kept", async () => {
		const many = Array.from({ length: 102 }, (): ContentPart => ({ type: "text", text: "x" }));
		const { turn } = await replayed([...looks("c1", words, words), ...looks("c2", ...many)], { toolJsonCharsMax: 200 });
		const kept = turn.toolCalls[0]!.content!.map((part) => (part.type === "text" ? part.text.length : 0));
		expect(kept[0]! + kept[1]!).toBeLessThan(400);
		expect(turn.toolCalls[1]!.content).toHaveLength(101);
		expect(turn.toolCalls[1]!.content!.at(-1)).toEqual(note("2 more parts"));
	});

	test("what an engine does with its own objects later, and what the port does not know, is not kept", async () => {
		const mine = { ...picture, secret: "field" };
		const { turn } = await replayed(looks("c1", mine));
		expect(turn.toolCalls[0]!.content).toEqual([picture]);
		expect(turn.toolCalls[0]!.content![0]).not.toBe(mine);
	});

	test("signed reasoning that does not fit is left out whole", async () => {
		const { told } = await replayed([text("x"), signed("fits"), signed("does not")], { signedReasoningCharsMax: 13 });
		expect(told[0]!.reasoning).toMatchObject([{ text: "fits" }]);
		const none = await replayed([text("x"), signed("fits")], { signedReasoningCharsMax: 0 });
		expect(none.told).toEqual([{ role: "assistant", text: "x" }]);
	});

	test("they count for the context's budget, an image as what a model pays for it", async () => {
		const long = "y".repeat(4000);
		const one = await replayed([text("x"), signed(long)], { contextTokensMax: 500 });
		expect(one.told).toEqual([]);
		const other = await replayed([...looks("c1", picture), text("x")], { contextTokensMax: 500 });
		expect(other.told).toEqual([]);
		const large: ContentPart = { ...picture, data: "A".repeat(100_000) };
		expect((await replayed([...looks("c1", large), text("x")], { contextTokensMax: 5000 })).told).toHaveLength(1);
	});
});

test.each([
	["content that is not a list", { content: "text" }],
	["an unknown part", { content: [{ type: "video", data: "" }] }],
	["an image without data", { content: [{ type: "image", contentType: "image/png" }] }],
	["a resource without an address", { content: [{ type: "resource", text: "x" }] }],
	["a resource with an invalid text", { content: [{ type: "resource", uri: "a:b", text: 5 }] }],
])("%s fails the run and says what to yield", async (_, fields) => {
	const { turn } = await replayed([{ type: "tool", callId: "c1", name: "look", status: "completed", ...fields }]);
	expect(turn).toMatchObject({
		status: "failed",
		error: { code: "engine_failed", message: expect.stringContaining("not an EngineEvent") },
	});
});

test.each([
	["no signature", { text: "a" }],
	["no text", { signature: "a" }],
	["a place before the text", { text: "a", signature: "b", after: -1 }],
])("signed reasoning with %s fails the run", async (_, fields) => {
	const { turn } = await replayed([{ type: "signed_reasoning", ...fields }]);
	expect(turn).toMatchObject({ status: "failed", error: { code: "engine_failed" } });
});
