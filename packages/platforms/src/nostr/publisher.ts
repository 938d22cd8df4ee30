/**
 * When a growing answer is published, as a pure step. Two publications are at least `gapMs` apart; the wait grows to `flushMsMax` with the
 * content rate; the end of a sentence shortens the wait but not the gap; tools and the end of the answer wait for nothing.
 *
 * The state holds the whole text and how much of it is out, not buffers: whatever triggers a publication takes everything that is not out yet,
 * so two triggers at once can neither lose text nor publish it twice.
 */

import { PlatformError } from "@nexus-stream/adapter";
import type { AnswerPiece } from "./events.ts";

export interface PublisherLimits {
	gapMs: number;
	flushMsMax: number;
	/** UTF-8 bytes a second at which the wait is `flushMsMax`: a model's token has about as many in any script. */
	fastBytesPerSecond: number;
}

export const PUBLISHER_LIMITS: PublisherLimits = { gapMs: 100, flushMsMax: 200, fastBytesPerSecond: 100 };

/** How often new text is looked at, in gaps: what waits for a look is late by that much. */
export const LOOK_GAPS = 0.2;

const GAP_MS_MIN = 50;
const FLUSH_MS_MAX = 10_000;

export function readLimits(gap: string | undefined, max: string | undefined): PublisherLimits {
	const gapMs = Number(gap || PUBLISHER_LIMITS.gapMs);
	const flushMsMax = Number(max || Math.max(gapMs, PUBLISHER_LIMITS.flushMsMax));
	if (gapMs >= GAP_MS_MIN && flushMsMax >= gapMs && flushMsMax <= FLUSH_MS_MAX) {
		return { ...PUBLISHER_LIMITS, gapMs, flushMsMax };
	}
	const range = `from ${GAP_MS_MIN} to ${FLUSH_MS_MAX}`;
	throw new PlatformError("invalid", `flush_ms and flush_ms_max must be ${range}, and flush_ms not the longer one.`);
}

export interface PublisherState {
	readonly text: string;
	readonly published: string;
	readonly sequence: number;
	/** Undefined: nothing is out yet. */
	readonly publishedAt: number | undefined;
	/** Text was last added then. */
	readonly grewAt: number | undefined;
	/** Smoothed. */
	readonly bytesPerSecond: number;
	readonly ended: boolean;
}

export const EMPTY_PUBLISHER: PublisherState = {
	text: "",
	published: "",
	sequence: 0,
	publishedAt: undefined,
	grewAt: undefined,
	bytesPerSecond: 0,
	ended: false,
};

export type PublisherInput =
	/** The whole text so far. */
	| { type: "text"; text: string }
	/** A tool runs or has ended: what was said before it is to be seen now. */
	| { type: "flush" }
	| { type: "end"; text: string }
	| { type: "tick" };

export type PublisherEffect = ({ type: "publish" } & AnswerPiece) | { type: "wake"; at: number };

export function stepPublisher(
	before: PublisherState,
	input: PublisherInput,
	now: number,
	limits: PublisherLimits = PUBLISHER_LIMITS,
): { state: PublisherState; effects: PublisherEffect[] } {
	if (before.ended) return { state: before, effects: [] };
	const state = "text" in input ? withText(before, input.text, now) : before;
	const ended = input.type === "end";
	if (state.text === state.published) return { state: { ...state, ended }, effects: [] };
	if (ended || input.type === "flush") return publish({ ...state, ended }, now);
	const { at, freshAt } = dueAt(state, now, limits);
	const isDue = now >= (input.type === "text" ? freshAt : at);
	return isDue ? publish(state, now) : { state, effects: [{ type: "wake", at }] };
}

/** A quarter of each measurement counts: one large chunk is not a fast stream. */
const SMOOTHING = 0.25;

function withText(state: PublisherState, text: string, now: number): PublisherState {
	if (text === state.text) return state;
	const added = Buffer.byteLength(text.slice(state.text.length));
	const elapsedMs = state.grewAt === undefined ? undefined : Math.max(1, now - state.grewAt);
	const measured = elapsedMs === undefined ? 0 : (added * 1000) / elapsedMs;
	const bytesPerSecond = state.bytesPerSecond + SMOOTHING * (measured - state.bytesPerSecond);
	return { ...state, text, bytesPerSecond, grewAt: now };
}

/** A fast answer ends sentences all the time; publishing each after the gap would defeat the wait. */
const SENTENCE_SHARE = 0.75;
/** Text that is new after this much of the wait is published at once: the next text would be too late, and wait for another time. */
const FRESH_SHARE = 0.9;

/** `freshAt` is for text that comes now. */
function dueAt(state: PublisherState, now: number, limits: PublisherLimits): { at: number; freshAt: number } {
	const { text, published, publishedAt, bytesPerSecond } = state;
	if (publishedAt === undefined) return { at: now, freshAt: now };
	const { gapMs, flushMsMax, fastBytesPerSecond } = limits;
	const share = Math.min(1, bytesPerSecond / fastBytesPerSecond);
	const after = (part: number) => gapMs + (flushMsMax - gapMs) * part;
	if (SENTENCE_END.test(text.slice(commonLength(published, text)))) {
		const at = publishedAt + after(SENTENCE_SHARE * Math.max(0, 2 * share - 1));
		return { at, freshAt: at };
	}
	const waitMs = after(share);
	return { at: publishedAt + waitMs, freshAt: publishedAt + Math.max(gapMs, FRESH_SHARE * waitMs) };
}

/** Ellipses, closing quotes and full-width stops count, too. */
const SENTENCE_END = /[.!?…]["'”’»)\]]*(?:\s|$)|[。！？]|\n/u;

function publish(state: PublisherState, now: number): ReturnType<typeof stepPublisher> {
	const { text, published } = state;
	const from = commonLength(published, text);
	const sequence = state.sequence + 1;
	return {
		state: { ...state, published: text, publishedAt: now, sequence },
		effects: [{ type: "publish", from, content: text.slice(from), sequence }],
	};
}

/** Rendering may change what is out: a mark that turns out to be one disappears. Never inside a surrogate pair. */
function commonLength(a: string, b: string): number {
	if (b.startsWith(a)) return a.length;
	let length = 0;
	while (length < a.length && length < b.length && a.charCodeAt(length) === b.charCodeAt(length)) length++;
	const last = a.charCodeAt(length - 1);
	return length > 0 && last >= 0xd800 && last <= 0xdbff ? length - 1 : length;
}
