/** The block pipeline as a pure step: text is collected until one of four rules makes it a message. Ranges are contiguous and cover the answer. */

import {
	cut,
	isInFence,
	MARKDOWN_START,
	type MarkdownCut,
	type MarkdownState,
	stateAfter,
} from "@nexus-stream/adapter/host";
import type { RunFacts, WireAttachment } from "@nexus-stream/adapter/port";
import type { DeliveryAttachment } from "../attachments/attachment.ts";
import type { SourceEvent } from "../source.ts";

export interface BlockRules {
	/** Minimum text before an empty line ends a block. */
	minChars: number;
	/** Maximum text of a block. */
	maxChars: number;
	/** After this long without a token, the collected text is sent. */
	idleMs: number;
}

export interface DeliveryBlock {
	/** Source positions of the text. */
	from: number;
	to: number;
	/** Markdown that can be read by itself. */
	text: string;
	/** Not part of the source: `from` and `to` are equal. */
	attachment?: DeliveryAttachment;
	/** The files of a mail. */
	attachments?: readonly WireAttachment[];
	/** Facts of the run from the end of the text; only the last block of a text has them. */
	facts?: RunFacts;
}

export interface BlockMachine {
	take(event: SourceEvent, now: number): void;
	/** `wakeAt` has come. */
	tick(now: number): void;
	/** When `tick` is needed. */
	readonly wakeAt: number | undefined;
	/** The next message that is ready; each is returned once. */
	ready(): DeliveryBlock | undefined;
}

export interface BlockState {
	/** Everything before this position is in blocks. Text between it and `from` is in `preceding`, or invisible. */
	readonly since: number;
	readonly from: number;
	/** The source from `from` on. */
	readonly text: string;
	/** `text` is not only white space. */
	readonly hasVisibleText: boolean;
	readonly markdown: MarkdownState;
	/** How far `text` was searched for the end of a paragraph. */
	readonly read: number;
	/** Markdown that the next block begins with: the text before a tool, with earlier notes. */
	readonly preceding: string;
	/** Shown after `preceding` and before `text`; not part of the source. */
	readonly notes: readonly string[];
	/** When the last text arrived; undefined when no text waits. */
	readonly receivedAt: number | undefined;
}

export type BlockInput =
	| { type: "token"; text: string }
	/** A line about a tool, for channels that show tools. */
	| { type: "note"; text: string }
	/** An assistant message, or the answer, has ended. */
	| { type: "end" }
	/** An attachment follows. */
	| { type: "flush" }
	/** The text from this position on is damaged: the part of it that still waits is dropped. */
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
			// White space alone never fills a message.
			const sized = hasVisibleText ? withSize(next, rules) : { state: next, blocks: [] };
			return awaited(input.text.includes("\n") ? withParagraphs(sized, rules) : sized, rules);
		}
		case "note":
			return awaited(withNote(state, input.text, rules), rules);
		case "end": {
			const flushed = flush(state, rules);
			// The next assistant message is a separate markdown document.
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

/** `preceding` is dropped as well when the damage begins before `text`. */
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

/** Adds a note after the text so far. Notes and preceding text take at most half of a block; the oldest notes are dropped first. */
function withNote(before: BlockState, note: string, rules: BlockRules): Gathered {
	const { state, blocks } = withPreceding(before, rules);
	const tooLong = (next: BlockState) => headOf(next).length > rules.maxChars / 2;
	let next = { ...state, notes: [...state.notes, note] };
	if (state.preceding !== "" && tooLong(next)) next = { ...emitted(state, blocks), notes: [note] };
	while (next.notes.length > 0 && tooLong(next)) next = { ...next, notes: next.notes.slice(1) };
	return { state: next, blocks };
}

/** Moves the text to `preceding`; text that exceeds a message becomes blocks. */
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

/** Makes `preceding` and its notes a block. */
function emitted(state: BlockState, blocks: DeliveryBlock[]): BlockState {
	const end = state.from + state.text.length;
	blocks.push({ from: state.since, to: end, text: headOf(state).trimEnd() });
	return { ...state, since: end, from: end, text: "", read: 0, preceding: "", notes: [] };
}

/** The part of a block before its text. */
const headOf = ({ preceding, notes }: Pick<BlockState, "preceding" | "notes">): string =>
	[...(preceding === "" ? [] : [preceding]), ...(notes.length === 0 ? [] : [notes.join("\n")])]
		.map((each) => `${each}\n\n`)
		.join("");

/** The next message of a text, notes included. Prefers a cut after at least `minChars`. */
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

/** Rule 1: the text exceeds a message. */
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

/** Rule 2: an empty line with enough text before it. An empty line in a code block does not end a paragraph. */
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

/** The position after the first empty line that ends a block. The text before `read` was searched already. */
function paragraphEnd(state: BlockState, { minChars, maxChars }: BlockRules): { end?: number; read: number } {
	const { text, markdown } = state;
	let { read } = state;
	// Only white space makes the text longer than this.
	if (!state.hasVisibleText || text.length > 2 * maxChars) return { read };
	EMPTY_LINE.lastIndex = Math.max(minChars, read);
	for (let found = EMPTY_LINE.exec(text); found; found = EMPTY_LINE.exec(text)) {
		const end = found.index + found[0].length;
		const head = text.slice(0, end);
		if (isVisible(head) && !isInFence(stateAfter(markdown, head))) return { end, read };
		// Skip further empty lines.
		VISIBLE.lastIndex = end;
		read = VISIBLE.exec(text)?.index ?? text.length;
		EMPTY_LINE.lastIndex = read;
	}
	return { read: Math.max(read, text.trimEnd().length) };
}

/** Rules 3 and 4: sends all collected text, in as many messages as it needs. White space alone waits for more text. */
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
	// Trailing white space belongs to the block before it.
	const rest = next.hasVisibleText ? 0 : text.length;
	const end = to + rest;
	blocks.push({ from: state.since, to: end, text: headOf(state) + piece.text });
	return { ...next, since: end, from: end, text: text.slice(rest), preceding: "", notes: [] };
}

const NOTE_CHARS_MAX = 80;

/** A line about a running tool. The name comes from the tool, so it must not be read as markdown. */
export const toolNote = (name: string): string =>
	`[${name
		.replace(/[`\s]+/g, " ")
		.trim()
		.slice(0, NOTE_CHARS_MAX)
		.toWellFormed()}...]`;
