/** An engine whose answers a test can predict word by word. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine, EngineEvent } from "@nexus-stream/protocol/engine";
import { HOSTILE } from "./hostile.ts";

const CARD = JSON.stringify({ title: "Aligned card", price: "1 €", image: "https://foreign.invalid/pixel.png" });
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** How long a held tool works at least. */
const TOOL_MS = 400;

/** A held answer continues once the test has made a file of this name (see `release` in daemon.ts). */
async function released(gate: string, signal: AbortSignal): Promise<void> {
	const file = join(process.env.NEXUS_TEST_GATES ?? "", gate);
	while (!existsSync(file)) await sleep(10, undefined, { signal });
}

/**
 * `count <words> <ms between them> [<at once> [<gate>]]`: 1 2 3 … so that a lost or repeated word is seen.
 * The first `at once` words come without pauses; with a gate, no others come before the test releases it: never, for an answer that must still be running.
 */
async function* count(
	{ words, everyMs, atOnce, gate }: { words: number; everyMs: number; atOnce: number; gate: string | undefined },
	signal: AbortSignal,
): AsyncGenerator<EngineEvent> {
	for (let word = 1; word <= words; word += 1) {
		if (signal.aborted) return;
		yield { type: "text", delta: `${word} ` };
		if (word === atOnce && gate !== undefined) await released(gate, signal);
		if (everyMs > 0 && word >= atOnce) await sleep(everyMs, undefined, { signal });
	}
	yield { type: "usage", input: 1, output: words };
}

/** One of everything, in an order that the page has to keep. `everything <gate>`: the tool works for a while, and until the test releases it. */
async function* everything(gate: string | undefined, signal: AbortSignal): AsyncGenerator<EngineEvent> {
	yield { type: "reasoning", delta: "I think about it." };
	yield { type: "text", delta: "Before the tool.\n\n" };
	yield { type: "tool", callId: "c1", name: "look_up", status: "started", args: { query: "x" } };
	if (gate !== undefined) {
		await sleep(TOOL_MS, undefined, { signal });
		await released(gate, signal);
	}
	yield { type: "tool", callId: "c1", name: "look_up", status: "completed", summary: "found it", result: "x" };
	yield { type: "text", delta: "Before the card.\n\n" };
	yield { type: "part", modality: "card", contentType: "application/json", payload: CARD };
	yield { type: "text", delta: "Before the picture.\n\n" };
	yield { type: "part", modality: "image", contentType: "image/png", payload: PIXEL };
	yield { type: "text", delta: "The end.\n\n```js\nconst copied = 1;\n```\n" };
	yield { type: "usage", input: 3, output: 12 };
}

/** `repeat <count> <text>`: in pieces, as a model would write it. */
async function* repeat(count: number, text: string): AsyncGenerator<EngineEvent> {
	for (let left = count; left > 0; left -= 1000) yield { type: "text", delta: text.repeat(Math.min(left, 1000)) };
}

const engine: Engine = {
	name: "scripted",
	async *run({ messages }, { signal }) {
		const [word, first, second, third, fourth] = (messages.at(-1)?.text ?? "").split(" ");
		if (word === "count") {
			const plan = { words: Number(first), everyMs: Number(second), atOnce: Number(third ?? 0), gate: fourth };
			yield* count(plan, signal);
		} else if (word === "everything") yield* everything(first, signal);
		else if (word === "hostile") for (const delta of HOSTILE.match(/[\s\S]{1,7}/g) ?? []) yield { type: "text", delta };
		else if (word === "repeat") yield* repeat(Number(first), second ?? "");
		else if (word === "tool") {
			yield { type: "tool", callId: "c1", name: first ?? "", status: "started", args: {}, summary: second ?? "" };
			yield { type: "tool", callId: "c1", name: first ?? "", status: "completed", summary: second ?? "", result: "x" };
		} else if (word === "fail") throw new Error("the message asked the scripted engine to fail");
		else yield { type: "text", delta: `You said: ${messages.at(-1)?.text ?? ""}` };
	},
};

export default engine;
