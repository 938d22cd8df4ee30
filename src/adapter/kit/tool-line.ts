/** Tool status as a line below a growing message: decoration that is never part of the answer's text. */

import type { ToolStatusEvent } from "../../protocol/protocol.ts";

export interface ToolCall {
	id: string;
	name: string;
	status: ToolStatusEvent["status"];
	summary: string;
}

const CALLS_SHOWN = 3;
const SUMMARY_CHARS = 80;

/** Keeps the newest calls; what is shown needs no more. */
export function withTool(calls: readonly ToolCall[], event: ToolStatusEvent): readonly ToolCall[] {
	const before = calls.find((call) => call.id === event.toolCallId);
	const summary = event.summary ?? before?.summary ?? "";
	const call = { id: event.toolCallId, name: event.toolName, status: event.status, summary };
	return [...calls.filter(({ id }) => id !== call.id), call].slice(-CALLS_SHOWN);
}

const SIGNS: Record<ToolStatusEvent["status"], string> = { started: "⏳", progress: "⏳", completed: "✓", failed: "✗" };

/** Markdown; empty when there is nothing to show. */
export function toolLines(calls: readonly ToolCall[]): string {
	return calls
		.map(({ name, status, summary }) => {
			const told = plain(summary).slice(0, SUMMARY_CHARS).toWellFormed();
			return `${SIGNS[status]} \`${plain(name)}\`${told === "" ? "" : ` ${told}`}`;
		})
		.join("\n");
}

/** Names and summaries come from tools: they may not open a block or a code span. */
const plain = (text: string): string => text.replace(/[`\s]+/g, " ").trim();
