/** The publisher's timing over all schedules: nothing lost or reordered, the gap kept, everything out at the end. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AnswerPiece } from "../../../packages/platforms/src/nostr/events.ts";
import {
	EMPTY_PUBLISHER,
	LOOK_GAPS,
	PUBLISHER_LIMITS,
	type PublisherInput,
	stepPublisher,
} from "../../../packages/platforms/src/nostr/publisher.ts";

const { gapMs, flushMsMax } = PUBLISHER_LIMITS;

type Published = AnswerPiece & { at: number; forced: boolean };

/** Plays inputs at their times, and ticks when it is asked to. */
function play(inputs: readonly (readonly [at: number, input: PublisherInput])[]) {
	let state = EMPTY_PUBLISHER;
	let wakeAt: number | undefined;
	const published: Published[] = [];
	const apply = (at: number, input: PublisherInput) => {
		const step = stepPublisher(state, input, at);
		state = step.state;
		wakeAt = undefined;
		for (const effect of step.effects) {
			if (effect.type === "wake") wakeAt = effect.at;
			else published.push({ ...effect, at, forced: input.type === "flush" || input.type === "end" });
		}
	};
	for (const [at, input] of inputs) {
		while (wakeAt !== undefined && wakeAt <= at) apply(wakeAt, { type: "tick" });
		apply(at, input);
	}
	while (wakeAt !== undefined) apply(wakeAt, { type: "tick" });
	return { published, state };
}

/** The kit brings the text at its own pace, or a little later. */
function looks(text: string, tokens: readonly { at: number; end: number }[], lateMs: readonly number[]) {
	const inputs: [number, PublisherInput][] = [];
	let end = 0;
	for (let at = 0, n = 0; end < text.length; n++) {
		const seen = tokens.findLast((token) => token.at <= at)!.end;
		if (seen > end) inputs.push([at, { type: "text", text: text.slice(0, seen) }]);
		end = seen;
		at += gapMs * LOOK_GAPS + lateMs[n % lateMs.length]!;
	}
	return inputs;
}

/** The text of a reader who received all pieces. */
const read = (pieces: readonly AnswerPiece[]): string =>
	pieces.reduce((text, { from, content }) => text.slice(0, from) + content, "");

const words = fc.constantFrom("a", "word ", "Yes. ", "No", "…", "🙂", "\n", "“Why?” ", "长句子。", "**x** ");
const move = fc.record({
	waitMs: fc.integer({ min: 0, max: 400 }),
	add: fc.array(words, { maxLength: 6 }).map((each) => each.join("")),
	flush: fc.boolean(),
	/** Rendering takes back what it showed. */
	back: fc.integer({ min: 0, max: 3 }),
});

function schedule(moves: readonly { waitMs: number; add: string; flush: boolean; back: number }[]) {
	const inputs: [number, PublisherInput][] = [];
	let at = 1000;
	let text = "";
	for (const { waitMs, add, flush, back } of moves) {
		at += waitMs;
		text = text.slice(0, text.length - back) + add;
		inputs.push([at, { type: "text", text }]);
		if (flush) inputs.push([at, { type: "flush" }]);
	}
	return { inputs, text, at };
}

describe("R2-45, R2-54, R2-122: the publisher", () => {
	it("R2-45 R2-51: loses and reorders nothing: the pieces in their order make the text, with or without an end", () => {
		fc.assert(
			fc.property(fc.array(move, { maxLength: 40 }), fc.boolean(), (moves, ends) => {
				const { inputs, text, at } = schedule(moves);
				const all: [number, PublisherInput][] = ends ? [...inputs, [at, { type: "end", text }]] : inputs;
				const { published } = play(all);
				expect(read(published)).toBe(text);
				expect(published.map(({ sequence }) => sequence)).toEqual(published.map((_, index) => index + 1));
			}),
		);
	});

	it("R2-47: keeps the gap, but for tools and the end, and is never later than the longest wait", () => {
		fc.assert(
			fc.property(fc.array(move, { maxLength: 40 }), (moves) => {
				const { inputs } = schedule(moves);
				const { published } = play(inputs);
				for (const [index, { at, forced }] of published.entries()) {
					const before = published[index - 1];
					if (before && !forced) expect(at - before.at).toBeGreaterThanOrEqual(gapMs);
				}
				const texts = inputs.filter(([, { type }]) => type === "text");
				for (const [index, [at, input]] of texts.entries()) {
					const isLast = (texts[index + 1]?.[0] ?? Number.POSITIVE_INFINITY) > at + flushMsMax;
					const out = published.filter((piece) => piece.at <= at + flushMsMax);
					if (isLast && input.type === "text") expect(read(out)).toBe(input.text);
				}
			}),
		);
	});

	it("R2-48 R2-53: publishes everything at a flush and at the end, at that moment, and nothing afterwards", () => {
		fc.assert(
			fc.property(fc.array(move, { minLength: 1, maxLength: 20 }), (moves) => {
				const { inputs, text, at } = schedule(moves.map((each) => ({ ...each, flush: true })));
				const { published, state } = play([...inputs, [at, { type: "end", text: `${text}!` }]]);
				for (const [index, [when, input]] of inputs.entries()) {
					if (input.type !== "flush") continue;
					const said = inputs[index - 1]?.[1] as Extract<PublisherInput, { type: "text" }>;
					// Later inputs of the same moment are out by then, too.
					const last = inputs.findLastIndex(([each, next]) => each === when && next.type === "flush");
					if (last === index && when < at) expect(read(published.filter((piece) => piece.at <= when))).toBe(said.text);
				}
				expect(read(published)).toBe(`${text}!`);
				expect(stepPublisher(state, { type: "text", text: "more" }, at + 1000).effects).toEqual([]);
			}),
		);
	});

	it("R2-46 R2-49 R2-122: publishes the first text at once, a sentence after the gap, other text after the adaptive wait", () => {
		const text = (said: string): PublisherInput => ({ type: "text", text: said });
		expect(play([[0, text("He")]]).published.map(({ at }) => at)).toEqual([0]);
		const sentence = play([
			[0, text("He")],
			[90, text("Hello.")],
		]);
		expect(sentence.published.map(({ at }) => at)).toEqual([0, gapMs]);
		const inside = play([
			[0, text("He")],
			[90, text("Hello. And")],
		]);
		// Where sentences end all the time, they do not all end the wait at once.
		const quick = play([
			[0, text("He")],
			[10, text(`Hello. ${"And. ".repeat(20)}`)],
		]);
		expect(quick.published.map(({ at }) => at)).toEqual([0, gapMs + 0.75 * (flushMsMax - gapMs)]);
		expect(inside.published.map(({ at }) => at)).toEqual([0, gapMs]);
		const slow = play([
			[0, text("He")],
			[90, text("Hel")],
		]);
		const fast = play([
			[0, text("He")],
			[90, text(`Hel${"o".repeat(500)}`)],
		]);
		const [slowAt, fastAt] = [slow, fast].map(({ published }) => published[1]?.at ?? Number.NaN);
		expect(slowAt).toBeLessThan(gapMs + 10);
		expect(fastAt).toBe(flushMsMax);
	});

	it("R2-78 A29: any prose at 50 tokens a second takes at most 120 publications per 1,000 tokens, and p99 is within 250 ms", () => {
		const letters = { latin: "a", accented: "é", chinese: "长" };
		const word = (script: keyof typeof letters, bytes: number): string => {
			const letter = letters[script];
			return letter.repeat(Math.max(1, Math.round(bytes / Buffer.byteLength(letter))));
		};
		const prose = fc.record({
			script: fc.constantFrom<keyof typeof letters>("latin", "accented", "chinese"),
			tokenBytes: fc.array(fc.integer({ min: 3, max: 9 }), { minLength: 1, maxLength: 30 }),
			/** One of a token each is the worst that sentences can do. */
			sentenceTokens: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 10 }),
			/** A look comes later than the pace allows, as on a machine that is busy. */
			lateMs: fc.array(fc.integer({ min: 0, max: 10 }), { minLength: 1, maxLength: 10 }),
		});
		fc.assert(
			fc.property(prose, ({ script, tokenBytes, sentenceTokens, lateMs }) => {
				const tokens: { at: number; end: number }[] = [];
				let said = "";
				let sentence = 0;
				let left = sentenceTokens[0]!;
				for (let n = 0; n < 1000; n++) {
					const isEnd = --left === 0;
					if (isEnd) left = sentenceTokens[++sentence % sentenceTokens.length]!;
					said += word(script, tokenBytes[n % tokenBytes.length]! - 1) + (isEnd ? ". " : " ");
					tokens.push({ at: n * 20, end: said.length });
				}
				const published = play([...looks(said, tokens, lateMs), [20_000, { type: "end", text: said }]]).published;
				expect(read(published)).toBe(said);
				expect(published.length).toBeLessThanOrEqual(120);
				const latencies = tokens
					.map(({ at, end }) => published.find(({ from, content }) => from + content.length >= end)!.at - at)
					.sort((one, other) => one - other);
				expect(latencies[989]).toBeLessThanOrEqual(250);
				expect(latencies.at(-1)).toBeLessThanOrEqual(flushMsMax + gapMs * LOOK_GAPS + 20);
			}),
		);
	});

	it("replaces from where rendering changed, never inside a surrogate pair", () => {
		const { published } = play([
			[0, { type: "text", text: "a **🙂" }],
			[500, { type: "text", text: "a **🙁" }],
			[1000, { type: "text", text: "a 🙂" }],
		]);
		expect(published.map(({ from, content }) => [from, content])).toEqual([
			[0, "a **🙂"],
			[4, "🙁"],
			[2, "🙂"],
		]);
	});
});
