/** A run with several agents on a terminal. */

import { PassThrough } from "node:stream";
import type { EngineEvent } from "@nexus-stream/protocol/engine";
import { expect, it } from "vitest";
import { createRunVerifier } from "../../packages/client/src/client.ts";
import { Framer } from "../../packages/daemon/src/broker/frames/framer.ts";
import { createShow, type ShowOptions } from "../../packages/daemon/src/cli/show.ts";
import { createTerminal } from "../../packages/daemon/src/cli/terminal.ts";
import { decodeFrame, encodeInjected } from "../../packages/protocol/src/protocol.ts";

/** Standard output and standard error of a run that yields these events, and its exit code. */
function shown(events: readonly EngineEvent[], options: ShowOptions = {}, note?: string) {
	const out = Object.assign(new PassThrough({ encoding: "utf8" }), { isTTY: false });
	const notes = Object.assign(new PassThrough({ encoding: "utf8" }), { isTTY: false });
	const show = createShow(createTerminal(out, notes, { NO_COLOR: "1" }), options);
	const verifier = createRunVerifier();
	let code: number | undefined;
	const sink = (text: string) => {
		const frame = decodeFrame(text);
		code = show.record({ text, frame, ...verifier.push(frame) });
	};
	const framer = new Framer({ runId: "run_1", session: "s", chunkBytesMax: 1000, toolJsonCharsMax: 1000 });
	framer.attach(sink);
	framer.open(1);
	for (const event of events) framer.take(event, 1);
	if (note !== undefined) framer.note(note, 1);
	framer.end({ reason: "completed" }, { input: -1, output: -1 }, 1);
	return { out: (out.read() as string | null) ?? "", notes: (notes.read() as string | null) ?? "", code };
}

const text = (agent: string, delta: string): EngineEvent => ({ type: "text", delta, agent });
const events: EngineEvent[] = [
	...[{ type: "message", agent: "lead", visible: false } as const, text("lead", "secret")],
	{ type: "reasoning", delta: "hidden thought", agent: "lead" },
	{ type: "tool", callId: "c", name: "route", status: "completed", agent: "lead" },
	...[{ type: "message", agent: "a" } as const, { type: "message", agent: "b" } as const],
	...[text("b", "B one. "), text("a", "A one. "), text("b", "B two."), { type: "message_end", agent: "b" } as const],
	...[text("a", "A two."), { type: "message_end", agent: "a" } as const, text("c", "C.")],
];

it("P3.11: messages of agents stand one after another, each under its agent's name", () => {
	const { out, notes, code } = shown(events);
	expect(out).toBe("A one. A two.\n\nB one. B two.\n\nC.\n");
	expect(notes.match(/\[\w+\]/g)).toEqual(["[tool]", "[a]", "[b]", "[c]"]);
	expect(code).toBe(0);
});

it("P3.10: hidden words are not shown, with --reasoning neither; --json has every frame", () => {
	const { out, notes } = shown(events, { reasoning: true });
	expect(out + notes).not.toMatch(/secret|hidden/);
	expect(notes).toContain("route completed");
	expect(shown(events, { json: true }).out).toContain("secret");
});

it("A26: says in words that a message joined the run", () => {
	const { notes } = shown([text("a", "A.")], {}, encodeInjected(["evt_1"]));
	expect(notes).toContain("[joined] ");
	expect(notes).not.toContain("characters");
});
