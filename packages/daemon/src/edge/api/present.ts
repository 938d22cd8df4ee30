/** Ledger and Broker objects as the API's JSON. Pure. */

import type {
	AttachmentJson,
	EventJson,
	MessageJson,
	QueuedJson,
	RunJson,
	SessionJson,
	ToolCallJson,
} from "@nexus-stream/protocol";
import type { LiveRun } from "../../broker/broker.ts";
import type { InboundEvent, StoredAttachment } from "../../ledger/inbox/port.ts";
import type { SessionInfo } from "../../ledger/sessions/port.ts";
import type { StoredMessage, StoredToolCall, Turn } from "../../ledger/turns/port.ts";
import { base64Bytes } from "../../std/base64.ts";
import { defined } from "../../std/defined.ts";

const attachmentsView = (list: readonly StoredAttachment[] | undefined): AttachmentJson[] | undefined =>
	list === undefined || list.length === 0
		? undefined
		: list.map(({ name, contentType, data }) => ({ name, content_type: contentType, bytes: base64Bytes(data) }));

const messageView = (message: StoredMessage): MessageJson =>
	defined({
		role: message.role,
		text: message.text,
		message_id: message.messageId,
		event_id: message.eventId,
		agent: message.agent,
		visible: message.visible,
		attachments: attachmentsView(message.attachments),
		parts: message.parts?.map(({ contentType, ...part }) => ({ ...part, content_type: contentType })),
		reasoning: message.reasoning,
	});

/** Parses stored JSON text; a text that is not JSON is returned unchanged. */
function jsonValue(text: string | undefined): unknown {
	if (text === undefined) return undefined;
	try {
		return JSON.parse(text);
	} catch {
		return text;
	}
}

const toolCallView = (call: StoredToolCall | LiveRun["toolCalls"][number]): ToolCallJson =>
	defined({
		call_id: call.callId,
		name: call.name,
		agent: call.agent,
		args: jsonValue(call.args),
		status: call.status,
		summary: call.summary,
		result: jsonValue(call.result),
		message: call.message,
		started_at: call.startedAt,
		ended_at: call.endedAt,
	});

const runView = (run: Turn | LiveRun) => ({
	run_id: run.runId,
	session: run.session,
	engine: run.engine,
	status: run.status,
	started_at: run.startedAt,
	first_token_ms: run.firstTokenMs,
	messages: run.messages.map(messageView),
	tool_calls: run.toolCalls.map(toolCallView),
});

/** The actions a person may take on a run that was cut off; undefined for a completed run. */
export interface Offers {
	canContinue: boolean;
	canRetry: boolean;
}

export const turnView = (turn: Turn, framesAvailable: boolean, offers: Offers | undefined): RunJson =>
	defined({
		...runView(turn),
		reason: turn.reason,
		error: turn.error,
		ended_at: turn.endedAt,
		usage: turn.usage,
		usage_by: turn.usageBy,
		continues: turn.continues,
		continued_by: turn.continuedBy,
		can_continue: offers?.canContinue,
		can_retry: offers?.canRetry,
		trace: turn.trace,
		rolled_back: turn.rolledBack,
		frames_available: framesAvailable,
	});

/** A run that has not settled: what is known of its turn so far. */
export const liveView = (run: LiveRun): RunJson =>
	defined({ ...runView(run), compacting: run.compacting, continues: run.continues, frames_available: true });

export function eventView(event: InboundEvent): EventJson {
	const { disposition, origin } = event;
	return defined({
		event_id: event.eventId,
		session: event.session,
		text: event.text,
		received_at: event.receivedAt,
		disposition: disposition.state,
		run_id: "runId" in disposition ? disposition.runId : undefined,
		because: "because" in disposition ? disposition.because : undefined,
		superseded_by: "by" in disposition ? disposition.by : undefined,
		batch: event.batch,
		channel: origin?.channel,
		account: origin?.account,
		sender: origin?.sender,
		sender_name: origin?.senderName,
	});
}

export function queuedView(event: InboundEvent): QueuedJson {
	const { event_id, text, received_at, channel, account, sender, sender_name } = eventView(event);
	return defined({ event_id, text, received_at, channel, account, sender, sender_name });
}

/** The author of a message; undefined for the owner, whose own page and command line show it. */
export function writerOf(origin: EventSender | undefined) {
	if (!origin || (origin.channel === "web" && origin.sender === "owner")) return undefined;
	const { channel, account, sender, senderName } = origin;
	return defined({ channel, account, sender, sender_name: senderName });
}

type EventSender = Pick<NonNullable<InboundEvent["origin"]>, "channel" | "account" | "sender" | "senderName">;

function beginnerOf(origin: SessionInfo["origin"]) {
	const writer = writerOf(origin);
	const { type, name } = origin?.chat ?? {};
	return {
		...writer,
		group: writer && type === "group" ? (true as const) : undefined,
		chat_name: writer && typeof name === "string" ? name : undefined,
	};
}

export const sessionView = (info: SessionInfo, liveRunId: string | undefined): SessionJson =>
	defined({
		session: info.session,
		created_at: info.createdAt,
		updated_at: info.updatedAt,
		turns: info.turns,
		title: info.title,
		live_run_id: liveRunId,
		...beginnerOf(info.origin),
	});
