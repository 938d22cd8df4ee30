/** A run as JSON, settled or live: its schema and its view. Pure. */

import { z } from "zod";
import type { LiveRun } from "../../broker/broker.ts";
import type { StoredAttachment } from "../../ledger/inbox/port.ts";
import type { StoredMessage, StoredToolCall, Turn } from "../../ledger/turns/port.ts";
import { base64Bytes } from "../../std/content-type.ts";
import { author, component, count, time, viewOf } from "./resource.ts";

const MessageView = component("Message", {
	role: z.enum(["user", "assistant"]),
	text: z.string(),
	channel: z
		.string()
		.exactOptional()
		.describe("The platform that the message came from; absent for messages of the owner."),
	...author("The author's id on the platform."),
	message_id: z.string().exactOptional().describe("The stream that carried it."),
	event_id: z.string().exactOptional(),
	agent: z.string().exactOptional().describe("Which agent said it, in a run of several."),
	visible: z.literal(false).exactOptional().describe("Hidden words: shown only to a person who inspects the run."),
	attachments: z.array(z.object({ name: z.string(), content_type: z.string(), bytes: count })).exactOptional(),
	parts: z
		.array(
			z.object({
				modality: z.string(),
				content_type: z.string(),
				description: z.string(),
				bytes: count,
				after: count.describe("After how many characters of the text it stands."),
				payload: z.string().exactOptional().describe("Text and JSON that are not long; the rest is in the frames."),
			}),
		)
		.exactOptional()
		.describe("Cards, pictures, sound … of an assistant message, in order."),
	reasoning: z.string().exactOptional().describe("Only where `broker.reasoningCharsMax` keeps it."),
});

const ToolCallView = component("ToolCall", {
	call_id: z.string(),
	name: z.string(),
	agent: z.string().exactOptional().describe("Which agent made it, in a run of several."),
	args: z.unknown().exactOptional(),
	status: z.enum(["started", "completed", "failed"]).describe("`started` while it runs."),
	summary: z.string().exactOptional(),
	result: z.unknown().exactOptional(),
	message: count.describe("Index into `messages` of the message that made the call."),
	started_at: time,
	ended_at: time.exactOptional(),
});

const TraceView = component("Trace", {
	channel: z.string(),
	account: z.string(),
	sender: z.string(),
	stages: z.array(
		z.object({
			stage: z.enum(["receive", "acl", "hooks", "queue", "prepare", "execute", "deliver", "complete"]),
			at: time,
			ms: z.number(),
		}),
	),
	hooks: z
		.array(
			z.object({
				plugin: z.string(),
				hook: z.enum(["onReceive", "onPrepare", "onComplete"]),
				ms: z.number(),
				outcome: z.enum(["ok", "changed", "rejected", "failed", "timeout"]),
				detail: z.string().exactOptional(),
			}),
		)
		.describe("Calls of plugins."),
	deliveries: z.array(z.string()).describe("Ids of the deliveries of the answer."),
});

const usage = z.object({ input: z.number(), output: z.number() }).catchall(z.number());

export const RunView = component("Run", {
	run_id: z.string(),
	session: z.string(),
	engine: z.string(),
	status: z.enum(["running", "stopping", "completed", "aborted", "failed"]),
	reason: z.enum(["completed", "aborted", "error", "timeout", "crashed"]).exactOptional(),
	error: z.object({ code: z.string(), message: z.string() }).exactOptional(),
	started_at: time,
	ended_at: time.exactOptional(),
	first_token_ms: z.number().exactOptional(),
	usage: usage.exactOptional().describe("Token counts; -1 = the model did not say."),
	usage_by: z
		.array(z.object({ agent: z.string().exactOptional(), model: z.string().exactOptional(), usage }))
		.exactOptional()
		.describe("How it divides among agents and models, where that is known."),
	compacting: z.boolean().exactOptional(),
	rolled_back: z
		.literal(true)
		.exactOptional()
		.describe("It was interrupted, and the session started over without it: no later run has it in its history."),
	messages: z.array(MessageView),
	tool_calls: z.array(ToolCallView),
	continues: z.string().exactOptional().describe("The run that was cut off and that this one continues."),
	continued_by: z.string().exactOptional().describe("The run that continues this one."),
	can_continue: z.boolean().exactOptional().describe("It was cut off, and `continue` would go on with it."),
	can_retry: z
		.boolean()
		.exactOptional()
		.describe("It was cut off, and `retry` would answer its messages from the start."),
	trace: TraceView.exactOptional().describe("The way of the message through the pipeline, once the run has settled."),
	frames_available: z.boolean().describe("Whether the frames can still be streamed and replayed."),
});
export type RunFields = z.infer<typeof RunView>;

const attachmentsView = (list: readonly StoredAttachment[] | undefined) =>
	list === undefined || list.length === 0
		? undefined
		: list.map(({ name, contentType, data }) => ({ name, content_type: contentType, bytes: base64Bytes(data) }));

const messageView = (message: StoredMessage) =>
	viewOf(MessageView, {
		...message,
		attachments: attachmentsView(message.attachments),
		parts: message.parts?.map(({ contentType, ...part }) => ({ ...part, content_type: contentType })),
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

const toolCallView = (call: StoredToolCall | LiveRun["toolCalls"][number]) =>
	viewOf(ToolCallView, { ...call, args: jsonValue(call.args), result: jsonValue(call.result) });

/** Facts that the row of a run does not have. */
interface RunContext {
	framesAvailable: boolean;
	/** The actions a person may take on a run that was cut off; left out for a completed one. */
	canContinue?: boolean;
	canRetry?: boolean;
}

/** A run as JSON; one that has not settled has what is known of its turn so far. */
export const runView = (run: Turn | LiveRun, facts: RunContext): RunFields =>
	viewOf(RunView, {
		...run,
		...facts,
		messages: run.messages.map(messageView),
		toolCalls: run.toolCalls.map(toolCallView),
	});
