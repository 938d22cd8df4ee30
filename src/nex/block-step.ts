/** The block pipeline as a pure step: text gathers until one of four rules makes a message of it (S0). Ranges are contiguous and cover the answer. */

import { type Cut, cut, type Place, type WireAttachment } from "../adapter/adapter.ts";
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
}

export interface BlockState {
	/** Everything before is in blocks. What lies between it and `from` shows nothing. */
	readonly since: number;
	readonly from: number;
	/** The source from `from` on. */
	readonly text: string;
	/** There is something to see in it. */
	readonly inked: boolean;
	readonly place: Place;
	/** How much of `text` has no paragraph's end that could end a block. */
	readonly read: number;
	/** Shown in front of the next block: no part of the source. */
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
	| { type: "tick" };

export interface BlockStep {
	state: BlockState;
	blocks: Block[];
	/** When to tick. */
	wakeAt: number | undefined;
}

export const MARKDOWN_START: Place = { containers: [], leaf: "none", inLine: false, cells: 0 };

export const beginBlocks = (from: number, place: Place = MARKDOWN_START): BlockState => ({
	...{ since: from, from, text: "", inked: false, place, read: 0, notes: [], heardAt: undefined },
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
			return awaited({ state: { ...state, notes: withNote(state.notes, input.text, rules) }, blocks: [] }, rules);
		case "end": {
			const flushed = flush(state, rules);
			// The next assistant message is markdown of its own.
			return { ...flushed, state: { ...flushed.state, place: MARKDOWN_START, notes: [] }, wakeAt: undefined };
		}
		case "flush":
			return awaited(flush(state, rules), rules);
		case "tick": {
			const due = state.heardAt !== undefined && now >= state.heardAt + rules.idleMs;
			return awaited(due ? flush(state, rules) : { state, blocks: [] }, rules);
		}
		default:
			return input satisfies never;
	}
}

const hasInk = (text: string): boolean => /\S/.test(text);

type Gathered = Omit<BlockStep, "wakeAt">;

const awaited = (gathered: Gathered, rules: BlockRules): BlockStep => {
	const { heardAt, inked } = gathered.state;
	const waits = heardAt !== undefined && inked && Number.isFinite(rules.idleMs);
	return { ...gathered, wakeAt: waits ? heardAt + rules.idleMs : undefined };
};

/** The newest, as far as they leave at least half of a block to the text. */
function withNote(notes: readonly string[], note: string, { maxChars }: BlockRules): readonly string[] {
	const kept = [...notes, note];
	while (kept.length > 0 && noteOf(kept).length > maxChars / 2) kept.shift();
	return kept;
}

const noteOf = (notes: readonly string[]): string => (notes.length === 0 ? "" : `${notes.join("\n")}\n\n`);

/** The next message of a text, notes included. A good end leaves at least `minChars`, where there is room for a choice. */
function nextPiece(state: BlockState, { minChars, maxChars }: BlockRules, more: boolean): Cut | undefined {
	const room = maxChars - noteOf(state.notes).length;
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
		const after = cut(head, 0, { fits: () => true, more: false, at: place });
		if (hasInk(head) && typeof after?.next.leaf !== "object") return { end, read };
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
	blocks.push({ from: state.since, to: end, text: noteOf(state.notes) + piece.text });
	return { ...next, since: end, from: end, text: text.slice(rest), notes: [] };
}
