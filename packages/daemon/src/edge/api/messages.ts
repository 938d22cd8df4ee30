/** Messages to sessions, and what became of them: an inbound message is an event. */

import { NexusError, traceIdIn } from "@nexus-stream/protocol";
import { z } from "zod";
import type { InboundEvent } from "../../ledger/inbox/port.ts";
import { defined } from "../../std/defined.ts";
import type { EdgeDeps, EdgeLimits } from "../port.ts";
import {
	author,
	beforeId,
	component,
	get,
	type HandlersOf,
	LIMIT_DEFAULT,
	limit,
	name,
	named,
	post,
	remove,
	sessionLabel,
	sessionParams,
	time,
	viewOf,
} from "./resource.ts";

const disposition = named(
	"DispositionState",
	z.enum([
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
	]),
);

const AttachmentUpload = component("AttachmentUpload", {
	name: z.string().min(1).max(255),
	content_type: z.string().min(1).max(255),
	data: z.base64().describe("The file, base64."),
});
const MessageRequest = component(
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
		})
		.refine(({ text, attachments }) => text.trim() !== "" || (attachments?.length ?? 0) > 0, {
			message: "a message needs a text or an attachment",
			path: ["text"],
		}),
);
const MessageAccepted = component("MessageAccepted", {
	event_id: z.string(),
	disposition: disposition.exclude(["rejected", "dropped", "handled", "answered"]),
	run_id: z.string().exactOptional().describe("Present when the run has started."),
});

const EventView = component("Event", {
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
	...author("The author's id on the platform."),
});
const EventList = component("EventList", { events: z.array(EventView) });
export const QueuedView = named(
	"QueuedJson",
	EventView.pick({
		event_id: true,
		text: true,
		received_at: true,
		channel: true,
		account: true,
		sender: true,
		sender_name: true,
	}),
);

const params = z.object({ event: name });

export const MESSAGE_ROUTES = {
	postMessage: post(
		"/v1/sessions/{session}/messages",
		"Sends a message to a session: it starts a run, or waits its turn behind the active one.",
		{
			params: sessionParams,
			body: MessageRequest,
			status: 202,
			answer: MessageAccepted,
			errors: ["conflict", "engine_failed"],
		},
	),
	getEvent: get("/v1/events/{event}", "What became of an inbound message.", {
		params,
		answer: EventView,
		errors: ["not_found"],
	}),
	cancelEvent: remove("/v1/events/{event}", "Takes back a message that waits; 409 once it has started.", {
		params,
		answer: EventView,
		errors: ["not_found", "conflict"],
	}),
	listEvents: get("/v1/events", "Inbound messages, newest first.", {
		query: z.object({
			session: sessionLabel.optional(),
			state: disposition.optional(),
			channel: z.string().min(1).max(64).optional(),
			limit,
			before: beforeId("evt", "the id of an event").describe("An event id: only older events."),
		}),
		answer: EventList,
	}),
};

export function messageHandlers(
	{ ledger, submit, cancel }: EdgeDeps,
	{ listItemsMax }: EdgeLimits,
): HandlersOf<typeof MESSAGE_ROUTES> {
	return {
		async postMessage({ params, body }, { headers }) {
			const { eventId, disposition, runId } = await submit({
				session: params.session,
				text: body.text,
				idempotencyKey: body.idempotency_key,
				traceId: traceIdIn(headers.get("traceparent") ?? ""),
				disableStreaming: body.disable_streaming === true ? true : undefined,
				attachments: body.attachments?.map(({ content_type: contentType, ...file }) => ({ ...file, contentType })),
			});
			if ("because" in disposition) throw new NexusError("conflict", `not accepted: ${disposition.because}`);
			return { event_id: eventId, disposition: disposition.state, run_id: runId };
		},
		async getEvent({ params }) {
			const event = await ledger.inbox.get(params.event);
			if (!event) throw new NexusError("not_found", `there is no event ${params.event}`);
			return eventView(event);
		},
		cancelEvent: async ({ params }) => eventView(await cancel(params.event)),
		async listEvents({ query: { limit = LIMIT_DEFAULT, ...query } }) {
			const events = await ledger.inbox.list({ ...query, limit: Math.min(limit, listItemsMax) });
			return { events: events.map(eventView) };
		},
	};
}

function eventView({ disposition, origin, ...event }: InboundEvent) {
	const { state, runId, because, by }: DispositionFields = disposition;
	return viewOf(EventView, { ...event, ...origin, disposition: state, runId, because, supersededBy: by });
}

/** Each state has some of them. */
type DispositionFields = { state: InboundEvent["disposition"]["state"]; runId?: string; because?: string; by?: string };

export const queuedView = (event: InboundEvent) => viewOf(QueuedView, { ...event, ...event.origin });

type EventSender = Pick<NonNullable<InboundEvent["origin"]>, "channel" | "account" | "sender" | "senderName">;

/** The author of a message; undefined for the owner, whose own page and command line show it. */
export function writerOf(origin: EventSender | undefined) {
	if (!origin || (origin.channel === "web" && origin.sender === "owner")) return undefined;
	const { channel, account, sender, senderName } = origin;
	return defined({ channel, account, sender, sender_name: senderName });
}
