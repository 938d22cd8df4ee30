/** StreamEvents: the six events that an answer is for a chat platform, in their wire spelling (PROTOCOL §2). */

export interface ToolStatusEvent {
	type: "tool_status";
	toolName: string;
	toolCallId: string;
	status: "started" | "progress" | "completed" | "failed";
	/** Whose call it is, in a run of several agents. On the wire the begin says it. */
	agent?: string;
	summary?: string;
	args?: unknown;
	result?: unknown;
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
		(value.summary === undefined || typeof value.summary === "string");
	return valid ? (value as ToolStatusEvent) : undefined;
}

/** A tool call that has reached one of these goes no further. */
export const isToolDone = (status: ToolStatusEvent["status"]): boolean => status === "completed" || status === "failed";
