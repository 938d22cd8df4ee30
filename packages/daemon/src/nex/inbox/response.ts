/** A finished run as plugins see it: the whole answer, the results of its deliveries, and durations. Pure. */

import { isShown } from "@nexus-stream/protocol";
import type { Delivery } from "../../ledger/deliveries/port.ts";
import type { StoredToolCall, Turn } from "../../ledger/turns/port.ts";
import type { DeliveryResult, HookResponse, HookToolCall } from "../plugins/port.ts";

export interface RunOutcome {
	turn: Turn;
	/** The deliveries that have ended. */
	deliveries: readonly Delivery[];
	/** Chunks of all streams of the run. */
	chunks: number;
}

export function responseOf({ turn, deliveries, chunks }: RunOutcome): HookResponse {
	const answers = turn.messages.filter((message) => message.role === "assistant" && isShown(message));
	const messages = deliveries.flatMap((delivery) => delivery.messages);
	return {
		text: answers.map((message) => message.text).join("\n\n"),
		status: turn.status,
		error: turn.error,
		toolCalls: turn.toolCalls.map(toolCallOf),
		parts: answers.flatMap((message) => message.parts ?? []),
		usage: turn.usage,
		latencyMs: turn.endedAt - turn.startedAt,
		deliveries: deliveries.map(resultOf),
		metrics: {
			firstTokenMs: turn.firstTokenMs,
			chunks,
			edits: messages.reduce((sum, { edits = 0 }) => sum + edits, 0),
			deliveryMs: Math.max(0, ...deliveries.map(({ createdAt, endedAt = createdAt }) => endedAt - createdAt)),
		},
	};
}

function toolCallOf({ callId, name, status, args, summary, result }: StoredToolCall): HookToolCall {
	return {
		callId,
		name,
		status,
		args: args === undefined ? undefined : (JSON.parse(args) as unknown),
		summary,
		result: result === undefined ? undefined : (JSON.parse(result) as unknown),
	};
}

const resultOf = ({ id, channel, account, state, mode, messages, error }: Delivery): DeliveryResult => ({
	id,
	channel,
	account,
	success: state === "complete",
	streamed: mode === "stream",
	message_ids: messages.flatMap(({ messageId, state: current }) =>
		messageId !== undefined && current === "sent" ? [messageId] : [],
	),
	error,
});
