/** Rows of turns ⇄ turns. Pure: no statement is run here. */

import type { ContentPart, EndReason, SignedReasoning, Usage, UsageShare } from "@nexus-stream/protocol";
import { attachmentsOf } from "../inbox/rows.ts";
import { jsonText, type Row } from "../table.ts";
import type { StoredMessage, StoredPart, StoredToolCall, Trace, Turn, TurnStatus } from "./port.ts";

/** Everything a usage says beyond input and output, as JSON text; null when there is nothing. */
export function usageExtraText(usage: Usage): string | null {
	const { input: _input, output: _output, ...extra } = usage;
	for (const _ in extra) return jsonText(extra);
	return null;
}

export function turnOf(row: Row, messages: Row[], toolCalls: Row[]): Turn {
	const extra = row.usage_extra === null ? {} : (JSON.parse(String(row.usage_extra)) as Record<string, number>);
	const turn: Turn = {
		runId: String(row.run_id),
		session: String(row.session),
		engine: String(row.engine),
		status: String(row.status) as TurnStatus,
		reason: String(row.reason) as EndReason,
		startedAt: Number(row.started_at),
		endedAt: Number(row.ended_at),
		usage: { input: Number(row.usage_input), output: Number(row.usage_output), ...extra },
		messages: messages.map(messageOf),
		toolCalls: toolCalls.map(toolCallOf),
	};
	if (row.error_code !== null) turn.error = { code: String(row.error_code), message: String(row.error_message) };
	if (row.first_token_ms !== null) turn.firstTokenMs = Number(row.first_token_ms);
	if (row.rolled_back === 1) turn.rolledBack = true;
	if (row.usage_by !== null) turn.usageBy = JSON.parse(String(row.usage_by)) as UsageShare[];
	if (row.continues !== null) turn.continues = String(row.continues);
	if (row.continued_by !== null) turn.continuedBy = String(row.continued_by);
	if (row.trace !== null) turn.trace = JSON.parse(String(row.trace)) as Trace;
	return turn;
}

function messageOf(row: Row): StoredMessage {
	const message: StoredMessage = { role: row.role === "user" ? "user" : "assistant", text: String(row.text) };
	if (row.message_id !== null) message.messageId = String(row.message_id);
	if (row.agent !== null) message.agent = String(row.agent);
	if (row.hidden === 1) message.visible = false;
	if (row.event_id !== null) message.eventId = String(row.event_id);
	if (row.parts !== null) message.parts = JSON.parse(String(row.parts)) as StoredPart[];
	if (row.reasoning !== null) message.reasoning = String(row.reasoning);
	if (row.signed_reasoning !== null)
		message.signedReasoning = JSON.parse(String(row.signed_reasoning)) as SignedReasoning[];
	const attachments = attachmentsOf(row.attachments);
	if (attachments.length > 0) message.attachments = attachments;
	return message;
}

function toolCallOf(row: Row): StoredToolCall {
	const call: StoredToolCall = {
		callId: String(row.call_id),
		name: String(row.name),
		status: row.status === "completed" ? "completed" : "failed",
		message: Number(row.message),
		startedAt: Number(row.started_at),
		endedAt: Number(row.ended_at),
	};
	if (row.agent !== null) call.agent = String(row.agent);
	if (row.args !== null) call.args = String(row.args);
	if (row.summary !== null) call.summary = String(row.summary);
	if (row.result !== null) call.result = String(row.result);
	if (row.content !== null) call.content = JSON.parse(String(row.content)) as ContentPart[];
	if (row.after_chars !== null) call.after = Number(row.after_chars);
	return call;
}
