/** What a person sees of one run: the result of folding its frames (PROTOCOL §3). Plain values, ready to compare or send. */

import type { EndReason, Modality, Usage } from "./frame.ts";
import type { AskedStatus, ToolStatusEvent } from "./stream-event.ts";
import type { Violation } from "./verify.ts";

export type ViewState = "streaming" | EndReason;

/** Where a block stands: after this many characters (UTF-16 units) of its message's text. */
interface Placed {
	after: number;
}

export interface ReasoningView extends Placed {
	/** The stream's id. */
	messageId: string;
	text: string;
	state: ViewState;
	startedAt: number;
	endedAt?: number;
}

export interface ToolView extends Placed {
	messageId: string;
	callId: string;
	name: string;
	/** A call whose stream ended without an outcome has failed (P3.6). */
	status: ToolStatusEvent["status"];
	summary?: string;
	args?: unknown;
	result?: unknown;
	/** What a person is or was asked about it, as it was said last. */
	approval?: AskedStatus;
	question?: AskedStatus;
	startedAt: number;
	endedAt?: number;
}

/** One value of any other modality: a card, an image, a piece of audio, something this reader does not know. */
export interface PartView extends Placed {
	messageId: string;
	/** Of the chunk that began the value. */
	seqNo: number;
	modality: Modality;
	contentType: string;
	payload: string;
	/** False while more pieces of the value are to come. */
	complete: boolean;
}

/** One text stream and what belongs to it. Reasoning and tools in the order of their begins, parts in the order of the text. */
export interface MessageView {
	/** Empty as long as blocks came, but no text stream yet. */
	messageId: string;
	contentType: string;
	text: string;
	state: ViewState;
	/** Known once the stream has ended: count and checksum are right. */
	verified?: boolean;
	reasoning: ReasoningView[];
	tools: ToolView[];
	parts: PartView[];
	startedAt: number;
	endedAt?: number;
}

export interface RunView {
	runId?: string;
	session?: string;
	messages: MessageView[];
	/** The engine is shortening its context. */
	compacting: boolean;
	state: ViewState;
	/** The final end has come: nothing will change any more. */
	final: boolean;
	error?: { code: string; message: string };
	/** Recovery wrote the end. */
	synthetic?: boolean;
	usage?: Usage;
	startedAt?: number;
	firstTextAt?: number;
	endedAt?: number;
	/** What was wrong with the frames; the first ones, when there are many. */
	violations: Violation[];
}
