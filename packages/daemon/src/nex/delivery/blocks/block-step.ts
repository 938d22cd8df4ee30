/** The block pipeline as a pure step: text gathers until one of four rules makes a message of it. Ranges are contiguous and cover the answer. */

import {
	cut,
	isInFence,
	MARKDOWN_START,
	type MarkdownCut,
	type MarkdownState,
	type RunFacts,
	stateAfter,
	type WireAttachment,
} from "@nexus-stream/adapter/host";
import type { DeliveryAttachment } from "../attachments/attachment.ts";

export interface BlockRules {
	/** Least text before an empty line ends a block. */
	minChars: number;
	/** Most text of a block. */
	maxChars: number;
	/** Without a token for this long, what is there is sent. */
	idleMs: number;
}

export interface DeliveryBlock {
	/** Source positions that the text stands for. */
	from: number;
	to: number;
	/** Markdown that stands on its own. */
	text: string;
	/** It is no part of the source: `from` and `to` are the same. */
	attachment?: DeliveryAttachment;
	/** Of the one message of a mail. */
	attachments?: readonly WireAttachment[];
	/** What the end of its text tells of the run: of the last block of a text. */
	facts?: RunFacts;
}

export interface BlockState {
	/** Everything before is in blocks. What lies between it and `from` is in `preceding`, or shows nothing. */
	readonly since: number;
	readonly from: number;
	/** The source from `from` on. */
	readonly text: string;
	/** There is something to see in it. */
	readonly hasVisibleText: boolean;
	readonly markdown: MarkdownState;
	/** How much of `text` has no paragraph's end that could end a block. */
	readonly read: number;
	/** Markdown that the next block begins with: what was said before a tool, with the notes between. */
	readonly preceding: string;
	/** Shown behind `preceding` and in front of `text`: no part of the source. */
	readonly notes: readonly string[];
	/** When the last text came; undefined when none waits. */
	readonly receivedAt: number | undefined;
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
	blocks: DeliveryBlock[];
	/** When to tick. */
	wakeAt: number | undefined;
}

export const beginBlocks = (from: number, markdown: MarkdownState = MARKDOWN_START): BlockState => ({
	since: from,
	from,
	text: "",
	hasVisibleText: false,
	markdown,
	read: 0,
	preceding: "",
	notes: [],
	receivedAt: undefined,
});

export function stepBlocks(state: BlockState, input: BlockInput, now: number, rules: BlockRules): BlockStep {
	switch (input.type) {
		case "token": {
			const hasVisibleText = isVisible(input.text);
			const next = {
				...state,
				text: state.text + input.text,
				hasVisibleText: state.hasVisibleText || hasVisibleText,
				receivedAt: now,
			};
			// White space makes no message longer.
			const sized = hasVisibleText ? withSize(next, rules) : { state: next, blocks: [] };
			return awaited(input.text.includes("\n") ? withParagraphs(sized, rules) : sized, rules);
		}
		case "note":
			return awaited(withNote(state, input.text, rules), rules);
		case "end": {
			const flushed = flush(state, rules);
			// The next assistant message is markdown of its own.
			return { ...flushed, state: { ...flushed.state, markdown: MARKDOWN_START, notes: [] }, wakeAt: undefined };
		}
		case "flush":
			return awaited(flush(state, rules), rules);
		case "drop":
			return awaited({ state: dropped(state, input.from), blocks: [] }, rules);
		case "tick": {
			const due = state.receivedAt !== undefined && now >= state.receivedAt + rules.idleMs;
			return awaited(due ? flush(state, rules) : { state, blocks: [] }, rules);
		}
		default:
			return input satisfies never;
	}
}

const isVisible = (text: string): boolean => /\S/.test(text);

/** What was said waits only for more of the same text. */
function dropped(state: BlockState, from: number): BlockState {
	const text = state.text.slice(0, Math.max(0, from - state.from));
	const preceding = from < state.from ? "" : state.preceding;
	return { ...state, text, hasVisibleText: isVisible(text), preceding, notes: [], read: 0 };
}

type Gathered = Omit<BlockStep, "wakeAt">;

const awaited = (gathered: Gathered, rules: BlockRules): BlockStep => {
	const { receivedAt, hasVisibleText, preceding } = gathered.state;
	const waits = receivedAt !== undefined && (hasVisibleText || preceding !== "") && Number.isFinite(rules.idleMs);
	return { ...gathered, wakeAt: waits ? receivedAt + rules.idleMs : undefined };
};

/** Behind what was said before the tool. What stands in front of a block's text leaves at least half of the block to it: the newest notes stay. */
function withNote(before: BlockState, note: string, rules: BlockRules): Gathered {
	const { state, blocks } = withPreceding(before, rules);
	const tooLong = (next: BlockState) => headOf(next).length > rules.maxChars / 2;
	let next = { ...state, notes: [...state.notes, note] };
	if (state.preceding !== "" && tooLong(next)) next = { ...emitted(state, blocks), notes: [note] };
	while (next.notes.length > 0 && tooLong(next)) next = { ...next, notes: next.notes.slice(1) };
	return { state: next, blocks };
}

/** Moves the text to what was said; more of it than a message holds becomes blocks. */
function withPreceding(state: BlockState, rules: BlockRules): Gathered {
	const blocks: DeliveryBlock[] = [];
	let current = state;
	while (current.hasVisibleText) {
		const piece = nextPiece(current, rules, false);
		if (!piece) break;
		const isLast = !isVisible(current.text.slice(piece.to));
		if (!isLast || !isVisible(piece.text)) {
			current = taken(current, piece, blocks);
			continue;
		}
		const end = current.from + current.text.length;
		const preceding = headOf(current) + piece.text;
		current = {
			...current,
			preceding,
			notes: [],
			from: end,
			text: "",
			hasVisibleText: false,
			markdown: piece.next,
			read: 0,
		};
	}
	return { state: current, blocks };
}

/** What was said becomes a block, with the notes behind it. */
function emitted(state: BlockState, blocks: DeliveryBlock[]): BlockState {
	const end = state.from + state.text.length;
	blocks.push({ from: state.since, to: end, text: headOf(state).trimEnd() });
	return { ...state, since: end, from: end, text: "", read: 0, preceding: "", notes: [] };
}

/** What stands in front of a block's text. */
const headOf = ({ preceding, notes }: Pick<BlockState, "preceding" | "notes">): string =>
	[...(preceding === "" ? [] : [preceding]), ...(notes.length === 0 ? [] : [notes.join("\n")])]
		.map((each) => `${each}\n\n`)
		.join("");

/** The next message of a text, notes included. A good end leaves at least `minChars`, where there is room for a choice. */
function nextPiece(state: BlockState, { minChars, maxChars }: BlockRules, more: boolean): MarkdownCut | undefined {
	const room = maxChars - headOf(state).length;
	return cut(state.text, 0, {
		fits: (text) => text.length <= room,
		more,
		at: state.markdown,
		guess: room,
		prefer: minChars < maxChars ? minChars : undefined,
	});
}

/** Rule 1: more than a message can hold. */
function withSize(state: BlockState, rules: BlockRules): Gathered {
	const blocks: DeliveryBlock[] = [];
	let current = state;
	while (current.text.length > rules.maxChars) {
		const piece = nextPiece(current, rules, true);
		if (!piece) break;
		current = taken(current, piece, blocks);
	}
	return { state: current, blocks };
}

const EMPTY_LINE = /\r?\n[ \t]*\r?\n/g;
const VISIBLE = /\S/g;

/** Rule 2: an empty line, and enough text before it. One in a code block ends no paragraph. */
function withParagraphs({ state, blocks }: Gathered, rules: BlockRules): Gathered {
	let current = state;
	const ready = [...blocks];
	for (;;) {
		const { end, read } = paragraphEnd(current, rules);
		if (end === undefined) return { state: { ...current, read }, blocks: ready };
		const flushed = flush({ ...current, text: current.text.slice(0, end) }, rules);
		const text = flushed.state.text + current.text.slice(end);
		current = { ...flushed.state, text, hasVisibleText: isVisible(text), read: 0, receivedAt: state.receivedAt };
		ready.push(...flushed.blocks);
	}
}

/** Behind the first empty line that ends a block. Where there was none before `read`, there is none later. */
function paragraphEnd(state: BlockState, { minChars, maxChars }: BlockRules): { end?: number; read: number } {
	const { text, markdown } = state;
	let { read } = state;
	// Nothing but white space makes it longer than that.
	if (!state.hasVisibleText || text.length > 2 * maxChars) return { read };
	EMPTY_LINE.lastIndex = Math.max(minChars, read);
	for (let found = EMPTY_LINE.exec(text); found; found = EMPTY_LINE.exec(text)) {
		const end = found.index + found[0].length;
		const head = text.slice(0, end);
		if (isVisible(head) && !isInFence(stateAfter(markdown, head))) return { end, read };
		// More empty lines are no better.
		VISIBLE.lastIndex = end;
		read = VISIBLE.exec(text)?.index ?? text.length;
		EMPTY_LINE.lastIndex = read;
	}
	return { read: Math.max(read, text.trimEnd().length) };
}

/** Rules 3 and 4: what is there goes out, as many messages as it needs. White space alone waits for what follows. */
function flush(state: BlockState, rules: BlockRules): Gathered {
	const blocks: DeliveryBlock[] = [];
	let current = state;
	while (current.hasVisibleText) {
		const piece = nextPiece(current, rules, false);
		if (!piece) break;
		current = taken(current, piece, blocks);
	}
	if (current.preceding !== "" && !current.hasVisibleText) current = emitted(current, blocks);
	return { state: { ...current, receivedAt: undefined }, blocks };
}

function taken(state: BlockState, piece: MarkdownCut, blocks: DeliveryBlock[]): BlockState {
	const to = state.from + piece.to;
	const text = state.text.slice(piece.to);
	const next = { ...state, text, hasVisibleText: isVisible(text), markdown: piece.next, read: 0 };
	if (!isVisible(piece.text)) return { ...next, from: to };
	// What shows nothing belongs to the block before it.
	const rest = next.hasVisibleText ? 0 : text.length;
	const end = to + rest;
	blocks.push({ from: state.since, to: end, text: headOf(state) + piece.text });
	return { ...next, since: end, from: end, text: text.slice(rest), preceding: "", notes: [] };
}
