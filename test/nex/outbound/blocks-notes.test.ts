/** Blocks with tool notes: what a person reads is in the order in which it happened. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MARKDOWN_START } from "../../../packages/adapter/src/host.ts";
import { createBlocks } from "../../../packages/daemon/src/nex/delivery/blocks/block-machine.ts";
import {
	type BlockInput,
	type BlockRules,
	beginBlocks,
	type DeliveryBlock,
	stepBlocks,
} from "../../../packages/daemon/src/nex/delivery/blocks/block-step.ts";
import type { DeliveryContext } from "../../../packages/daemon/src/nex/delivery/delivery-context.ts";
import type { SourceEvent } from "../../../packages/daemon/src/nex/delivery/source.ts";
import { createRig } from "./rig.ts";

const RULES: BlockRules = { minChars: 800, maxChars: 1200, idleMs: 1000 };

function play(inputs: readonly (BlockInput & { at?: number })[], rules = RULES): DeliveryBlock[] {
	let state = beginBlocks(0);
	return inputs.flatMap(({ at = 0, ...input }) => {
		const step = stepBlocks(state, input as BlockInput, at, rules);
		({ state } = step);
		return step.blocks;
	});
}

const texts = (blocks: readonly DeliveryBlock[]) => blocks.map(({ text }) => text);
const token = (text: string) => ({ type: "token" as const, text });
const note = (text: string) => ({ type: "note" as const, text });

describe("tool notes", () => {
	it("I7: a note stands behind what was said before its tool", () => {
		const blocks = play([token("Let me check that for you."), note("[Read...]"), token("Found it."), { type: "end" }]);
		expect(texts(blocks)).toEqual(["Let me check that for you.\n\n[Read...]\n\nFound it."]);
		expect(blocks[0]).toMatchObject({ from: 0, to: 35 });
	});

	it("what was said goes out with its note when the tool takes long, and when nothing follows", () => {
		const said = [token("One moment."), note("[Read...]")];
		expect(texts(play([...said, { type: "tick", at: 999 }]))).toEqual([]);
		expect(texts(play([...said, { type: "tick", at: 1000 }, { type: "end" }]))).toEqual(["One moment.\n\n[Read...]"]);
		expect(texts(play([...said, { type: "end" }]))).toEqual(["One moment.\n\n[Read...]"]);
	});

	it("a long text before a tool is a separate message, and the note begins the next", () => {
		const blocks = play([token("a".repeat(700)), note("[Read...]"), token("Found it."), { type: "end" }]);
		expect(texts(blocks)).toEqual(["a".repeat(700), "[Read...]\n\nFound it."]);
		expect(blocks.map(({ from, to }) => [from, to])).toEqual([
			[0, 700],
			[700, 709],
		]);
	});

	it("I7: words and notes come in the order of their events, whole, once, within a message's size", () => {
		const input = fc.oneof(
			{ weight: 3, arbitrary: fc.integer({ min: 1, max: 60 }).map((length) => ({ kind: "token" as const, length })) },
			{ weight: 1, arbitrary: fc.constant({ kind: "note" as const, length: 0 }) },
			{ weight: 1, arbitrary: fc.constant({ kind: "tick" as const, length: 0 }) },
		);
		fc.assert(
			fc.property(fc.array(input, { maxLength: 30 }), fc.integer({ min: 60, max: 200 }), (given, maxChars) => {
				const inputs = given.map(({ kind, length }, n): BlockInput & { at: number } => {
					if (kind === "token") return { ...token(`w${n}${"x".repeat(length)} `), at: n };
					return kind === "note" ? { ...note(`[n${n}]`), at: n } : { type: "tick", at: n + 5000 };
				});
				const rules = { minChars: 20, maxChars, idleMs: 1000 };
				const blocks = play([...inputs, { type: "end", at: 9999 }], rules);
				const shown = blocks.map(({ text }) => text).join("\n");
				const named = [...shown.matchAll(/(?<![a-z])[wn](\d+)(?=x|\])/g)].map(([, n]) => Number(n));
				// Notes may be left out, words never.
				expect(named).toEqual(named.toSorted((a, b) => a - b));
				const words = given.flatMap(({ kind }, n) => (kind === "token" ? [n] : []));
				expect([...shown.matchAll(/w(\d+)x/g)].map(([, n]) => Number(n))).toEqual(words);
				const ends = blocks.map(({ to }) => to);
				expect(blocks.map(({ from }) => from)).toEqual([0, ...ends].slice(0, blocks.length));
				for (const { text } of blocks) expect(text.length).toBeLessThanOrEqual(maxChars);
			}),
		);
	});
});

describe("on a send-only platform", () => {
	it.each(["blocks", "mail"] as const)("I7: %s: a note is below what was said before the tool", async (flavour) => {
		const rig = createRig(flavour, {}, { streaming: { tools: true }, blocks: { humanDelayMs: null } });
		const { run, id } = await rig.begin();
		run.text("Let me check that for you.");
		run.say({ type: "tool_status", toolName: "Read", toolCallId: "t1", status: "started" });
		run.text("Found it.");
		await run.end();
		expect(await rig.outbound.settled(id)).toMatchObject({ state: "complete" });
		const shown = rig.visible("c1").join("\n\n");
		expect(shown).toMatch(/Let me check that for you\.\s+\[Read\.\.\.\]\s+Found it\./);
	});
});

const delivering = {
	live: { id: "dlv_1", row: { mode: "whole", cursor: 0, messages: [] } },
	info: { limits: { textMax: 40 }, supports: ["send"] },
	account: { config: {} },
	options: {},
	reasoning: false,
	parts: true,
} as unknown as DeliveryContext;

it.each([
	["done", { type: "stream_end", runId: "run_1", final: true }],
	["failed", { type: "stream_error", error: "broken", partial: true }],
])("whole: text over the limit, ended messages and parts wait for the end (%s)", (_how, end) => {
	const machine = createBlocks(delivering, MARKDOWN_START, { minChars: 1, maxChars: 9, idleMs: 1 });
	const events = [
		{ type: "token", text: "One sentence. ".repeat(5) },
		{ type: "stream_end", runId: "run_1", final: false },
		{ type: "token", text: "Then." },
		{ type: "part", modality: "card", contentType: "application/json", payload: '{"title":"Kettle"}' },
		{ type: "token", text: "Last." },
	];
	let offset = 0;
	const take = (event: object) => machine.take({ event, offset: ++offset, position: 0 } as SourceEvent, 0);
	for (const event of events) {
		take(event);
		expect(machine.ready()).toBeUndefined();
	}
	take(end);
	const texts: string[] = [];
	for (let block = machine.ready(); block; block = machine.ready()) texts.push(block.text);
	expect(texts.length).toBeGreaterThan(4);
	expect(texts.at(-1)).toBe("Last.");
});
