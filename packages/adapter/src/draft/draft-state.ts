/** One delivery's messages as a value: the held text, the open message, the pending call. The rules are in draft.ts. */

import type { ToolStatusEvent } from "@nexus-stream/protocol";
import type { Rank } from "../gate/gate-step.ts";
import type { FitRules } from "../markdown/fit.ts";
import { type MarkdownState, START } from "../markdown/markdown-state.ts";
import { markdownStateOf, type View } from "../markdown/split.ts";
import type { DraftStyle } from "../platform/session.ts";
import type { PlatformFault, Resume, StreamStatus } from "../port.ts";
import { type ToolCall, toolLines } from "./tool-line.ts";

/** Fixed when the delivery begins. */
export interface DraftRules extends FitRules {
	style: DraftStyle;
	canEdit: boolean;
	canRemove: boolean;
	/** How a creation without an answer is cleared up: a look-up, the same nonce again within `nonceWindowMs`, or not at all. */
	lookup: "find" | "nonce" | "none";
	nonceWindowMs: number;
	/** Announce every creation and wait for the ack. */
	intent: boolean;
	/** Show tool status below a growing message. */
	tools: boolean;
	/** Previews carry tool status in a separate field. */
	toolsApart?: boolean;
	/** Tool status or the placeholder may be shown before there is text: in a message that can be taken away again, or a preview. */
	early: boolean;
	/** Text of the first message until there is text or a tool to show; empty = nothing. */
	placeholder: string;
	/** Sent as a separate message when the answer failed; empty = nothing. */
	errorText: string;
	/** `ordinal` counts the delivery's messages from 1; `from` keeps a miscounted one from taking another's name. */
	nonce(ordinal: number, from: number): string;
}

/** The platform message being written. */
export type DraftMessage =
	| { at: "none" }
	/** The daemon makes the intent durable. */
	| { at: "announced"; nonce: string; fixed: Fixed | undefined }
	/** May be created. `doubtful`: an earlier try may have created it; its nonce is said again. */
	| { at: "ready"; nonce: string; fixed: Fixed | undefined; triedAt: number | undefined; doubtful?: true }
	/** The outcome of the creation is unknown. */
	| { at: "lost"; nonce: string; fixed: Fixed | undefined }
	| OpenMessage;

/** The range of a message that is created complete, decided before it is announced: where it cannot be edited, nothing else can be said of it later. */
export interface Fixed {
	to: number;
	/** Undefined in the process that resumes it. */
	view: View | undefined;
}

export interface OpenMessage {
	at: "open";
	id: string;
	nonce: string | undefined;
	/** `fixed`: it was found again on a platform that cannot edit, so it says what it will ever say. */
	way: "edit" | "append" | "fixed";
	fixed: Fixed | undefined;
	/** Units of the held text that it shows. */
	length: number;
	/** Its text, decoration included. */
	shown: string;
	/** Its text is complete; only the platform's stream is to be closed. */
	complete: boolean;
	/** A stream of unknown content: close it, then set the text by an edit. */
	stopFirst: boolean;
	/** The place after its text. */
	next: MarkdownState;
}

export interface Draft {
	/** Source position where `text` begins. */
	readonly from: number;
	/** Everything before this position is in finished messages. What lies between it and `from` shows nothing. */
	readonly since: number;
	/** The source from `from` on, as far as it has come. */
	readonly text: string;
	/** Where in the markdown `text` begins: inside a fence, a list … */
	readonly markdown: MarkdownState;
	/** Source positions where a message has to end, ascending. */
	readonly bounds: readonly number[];
	/** The text up to the first bound has something to see. */
	readonly hasVisibleText: boolean;
	/** No message has ended yet. */
	readonly isFirst: boolean;
	/** An earlier process has shown the text up to this source position. */
	readonly seen: number;
	readonly closed: undefined | "end" | "error";
	/** The text from this source position on is not what was produced: it is taken away again. */
	readonly damagedFrom: number | undefined;
	/** Finished messages of this process, and the source positions where they begin. */
	readonly finished: readonly { id: string; from: number }[];
	/** `text` is the error text, which is not part of the source: positions do not move. */
	readonly isErrorText: boolean;
	/** Messages so far, announced ones included. */
	readonly ordinal: number;
	readonly message: DraftMessage;
	readonly ids: readonly string[];
	readonly tools: readonly ToolCall[];
	/** The tools that are visible now. */
	readonly toolsShown: readonly ToolCall[];
	readonly previews: boolean;
	/** How much text was there at the last turn. */
	readonly checked: number;
	readonly calling: Calling | undefined;
	readonly over: boolean;
}

/** The call that was last asked for, and what is true once it has succeeded. */
export interface Calling {
	call: DraftCall;
	length: number;
	done: boolean;
	next: MarkdownState;
}

export type DraftCall =
	| { type: "create" | "start"; nonce: string; markdown: string; final: boolean }
	| { type: "edit" | "append"; id: string; markdown: string; final: boolean; nonce: string }
	| { type: "stop" | "remove"; id: string; nonce: string }
	| { type: "preview"; ordinal: number; markdown: string; tools: readonly ToolCall[] }
	| { type: "find"; nonce: string; markdown: string; instead?: string };

export type DraftInput =
	/** Nothing has come yet. */
	| { type: "begin" }
	| { type: "token"; text: string }
	| ToolStatusEvent
	/** `final` false: another assistant message follows. */
	| { type: "end"; final: boolean }
	| { type: "error"; damagedFrom?: number }
	| { type: "ack"; nonce: string }
	/** It is this delivery's turn: say what to call. */
	| { type: "due" }
	| { type: "created"; messageId: string }
	/** The edit, append, stop, remove or preview succeeded. */
	| { type: "edited" }
	/** No `messageId`: it is certainly not there. */
	| { type: "found"; messageId?: string }
	/** Given up, after all retries. `last`: unknown outcomes are not retried any more. */
	| { type: "failed"; fault: PlatformFault; error: string; retryAfterMs?: number; last?: boolean };

export type DraftEffect =
	| { type: "say"; status: StreamStatus }
	/** A turn is needed, at least of this rank; requests of one delivery collapse to one. */
	| { type: "want"; rank: Rank; paced: boolean }
	| { type: "call"; call: DraftCall }
	/** Nothing more comes of this delivery. */
	| { type: "over" };

export interface DraftStep {
	draft: Draft;
	effects: DraftEffect[];
}

export const step = (draft: Draft, ...effects: DraftEffect[]): DraftStep => ({ draft, effects });

export const say = (status: StreamStatus): DraftEffect => ({ type: "say", status });

export const want = (rank: Rank, paced = true): DraftEffect => ({ type: "want", rank, paced });

export const NO_TOOLS: readonly ToolCall[] = [];

export function beginDraft(rules: DraftRules, resume?: Resume): Draft {
	const from = resume?.position ?? 0;
	return {
		from,
		since: from,
		text: "",
		markdown: markdownStateOf(resume?.carry),
		bounds: [],
		hasVisibleText: false,
		isFirst: from === 0,
		seen: resume?.shown ?? from,
		closed: undefined,
		damagedFrom: undefined,
		finished: [],
		isErrorText: false,
		ordinal: resume?.ordinal ?? 0,
		message: resume ? resumed(rules, resume) : { at: "none" },
		ids: resume?.messageId === undefined ? [] : [resume.messageId],
		tools: NO_TOOLS,
		toolsShown: NO_TOOLS,
		previews: true,
		// Visible text is not shortened: edits wait until the source has come that far.
		checked: Math.max(0, (resume?.shown ?? from) - from),
		calling: undefined,
		over: false,
	};
}

function resumed(rules: DraftRules, resume: Resume): DraftMessage {
	const { messageId, uncertain, position } = resume;
	if (messageId !== undefined) return reopened(rules, messageId, undefined, undefined);
	if (uncertain === undefined) return { at: "none" };
	const { nonce, to = position } = uncertain;
	return { at: "lost", nonce, fixed: to > position ? { to, view: undefined } : undefined };
}

/** A message that exists and says something unknown. */
export function reopened(
	rules: DraftRules,
	id: string,
	nonce: string | undefined,
	fixed: Fixed | undefined,
): OpenMessage {
	const way = rules.canEdit ? "edit" : "fixed";
	const stopFirst = rules.style === "append";
	return { at: "open", id, nonce, way, fixed, length: 0, shown: "", complete: false, stopFirst, next: START };
}

/** The text of the message being written, as far as it has come, and whether that is all of it. */
export function segmentOf(draft: Draft): { segment: string; ended: boolean } {
	const bound = draft.bounds[0];
	const segment = bound === undefined ? draft.text : draft.text.slice(0, bound - draft.from);
	return { segment, ended: isEnded(draft) };
}

export const isEnded = (draft: Draft): boolean => draft.bounds.length > 0 || draft.closed !== undefined;

/** The next finished message that says what was not produced, where it can be taken away. */
export const untrueMessage = ({ finished, damagedFrom }: Draft, { canRemove }: DraftRules): string | undefined =>
	damagedFrom !== undefined && canRemove ? finished.find(({ from }) => from >= damagedFrom)?.id : undefined;

/** Something a person would see, as far as the letters tell. */
export const isVisible = (text: string): boolean => /\S/.test(text);

/** Text of a message before the answer has any; empty = the message waits. */
export function earlyText(draft: Draft, rules: DraftRules): string {
	if (!rules.early || draft.isErrorText || isEnded(draft)) return "";
	const lines = toolLines(draft.tools);
	// The first message only: later ones begin when something was said already.
	const text = lines === "" && rules.style === "edit" && draft.isFirst ? rules.placeholder : lines;
	return rules.fits(text) ? text : "";
}

/** A message was begun before there was text, and has to end without any: what comes next may stand below something that is not of this draft. */
export function isInVain({ bounds, hasVisibleText, message, seen }: Draft, rules: DraftRules): boolean {
	if (!rules.early || rules.style !== "edit" || hasVisibleText || bounds.length === 0 || message.at === "none")
		return false;
	return message.fixed === undefined && bounds[0]! >= seen;
}

/** There is no text for the message being written, and none will come. */
export const isUnwanted = (draft: Draft, rules: DraftRules): boolean =>
	(draft.closed !== undefined && draft.text === "") || isInVain(draft, rules);
