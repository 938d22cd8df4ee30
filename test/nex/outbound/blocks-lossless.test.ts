/** I7: the block pipeline loses nothing of markdown that is hard to cut, however it arrives. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	type BlockRules,
	beginBlocks,
	type DeliveryBlock,
	stepBlocks,
} from "../../../packages/daemon/src/nex/delivery/blocks/block-step.ts";
import { normalise } from "../../adapter/normalise.ts";
import { markdown } from "../../adapter/split/arbitrary.ts";
import { atEffort } from "../../effort.ts";

const IDLE_MS = 1000;
const segments = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** The blocks of a source that comes in tokens of these sizes after these waits, and where the model fell silent. */
function blocksOf(source: string, sizes: readonly number[], waits: readonly number[], rules: BlockRules) {
	let state = beginBlocks(0);
	let now = 0;
	let wakeAt: number | undefined;
	const blocks: DeliveryBlock[] = [];
	const silences = new Set<number>();
	const take = (input: Parameters<typeof stepBlocks>[1]) => {
		const step = stepBlocks(state, input, now, rules);
		({ state, wakeAt } = step);
		blocks.push(...step.blocks);
	};
	for (let at = 0, n = 0; at < source.length; n++) {
		now += waits[n % waits.length]!;
		if (wakeAt !== undefined && wakeAt <= now) {
			take({ type: "tick" });
			silences.add(at);
		}
		const end = at + sizes[n % sizes.length]!;
		// The Broker never cuts a surrogate pair.
		const to = /[\uD800-\uDBFF]/.test(source[end - 1] ?? "") ? end + 1 : end;
		take({ type: "token", text: source.slice(at, to) });
		at = to;
	}
	take({ type: "end" });
	return { blocks, silences };
}

const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });
const rules = fc
	.record({ maxChars: fc.integer({ min: 60, max: 300 }), minChars: fc.integer({ min: 0, max: 300 }) })
	.map(({ maxChars, minChars }) => ({ maxChars, minChars: Math.min(minChars, maxChars), idleMs: IDLE_MS }));

/** Whether all characters of `wanted` are in `text`, in order. */
function isWithin(wanted: string, text: string): boolean {
	let found = 0;
	for (const char of text) if (wanted.startsWith(char, found)) found += char.length;
	return found >= wanted.length;
}

function fault(
	source: string,
	{ blocks, silences }: ReturnType<typeof blocksOf>,
	{ maxChars }: BlockRules,
	seen: (part: string) => string,
): string | undefined {
	const starts = new Set([...segments.segment(source)].map(({ index }) => index));
	// The two halves of a line end may come one after the other; neither can be seen.
	const mayBegin = (at: number) =>
		starts.has(at) || silences.has(at) || (source[at - 1] === "\r" && source[at] === "\n");
	let at = 0;
	for (const { from, to, text } of blocks) {
		if (from !== at || to <= from) return `the range ${from}–${to} does not follow ${at}`;
		if (!mayBegin(from)) return `cut inside a grapheme at ${from}`;
		if (text.length > maxChars) return `too long: ${text.length}`;
		if (!isWithin(seen(source.slice(from, to)), text)) return `lost text between ${from} and ${to}`;
		at = to;
	}
	return seen(source.slice(at)) === "" ? undefined : `covers ${at} of ${source.length}`;
}

describe("I7: blocks of adversarial markdown", () => {
	it("cover the answer in contiguous ranges, fit, and keep graphemes and text whole", () => {
		const seen = (part: string) => normalise(part).replace(/[`~>]/g, "");
		fc.assert(
			fc.property(markdown, sizes, rules, (source, lengths, figures) => {
				expect(fault(source, blocksOf(source, lengths, [0], figures), figures, seen)).toBeUndefined();
			}),
			{ numRuns: atEffort(10_000, 100) },
		);
	}, 300_000);

	it("lose no letter where the model falls silent in the middle of anything", () => {
		const waits = fc.array(fc.constantFrom(0, 5, IDLE_MS + 500), { minLength: 1, maxLength: 6 });
		const seen = (part: string) => part.replace(/[^\p{L}\p{Extended_Pictographic}]/gu, "");
		// The rest of the line that opens a code block is markup, not text.
		const unnamed = markdown.map((source) => source.replace(/(`{3,}|~{3,})[^\r\n]*/g, "$1"));
		fc.assert(
			fc.property(unnamed, sizes, waits, rules, (source, lengths, pauses, figures) => {
				expect(fault(source, blocksOf(source, lengths, pauses, figures), figures, seen)).toBeUndefined();
			}),
			{ numRuns: atEffort(2_000, 100) },
		);
	}, 300_000);
});
