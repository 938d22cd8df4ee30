/** One run as a person sees it: the result of folding its frames (PROTOCOL §3). Plain values, ready to compare or send. */

import type { EndReason, Modality, Usage, UsageShare } from "../frames/frame.ts";
import type { ToolApprovalStatus, ToolStatusEvent } from "../frames/stream-event.ts";
import type { Violation } from "../frames/verify.ts";

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
	/** The newest state of the approval or question about it. */
	approval?: ToolApprovalStatus;
	question?: ToolApprovalStatus;
	startedAt: number;
	endedAt?: number;
}

/** One value of any other modality: a card, an image, a piece of audio, something this reader does not know. */
export interface PartView extends Placed {
	messageId: string;
	/** Taken from the first chunk of the value. */
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
	/** The agent that wrote the message and its contents, in a run of several agents. */
	agent?: string;
	/** Hidden text: shown in the inspector only. Its tools are shown everywhere. */
	visible?: false;
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
	/** How it divides among agents and models, where that is known. */
	usageBy?: UsageShare[];
	startedAt?: number;
	firstTextAt?: number;
	endedAt?: number;
	/** Faults in the frames; only the first ones when there are many. */
	violations: Violation[];
}

/** Whether the words of a message are for people who chat (P3.10). */
export const isShown = ({ visible }: { visible?: boolean }): boolean => visible !== false;

/** A run as people who chat are shown it: of hidden words only the tool calls are left. */
export function shownOf(view: RunView): RunView {
	if (view.messages.every(isShown)) return view;
	const messages = view.messages.filter((message) => isShown(message) || message.tools.length > 0);
	return { ...view, messages: messages.map((message) => (isShown(message) ? message : toolsOf(message))) };
}

/** The same object for an unchanged message, so that a view need not draw it again. */
const toolsOnly = new WeakMap<MessageView, MessageView>();

function toolsOf(message: MessageView): MessageView {
	const known = toolsOnly.get(message);
	if (known) return known;
	const tools = message.tools.map((tool) => ({ ...tool, after: 0 }));
	const shown: MessageView = { ...message, text: "", reasoning: [], parts: [], tools };
	toolsOnly.set(message, shown);
	return shown;
}
