/** The shapes of the HTTP API: requests are checked against them, and the OpenAPI document is made from them. JSON is snake_case. */

import type * as wire from "@nexus-stream/protocol";
import { ERROR_TABLE, type ErrorCode, isIdOf, isSessionLabel } from "@nexus-stream/protocol";
import { z } from "zod";

/** Everything named here becomes a component of the OpenAPI document. */
export const COMPONENTS = z.registry<{ id: string }>();

export function component<S extends z.ZodType>(id: string, schema: S): S {
	COMPONENTS.add(schema, { id });
	return schema;
}

/** The fields of a wire type with their schemas, for `satisfies`: one that is missing, unknown or of another type is a type error. */
export type Fields<T> = {
	[K in keyof T]-?: object extends Pick<T, K>
		? z.ZodType<Exclude<T[K], undefined>> & { _zod: { optout: "optional" } }
		: z.ZodType<T[K]>;
};

export const time = z.number().describe("Milliseconds since the epoch.");
export const count = z.int().min(0);

export const sessionLabel = z
	.string()
	.regex(
		/^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$/,
		"a session label is 1 to 128 letters, digits and . _ : @ + - and begins with a letter or digit",
	)
	.refine(isSessionLabel)
	.describe("1 to 128 letters, digits and . _ : @ + - beginning with a letter or digit.");

/** Digits and nothing else: `1e3`, `0x10` or an empty text would otherwise pass as numbers that the caller did not mean. */
const whole = (least: number, error: string) =>
	z
		.string()
		.regex(/^\d{1,15}$/, error)
		.transform(Number)
		.pipe(z.int().min(least, error));
export const offset = whole(0, "must be a whole number from 0 on");

export const runParams = z.object({ run: z.string().min(1).max(128) });
export const sessionParams = z.object({ session: sessionLabel });
export const eventParams = z.object({ event: z.string().min(1).max(128) });

export const afterQuery = z.object({
	after: offset.optional().describe("Continue strictly after this offset; the larger of it and Last-Event-ID counts."),
});
export const sessionAfterQuery = z.object({
	after: z
		.union([z.literal("end"), offset], "must be a whole number from 0 on, or end")
		.optional()
		.describe("Continue strictly after this offset; `end` = only what is new; absent = from the earliest kept record."),
});
export const limit = whole(1, "must be a whole number above 0")
	.optional()
	.describe("How many at most; the daemon may give fewer.");
/** Where a list continues: the id of one of its items. Any other text is refused, as it is not a position in the list. */
export const beforeId = (prefix: string, what: string) =>
	z
		.string()
		.refine((text) => isIdOf(prefix, text), `must be ${what}, as the list gave it`)
		.optional();
export const framesQuery = z.object({ after: offset.optional(), limit });
export const runsQuery = z.object({
	session: sessionLabel.optional(),
	limit,
	before: beforeId("run", "the id of a run").describe("A run id: only older runs."),
});
export const turnsQuery = runsQuery.pick({ limit: true, before: true });
export const sessionsQuery = z.object({
	limit,
	before: offset.optional().describe("Only sessions last used before this time (`updated_at` of the last one seen)."),
});
const disposition = z.enum([
	"started",
	"queued",
	"batched",
	"injected",
	"superseded",
	"rejected",
	"dropped",
	"cancelled",
	"handled",
	"answered",
] satisfies wire.DispositionState[]);
export const eventsQuery = z.object({
	session: sessionLabel.optional(),
	state: disposition.optional(),
	channel: z.string().min(1).max(64).optional(),
	limit,
	before: beforeId("evt", "the id of an event").describe("An event id: only older events."),
});

export const Failure = component(
	"Error",
	z.object({
		error: z.object({ code: z.enum(Object.keys(ERROR_TABLE) as [ErrorCode, ...ErrorCode[]]), message: z.string() }),
	} satisfies Fields<wire.ErrorJson>),
);

const AttachmentUpload = component(
	"AttachmentUpload",
	z.object({
		name: z.string().min(1).max(255),
		content_type: z.string().min(1).max(255),
		data: z.base64().describe("The file, base64."),
	} satisfies Fields<wire.AttachmentUpload>),
);

export const MessageRequest = component(
	"MessageRequest",
	z
		.object({
			text: z.string(),
			idempotency_key: z
				.string()
				.min(1)
				.exactOptional()
				.describe(
					"At most `broker.idempotencyKeyCharsMax` characters. Sent again with the same content, the message is the same one; with another content it is refused with 409, which names the earlier event.",
				),
			attachments: z.array(AttachmentUpload).max(64).exactOptional(),
			disable_streaming: z.boolean().exactOptional().describe("The answer comes in one piece: one chunk per message."),
		} satisfies Fields<wire.MessageRequest>)
		.refine(({ text, attachments }) => text.trim() !== "" || (attachments?.length ?? 0) > 0, {
			message: "a message needs a text or an attachment",
			path: ["text"],
		}),
);

export const MessageAccepted = component(
	"MessageAccepted",
	z.object({
		event_id: z.string(),
		disposition: disposition.exclude(["rejected", "dropped", "handled", "answered"]),
		run_id: z.string().exactOptional().describe("Present when the run has started."),
	} satisfies Fields<wire.MessageAccepted>),
);

export const EventView = component(
	"Event",
	z.object({
		event_id: z.string(),
		session: z.string(),
		text: z.string(),
		received_at: time,
		disposition,
		run_id: z.string().exactOptional(),
		because: z
			.string()
			.exactOptional()
			.describe("Why it was rejected or dropped, which command it was, or what it decided."),
		superseded_by: z.string().exactOptional().describe("The event that took its place."),
		batch: z.array(z.string()).exactOptional().describe("A synthetic event: the original events it stands for."),
		channel: z.string().exactOptional(),
		account: z.string().exactOptional(),
		sender: z.string().exactOptional().describe("Who wrote, in the platform's words."),
		sender_name: z.string().exactOptional(),
	} satisfies Fields<wire.EventJson>),
);
export const EventList = component(
	"EventList",
	z.object({ events: z.array(EventView) } satisfies Fields<wire.EventListJson>),
);

const MessageView = component(
	"Message",
	z.object({
		role: z.enum(["user", "assistant"]),
		text: z.string(),
		channel: z.string().exactOptional().describe("Of a message that the owner did not write: where it came from."),
		account: z.string().exactOptional(),
		sender: z.string().exactOptional().describe("Who wrote it, in the platform's words."),
		sender_name: z.string().exactOptional(),
		message_id: z.string().exactOptional().describe("The stream that carried it."),
		event_id: z.string().exactOptional(),
		agent: z.string().exactOptional().describe("Which agent said it, in a run of several."),
		visible: z.literal(false).exactOptional().describe("Hidden words: shown only to a person who inspects the run."),
		attachments: z
			.array(
				z.object({
					name: z.string(),
					content_type: z.string(),
					bytes: count,
				} satisfies Fields<wire.AttachmentJson>),
			)
			.exactOptional(),
		parts: z
			.array(
				z.object({
					modality: z.string(),
					content_type: z.string(),
					description: z.string(),
					bytes: count,
					after: count.describe("After how many characters of the text it stands."),
					payload: z.string().exactOptional().describe("Text and JSON that are not long; the rest is in the frames."),
				} satisfies Fields<wire.PartJson>),
			)
			.exactOptional()
			.describe("Cards, pictures, sound … of an assistant message, in order."),
		reasoning: z.string().exactOptional().describe("Only where `broker.reasoningCharsMax` keeps it."),
	} satisfies Fields<wire.MessageJson>),
);

const ToolCallView = component(
	"ToolCall",
	z.object({
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
	} satisfies Fields<wire.ToolCallJson>),
);

const TraceView = component(
	"Trace",
	z.object({
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
	} satisfies Fields<wire.TraceJson>),
);

const usage = z.object({ input: z.number(), output: z.number() }).catchall(z.number());

export const RunView = component(
	"Run",
	z.object({
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
	} satisfies Fields<wire.RunJson>),
);
export const RunList = component("RunList", z.object({ runs: z.array(RunView) } satisfies Fields<wire.RunListJson>));
export const RunStatus = component("RunStatus", RunView.pick({ run_id: true, status: true }));

const SessionView = component(
	"Session",
	z.object({
		session: z.string(),
		created_at: time,
		updated_at: time,
		turns: count,
		title: z.string().describe("The beginning of the first message that was answered; empty until then."),
		live_run_id: z.string().exactOptional(),
		channel: z.string().exactOptional().describe("The platform of a session that a person other than the owner began."),
		account: z.string().exactOptional(),
		sender: z.string().exactOptional().describe("Who began it, in the platform's words."),
		sender_name: z.string().exactOptional(),
		group: z.literal(true).exactOptional().describe("Several people write in it."),
		chat_name: z.string().exactOptional(),
	} satisfies Fields<wire.SessionJson>),
);
export const SessionList = component(
	"SessionList",
	z.object({
		sessions: z.array(SessionView),
		engine: z.string().exactOptional().describe("The name of what answers a message that is sent now."),
		scripted: z.literal(true).exactOptional().describe("No model answers, but a script."),
	} satisfies Fields<wire.SessionListJson>),
);

export const SessionTurns = component(
	"SessionTurns",
	z.object({
		turns: z.array(RunView).describe("Oldest first."),
		live: RunView.nullable(),
		queued: z.array(
			EventView.pick({
				event_id: true,
				text: true,
				received_at: true,
				channel: true,
				account: true,
				sender: true,
				sender_name: true,
			} as const),
		),
		stream_offset: count.describe("Subscribe to the session stream after it: nothing is missed, nothing repeated."),
	} satisfies Fields<wire.TurnsJson>),
);

export const SignInRequest = component(
	"SignInRequest",
	z.union(
		[z.strictObject({ code: z.string().min(1).max(256) }), z.strictObject({ token: z.string().min(1).max(4096) })],
		"send {code} or {token}",
	) satisfies z.ZodType<wire.SignInRequest>,
);
export const SignedIn = component(
	"SignedIn",
	z.object({ signed_in: z.literal(true) } satisfies Fields<wire.SignedInJson>),
);
export const SignedOut = component(
	"SignedOut",
	z.object({ signed_out: z.literal(true) } satisfies Fields<wire.SignedOutJson>),
);
export const SignInCode = component(
	"SignInCode",
	z.object({ code: z.string(), url: z.string() } satisfies Fields<wire.SignInCodeJson>),
);

export const Health = component("Health", z.object({ status: z.literal("ok") } satisfies Fields<wire.HealthJson>));
export const ReadinessView = component(
	"Readiness",
	z.object({
		ready: z.boolean(),
		state: z.enum(["STOPPED", "STARTING", "READY", "DEGRADED", "STOPPING"]),
		detail: z.string().exactOptional(),
	} satisfies Fields<wire.ReadinessJson>),
);

/** Chosen by the client, in its WebSocket messages. */
const subscriptionId = z.string().min(1).max(128);
export const WebSocketClientMessage = component(
	"WebSocketClientMessage",
	z.union([
		z.strictObject({
			type: z.literal("subscribe"),
			id: subscriptionId,
			run: runParams.shape.run,
			after: z.int().min(0).exactOptional(),
		}),
		z.strictObject({
			type: z.literal("subscribe"),
			id: subscriptionId,
			session: sessionLabel,
			after: z.union([z.literal("end"), z.int().min(0)]).exactOptional(),
		}),
		z.strictObject({ type: z.literal("unsubscribe"), id: subscriptionId }),
	]),
);
export type WebSocketClientMessage = z.infer<typeof WebSocketClientMessage>;
