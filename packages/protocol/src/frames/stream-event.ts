/** StreamEvents: the six events that an answer is for a chat platform, in their wire spelling (PROTOCOL §2). */

export type ToolApprovalState = "pending" | "approved" | "denied" | "answered" | "expired" | "withdrawn";

/** A person is asked about a tool call, or was (P2.8). */
export interface ToolApprovalStatus {
	/** Short enough to be typed. */
	id: string;
	state: ToolApprovalState;
	/** The question as shown to people; for an approval the tool with its complete arguments, deceptive characters escaped. */
	text: string;
	/** Why a person is asked whatever the policy says; one line. */
	because?: string;
	/** It can be agreed to only this once, not for the rest of the session. */
	once?: boolean;
	choices?: readonly string[];
	/** The name of the person who decided, as shown to people. */
	by?: string;
	/** Milliseconds since the epoch. */
	expires_at: number;
}

export interface ToolStatusEvent {
	type: "tool_status";
	toolName: string;
	toolCallId: string;
	status: "started" | "progress" | "completed" | "failed";
	/** The agent that makes the call, in a run of several agents. On the wire the begin frame has it. */
	agent?: string;
	summary?: string;
	args?: unknown;
	result?: unknown;
	/** With `progress`: whether the call may act is a person's decision. */
	approval?: ToolApprovalStatus;
	/** With `progress`: the call asks a person something. */
	question?: ToolApprovalStatus;
}

export type StreamEvent =
	| { type: "stream_start"; runId: string; sessionLabel: string; target: unknown; agent?: string }
	| { type: "token"; text: string; agent?: string }
	| ToolStatusEvent
	| { type: "reasoning"; text: string; agent?: string }
	/** Not final: this agent's message has ended. */
	| { type: "stream_end"; runId: string; final?: boolean; agent?: string }
	| { type: "stream_error"; error: string; partial: boolean };

/** The payload of a chunk in a `tool` stream. */
export const encodeToolStatus = (event: ToolStatusEvent): string =>
	JSON.stringify({
		type: event.type,
		toolName: event.toolName,
		toolCallId: event.toolCallId,
		status: event.status,
		summary: event.summary,
		args: event.args,
		result: event.result,
		approval: event.approval,
		question: event.question,
	});

const TOOL_STATUSES: readonly unknown[] = [
	"started",
	"progress",
	"completed",
	"failed",
] satisfies ToolStatusEvent["status"][];

/** Reads the payload of a chunk in a `tool` stream; undefined when it is something else (P2.6). */
export function decodeToolStatus(payload: string): ToolStatusEvent | undefined {
	let value: Partial<ToolStatusEvent> | null;
	try {
		value = JSON.parse(payload);
	} catch {
		return undefined;
	}
	const valid =
		typeof value === "object" &&
		value?.type === "tool_status" &&
		typeof value.toolName === "string" &&
		typeof value.toolCallId === "string" &&
		TOOL_STATUSES.includes(value.status) &&
		(value.summary === undefined || typeof value.summary === "string") &&
		isAskedOrNone(value.approval) &&
		isAskedOrNone(value.question);
	return valid ? (value as ToolStatusEvent) : undefined;
}

const isAskedOrNone = (asked: Partial<ToolApprovalStatus> | null | undefined): boolean =>
	asked === undefined ||
	(typeof asked === "object" &&
		typeof asked?.id === "string" &&
		typeof asked.state === "string" &&
		typeof asked.text === "string" &&
		(asked.because === undefined || typeof asked.because === "string") &&
		typeof asked.expires_at === "number");

/** A tool call that has reached one of these goes no further. */
export const isToolDone = (status: ToolStatusEvent["status"]): boolean => status === "completed" || status === "failed";

/** Control and format characters (writing direction, zero width), what is drawn as nothing, line separators, and spaces that are not U+0020. */
const DECEPTIVE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/** JSON of a value that a person decides about, whole, in one line of visible characters: what could deceive a reader is escaped. */
export const shownJson = (value: unknown): string => (JSON.stringify(value) ?? "null").replace(DECEPTIVE, escaped);

/** Text from another author; keeps its line feeds. */
export const shownText = (text: string): string =>
	text.toWellFormed().replace(DECEPTIVE, (found) => (found === "\n" ? found : escaped(found)));

const escaped = (found: string): string =>
	Array.from({ length: found.length }, (_, n) => `\\u${found.charCodeAt(n).toString(16).padStart(4, "0")}`).join("");
