/** The block pipeline as a pure step: text gathers until one of four rules makes a message of it. Ranges are contiguous and cover the answer. */

import {
	type Cut,
	cut,
	isInFence,
	MARKDOWN_START,
	type Place,
	placeAfter,
	type RunFacts,
	type WireAttachment,
} from "../adapter/adapter.ts";
import type { Aside } from "./aside.ts";

export interface BlockRules {
	/** Least text before an empty line ends a block. */
	minChars: number;
	/** Most text of a block. */
	maxChars: number;
	/** Without a token for this long, what is there is sent. */
	idleMs: number;
}

export interface Block {
	/** Source positions that the text stands for. */
	from: number;
	to: number;
	/** Markdown that stands on its own. */
	text: string;
	/** It is no part of the source: `from` and `to` are the same. */
	aside?: Aside;
	/** Of the one message of a mail. */
	attachments?: readonly WireAttachment[];
	/** What the end of its text tells of the run: of the last block of a text. */
	facts?: RunFacts;
}

export interface BlockState {
	/** Everything before is in blocks. What lies between it and `from` is in `said`, or shows nothing. */
	readonly since: number;
	readonly from: number;
	/** The source from `from` on. */
	readonly text: string;
	/** There is something to see in it. */
	readonly inked: boolean;
	readonly place: Place;
	/** How much of `text` has no paragraph's end that could end a block. */
	readonly read: number;
	/** Markdown that the next block begins with: what was said before a tool, with the notes between. */
	readonly said: string;
	/** Shown behind `said` and in front of `text`: no part of the source. */
	readonly notes: readonly string[];
	/** When the last text came; undefined when none waits. */
	readonly heardAt: number | undefined;
}

export type BlockInput =
	| { type: "token"; text: string }
	/** A line about a tool, for channels that show them. */
	| { type: "note"; text: string }
	/** An assistant message, or the answer, has ended. */
	| { type: "end" }
	/** Something that is not text comes next. */
	| { type: "flush" }
	/** The text from this position on is damaged: what of it waits is not sent. */
	| { type: "drop"; from: number }
	| { type: "tick" };

export interface BlockStep {
	state: BlockState;
	blocks: Block[];
	/** When to tick. */
	wakeAt: number | undefined;
}

export const beginBlocks = (from: number, place: Place = MARKDOWN_START): BlockState => ({
	...{ since: from, from, text: "", inked: false, place, read: 0, said: "", notes: [], heardAt: undefined },
});

export function stepBlocks(state: BlockState, input: BlockInput, now: number, rules: BlockRules): BlockStep {
	switch (input.type) {
		case "token": {
			const inked = hasInk(input.text);
			const next = { ...state, text: state.text + input.text, inked: state.inked || inked, heardAt: now };
			// White space makes no message longer.
			const sized = inked ? withSize(next, rules) : { state: next, blocks: [] };
			return awaited(input.text.includes("\n") ? withParagraphs(sized, rules) : sized, rules);
		}
		case "note":
			return awaited(withNote(state, input.text, rules), rules);
		case "end": {
			const flushed = flush(state, rules);
			// The next assistant message is markdown of its own.
			return { ...flushed, state: { ...flushed.state, place: MARKDOWN_START, notes: [] }, wakeAt: undefined };
		}
		case "flush":
			return awaited(flush(state, rules), rules);
		case "drop":
			return awaited({ state: dropped(state, input.from), blocks: [] }, rules);
		case "tick": {
			const due = state.heardAt !== undefined && now >= state.heardAt + rules.idleMs;
			return awaited(due ? flush(state, rules) : { state, blocks: [] }, rules);
		}
		default:
			return input satisfies never;
	}
}

const hasInk = (text: string): boolean => /\S/.test(text);

/** What was said waits only for more of the same text. */
function dropped(state: BlockState, from: number): BlockState {
	const text = state.text.slice(0, Math.max(0, from - state.from));
	const said = from < state.from ? "" : state.said;
	return { ...state, text, inked: hasInk(text), said, notes: [], read: 0 };
}

type Gathered = Omit<BlockStep, "wakeAt">;

const awaited = (gathered: Gathered, rules: BlockRules): BlockStep => {
	const { heardAt, inked, said } = gathered.state;
	const waits = heardAt !== undefined && (inked || said !== "") && Number.isFinite(rules.idleMs);
	return { ...gathered, wakeAt: waits ? heardAt + rules.idleMs : undefined };
};

/** Behind what was said before the tool. What stands in front of a block's text leaves at least half of the block to it: the newest notes stay. */
function withNote(before: BlockState, note: string, rules: BlockRules): Gathered {
	const { state, blocks } = withSaid(before, rules);
	const tooLong = (next: BlockState) => headOf(next).length > rules.maxChars / 2;
	let next = { ...state, notes: [...state.notes, note] };
	if (state.said !== "" && tooLong(next)) next = { ...emitted(state, blocks), notes: [note] };
	while (next.notes.length > 0 && tooLong(next)) next = { ...next, notes: next.notes.slice(1) };
	return { state: next, blocks };
}

/** Moves the text to what was said; more of it than a message holds becomes blocks. */
function withSaid(state: BlockState, rules: BlockRules): Gathered {
	const blocks: Block[] = [];
	let current = state;
	while (current.inked) {
		const piece = nextPiece(current, rules, false);
		if (!piece) break;
		const isLast = !hasInk(current.text.slice(piece.to));
		if (!isLast || !hasInk(piece.text)) {
			current = taken(current, piece, blocks);
			continue;
		}
		const end = current.from + current.text.length;
		const said = headOf(current) + piece.text;
		current = { ...current, ...{ said, notes: [], from: end, text: "", inked: false, place: piece.next, read: 0 } };
	}
	return { state: current, blocks };
}

/** What was said becomes a block, with the notes behind it. */
function emitted(state: BlockState, blocks: Block[]): BlockState {
	const end = state.from + state.text.length;
	blocks.push({ from: state.since, to: end, text: headOf(state).trimEnd() });
	return { ...state, since: end, from: end, text: "", read: 0, said: "", notes: [] };
}

/** What stands in front of a block's text. */
const headOf = ({ said, notes }: Pick<BlockState, "said" | "notes">): string =>
	[...(said === "" ? [] : [said]), ...(notes.length === 0 ? [] : [notes.join("\n")])]
		.map((each) => `${each}\n\n`)
		.join("");

/** The next message of a text, notes included. A good end leaves at least `minChars`, where there is room for a choice. */
function nextPiece(state: BlockState, { minChars, maxChars }: BlockRules, more: boolean): Cut | undefined {
	const room = maxChars - headOf(state).length;
	return cut(state.text, 0, {
		...{ fits: (text) => text.length <= room, more, at: state.place, guess: room },
		...(minChars < maxChars && { prefer: minChars }),
	});
}

/** Rule 1: more than a message can hold. */
function withSize(state: BlockState, rules: BlockRules): Gathered {
	const blocks: Block[] = [];
	let current = state;
	while (current.text.length > rules.maxChars) {
		const piece = nextPiece(current, rules, true);
		if (!piece) break;
		current = taken(current, piece, blocks);
	}
	return { state: current, blocks };
}

const EMPTY_LINE = /\r?\n[ \t]*\r?\n/g;
const INK = /\S/g;

/** Rule 2: an empty line, and enough text before it. One in a code block ends no paragraph. */
function withParagraphs({ state, blocks }: Gathered, rules: BlockRules): Gathered {
	let current = state;
	const ready = [...blocks];
	for (;;) {
		const { end, read } = paragraphEnd(current, rules);
		if (end === undefined) return { state: { ...current, read }, blocks: ready };
		const flushed = flush({ ...current, text: current.text.slice(0, end) }, rules);
		const text = flushed.state.text + current.text.slice(end);
		current = { ...flushed.state, text, inked: hasInk(text), read: 0, heardAt: state.heardAt };
		ready.push(...flushed.blocks);
	}
}

/** Behind the first empty line that ends a block. Where there was none before `read`, there is none later. */
function paragraphEnd(state: BlockState, { minChars, maxChars }: BlockRules): { end?: number; read: number } {
	const { text, place } = state;
	let { read } = state;
	// Nothing but white space makes it longer than that.
	if (!state.inked || text.length > 2 * maxChars) return { read };
	EMPTY_LINE.lastIndex = Math.max(minChars, read);
	for (let found = EMPTY_LINE.exec(text); found; found = EMPTY_LINE.exec(text)) {
		const end = found.index + found[0].length;
		const head = text.slice(0, end);
		if (hasInk(head) && !isInFence(placeAfter(place, head))) return { end, read };
		// More empty lines are no better.
		INK.lastIndex = end;
		read = INK.exec(text)?.index ?? text.length;
		EMPTY_LINE.lastIndex = read;
	}
	return { read: Math.max(read, text.trimEnd().length) };
}

/** Rules 3 and 4: what is there goes out, as many messages as it needs. White space alone waits for what follows. */
function flush(state: BlockState, rules: BlockRules): Gathered {
	const blocks: Block[] = [];
	let current = state;
	while (current.inked) {
		const piece = nextPiece(current, rules, false);
		if (!piece) break;
		current = taken(current, piece, blocks);
	}
	if (current.said !== "" && !current.inked) current = emitted(current, blocks);
	return { state: { ...current, heardAt: undefined }, blocks };
}

function taken(state: BlockState, piece: Cut, blocks: Block[]): BlockState {
	const to = state.from + piece.to;
	const text = state.text.slice(piece.to);
	const next = { ...state, text, inked: hasInk(text), place: piece.next, read: 0 };
	if (!hasInk(piece.text)) return { ...next, from: to };
	// What shows nothing belongs to the block before it.
	const rest = next.inked ? 0 : text.length;
	const end = to + rest;
	blocks.push({ from: state.since, to: end, text: headOf(state) + piece.text });
	return { ...next, since: end, from: end, text: text.slice(rest), said: "", notes: [] };
}
