/** Streaming that an engine or a request has disabled: each message is one chunk, complete in itself (P1.14). */

import type { Engine, EngineEvent } from "@nexus-stream/protocol/engine";
import { expect, test } from "vitest";
import { ABORTED, COMPLETED, type Ending } from "../../../packages/daemon/src/broker/ending.ts";
import { Framer } from "../../../packages/daemon/src/broker/frames/framer.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { decodeFrame, type Frame } from "../../../packages/protocol/src/protocol.ts";
import { started, text, verified, yields } from "../../broker/rig.ts";
import { nexRig, telegram } from "./rig.ts";

const options = { runId: "run_1", session: "main", chunkBytesMax: 64, toolJsonCharsMax: 1000, whole: true };

function chunksOf(events: readonly EngineEvent[], ending: Ending = COMPLETED) {
	const frames: Frame[] = [];
	const sink = (record: string) => void frames.push(decodeFrame(record));
	const framer = new Framer(options);
	framer.streams.attach(sink);
	framer.open(1);
	for (const event of events) framer.take(event, 1);
	framer.end(ending, { input: -1, output: -1 }, 1);
	expect(verified(frames)).toBeUndefined();
	const texts = new Set(
		frames.flatMap((f) => (f.type === "stream.begin" && f.modality === "text" ? f.message_id : [])),
	);
	return frames.flatMap((f) =>
		f.type === "stream.chunk" && texts.has(f.message_id) ? [[f.payload, f.is_partial]] : [],
	);
}

test("P1.14: a message is one chunk that is complete in itself", () => {
	const events = [text("a"), text("b"), { type: "message" } as const, text("c\ud83d"), text("\ude42")];
	expect(chunksOf(events)).toEqual([
		["ab", false],
		["c🙂", false],
	]);
});

test("what comes before a tool is not the whole message, nor is what was stopped or is too long for one chunk", () => {
	expect(chunksOf([text("a"), started("c"), text("b")])).toEqual([
		["a", true],
		["b", true],
	]);
	expect(chunksOf([text("a")], ABORTED)).toEqual([["a", true]]);
	expect(chunksOf([text("x".repeat(100))]).every(([, partial]) => partial)).toBe(true);
});

const play = yields(text("one "), text("two"));

test.each<[string, Pick<Engine, "disableStreaming">, object, boolean]>([
	["an engine", { disableStreaming: true }, {}, true],
	["an engine, for this message", { disableStreaming: ({ text: asked }) => asked === "long" }, {}, true],
	["an engine, for another message", { disableStreaming: ({ text: asked }) => asked !== "long" }, {}, false],
	["a request", {}, { disableStreaming: true }, true],
	["nobody", {}, {}, false],
])("%s disables streaming, and the delivery has the option", async (_who, params, approvals, inOnePiece) => {
	const { nex, hear, runSettled, frames, asked } = nexRig(play, {
		engine: params,
		config: telegram({ session: "main" }),
	});
	const isClients = Object.keys(approvals).length > 0;
	const { runId } = isClients ? await nex.receive({ session: "main", text: "long", ...approvals }) : await hear("long");
	await runSettled(runId!);
	const chunks = (await frames(runId!)).filter((frame) => frame.type === "stream.chunk");
	expect(chunks.map(({ payload, is_partial }) => [payload, is_partial])).toEqual(
		inOnePiece
			? [["one two", false]]
			: [
					["one ", true],
					["two", true],
				],
	);
	if (!isClients) expect(asked).toMatchObject([{ options: { disableStreaming: inOnePiece } }]);
});

test("an engine that fails when it is asked streams, and the log tells why", async () => {
	const told: object[] = [];
	const log = { ...silentLog, error: (facts: object) => void told.push(facts) };
	const failing = {
		disableStreaming() {
			throw new Error("no answer");
		},
	};
	const { nex, runSettled, look } = nexRig(play, { engine: failing, log });
	const { runId } = await nex.receive({ session: "main", text: "hello" });
	await runSettled(runId!);
	expect(look.turn(runId!)).toMatchObject({ status: "completed" });
	expect(told).toMatchObject([{ session: "main", err: { message: "no answer" } }]);
});
