/** Tool status as a line below a growing message: decoration that is never part of the answer's text. */

import type { ToolStatusEvent } from "@nexus-stream/protocol";

export interface ToolCall {
	id: string;
	name: string;
	status: ToolStatusEvent["status"];
	summary: string;
}

const CALLS_SHOWN = 3;
const SUMMARY_CHARS = 80;
const STATUS_CHARS = 40;

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
			const detail = plain(summary).slice(0, SUMMARY_CHARS).toWellFormed();
			return `${SIGNS[status]} \`${plain(name)}\`${detail === "" ? "" : ` ${detail}`}`;
		})
		.join("\n");
}

/** The running tool on one line of plain text, for platforms that show it outside the messages; empty when none runs. */
export function statusLine(calls: readonly ToolCall[]): string {
	const running = calls.findLast(({ status }) => status === "started" || status === "progress");
	if (!running) return "";
	const detail = plain(running.summary || running.name);
	return `is using ${detail.slice(0, STATUS_CHARS).toWellFormed()}…`;
}

const LINE = /^[⏳✓✗] `[^`]+`.*$/u;

/** A message's text as it was without the tool lines below it. */
export function withoutToolLines(text: string): string {
	const lines = text.split("\n");
	let end = lines.length;
	while (end > 0 && LINE.test(lines[end - 1]!)) end--;
	return end === lines.length ? text : lines.slice(0, end).join("\n").trimEnd();
}

/** Names and summaries come from tools: they may not open a block or a code span. */
const plain = (text: string): string => text.replace(/[`\s]+/g, " ").trim();
