/** The shapes of the API about chat platforms: accounts, deliveries, pairings, the lab. */

import type * as wire from "@nexus-stream/protocol";
import { z } from "zod";
import { beforeId, component, count, type Fields, limit, time } from "./schema.ts";

const name = z.string().min(1).max(128);
const deliveryState = z.enum(["active", "complete", "failed", "unknown", "stale", "damaged"]);

export const accountParams = z.object({ channel: name, account: name });
export const pairingParams = z.object({ code: name });
export const personParams = z.object({ channel: name, account: name, sender: z.string().min(1).max(512) });
export const deliveriesQuery = z.object({
	run: name.optional(),
	channel: name.optional(),
	account: name.optional(),
	state: deliveryState.optional(),
	limit,
	before: beforeId("dlv", "the id of a delivery").describe("A delivery id: only older ones."),
});

const lab = z.literal(true).exactOptional().describe("It belongs to the channel lab, which has no real readers.");

const ProcessView = component(
	"AdapterProcess",
	z.object({
		state: z
			.enum(["starting", "running", "unreachable", "backing_off", "open_circuit", "stopped"])
			.describe("`unreachable`: it runs, and its platform does not answer."),
		pid: count.exactOptional(),
		restarts: count,
		until: time.exactOptional().describe("When it is tried again."),
		last_error: z.string().exactOptional().describe("Until it has gone well for a while."),
	} satisfies Fields<wire.ProcessJson>),
);

const AccountView = component(
	"Account",
	z.object({
		channel: z.string(),
		account: z.string(),
		lab,
		processes: z.object({
			monitor: ProcessView.exactOptional(),
			stream: ProcessView.exactOptional(),
			send: ProcessView.exactOptional(),
		}),
		rate: z
			.object({ blocked_until: time.exactOptional() })
			.describe("The platform's rate limit holds the whole account."),
		garbage_lines: count.describe("Lines of the adapter that were not understood."),
		deliveries: z.record(deliveryState, count).describe("How many deliveries are in which state."),
		last_error: z.string().exactOptional(),
	} satisfies Fields<wire.AccountJson>),
);
export const AccountList = component(
	"AccountList",
	z.object({
		now: time.describe("By the daemon's clock."),
		accounts: z.array(AccountView),
		without_account: z
			.array(z.string())
			.exactOptional()
			.describe("Channels whose adapter has a `command` and that have no account: nothing starts them."),
	} satisfies Fields<wire.AccountListJson>),
);
const accountNames = z.array(
	z.object({ channel: z.string(), account: z.string() } satisfies Fields<wire.AccountNameJson>),
);
export const AccountChanges = component(
	"AccountChanges",
	z.object({
		added: accountNames,
		changed: accountNames,
		removed: accountNames.describe("Not listened to any more; answers on their way are given a minute."),
	} satisfies Fields<wire.AccountChangesJson>),
);
export const AccountHealth = component(
	"AccountHealth",
	z.object({ ok: z.boolean(), detail: z.string() } satisfies Fields<wire.AccountHealthJson>),
);

export const DeliveryView = component(
	"Delivery",
	z.object({
		delivery_id: z.string(),
		run_id: z.string(),
		channel: z.string(),
		account: z.string(),
		lab,
		target: z.looseObject({ to: z.string() }),
		mode: z.enum(["stream", "blocks", "whole"]).exactOptional().describe("Decided when it begins."),
		state: deliveryState,
		position: count.describe("Everything before this position of the answer's text is in finished messages."),
		messages: z.array(
			z.object({
				ordinal: count,
				message_id: z.string().exactOptional(),
				from: count,
				to: count.exactOptional(),
				shown: count.exactOptional().describe("An open message shows the answer's text up to here."),
				state: z.enum(["intended", "open", "sent", "unknown", "failed"]),
				error: z.string().exactOptional().describe("Why the platform did not bring it to its reader."),
			} satisfies Fields<wire.SentMessageJson>),
		),
		error: z.string().exactOptional(),
		created_at: time,
		updated_at: time,
	} satisfies Fields<wire.DeliveryJson>),
);
export const DeliveryList = component(
	"DeliveryList",
	z.object({ deliveries: z.array(DeliveryView) } satisfies Fields<wire.DeliveryListJson>),
);

const where = {
	channel: name,
	account: name,
	target: z
		.looseObject({ to: z.string().min(1).max(1024) })
		.describe("The platform's address; more fields are its own."),
	disable_streaming: z.boolean().exactOptional().describe("Sent when it is finished."),
	tools: z
		.boolean()
		.exactOptional()
		.describe("Shows tool status while it is written; else as the channel's config says."),
	reasoning: z.boolean().exactOptional().describe("Shows the reasoning, quoted; else as the channel's config says."),
} satisfies Fields<wire.DeliveryDestination>;
export const DeliveryRequest = component(
	"DeliveryRequest",
	z.union([
		z.strictObject({ run_id: name, ...where }),
		z.strictObject({
			text: z.string().min(1),
			idempotency_key: z
				.string()
				.min(1)
				.max(256)
				.exactOptional()
				.describe("Sent again with the same key within 24 hours, it is the same delivery."),
			...where,
		}),
	]) satisfies z.ZodType<wire.DeliveryRequest>,
);
export const DeliveryAccepted = component(
	"DeliveryAccepted",
	z.object({ delivery_id: z.string(), run_id: z.string().exactOptional() } satisfies Fields<wire.DeliveryAccepted>),
);

export const PairingView = component(
	"Pairing",
	z.object({
		code: z.string(),
		channel: z.string(),
		account: z.string(),
		sender: z.string(),
		sender_name: z.string().exactOptional(),
		requested_at: time,
		expires_at: time,
		approved_at: time.exactOptional(),
	} satisfies Fields<wire.PairingJson>),
);
export const PairingList = component(
	"PairingList",
	z.object({ pairings: z.array(PairingView) } satisfies Fields<wire.PairingListJson>),
);
export const PairingRemoved = component(
	"PairingRemoved",
	z.object({ removed: z.literal(true) } satisfies Fields<wire.PairingRemovedJson>),
);

export const LabRequest = component(
	"LabRequest",
	z.object({
		text: z.string().min(1),
		channels: z.array(name).min(1).max(64).exactOptional(),
	} satisfies Fields<wire.LabRequest>),
);
export const LabAccepted = component(
	"LabAccepted",
	z.object({
		lab_id: z.string(),
		run_id: z.string(),
		session: z.string(),
		channels: z.array(z.object({ channel: z.string(), delivery_id: z.string() })),
	} satisfies Fields<wire.LabAccepted>),
);
const LabMessageView = component(
	"LabMessage",
	z.object({
		id: z.string(),
		text: z.string(),
		style: z
			.enum(["plain", "markdown", "marks", "ranges"])
			.describe("How the text is to be read: as it is, as markdown, with *marks*, or with the given ranges."),
		ranges: z
			.array(
				z.object({
					type: z.string(),
					offset: count,
					length: count,
					url: z.string().exactOptional(),
				} satisfies Fields<wire.RangeJson>),
			)
			.exactOptional(),
		files: z.array(z.string()).exactOptional().describe("Names of what is attached."),
		buttons: z.array(z.string()).exactOptional().describe("Labels of its buttons."),
		created_at: time,
		updated_at: time,
		edits: count.describe("How often it was seen to change."),
	} satisfies Fields<wire.LabMessageJson>),
);
export const LabStateView = component(
	"LabState",
	z.object({
		now: time.describe("By the daemon's clock."),
		run_id: z.string().exactOptional(),
		question_open: z.boolean().describe("A question waits to be decided, or something of it is on its way."),
		channels: z.array(
			z.object({
				channel: z.string(),
				ready: z.boolean().describe("Its adapter has been started."),
				mode: z.enum(["stream", "blocks", "whole"]).exactOptional(),
				state: deliveryState.exactOptional(),
				position: count.exactOptional(),
				delivery: DeliveryView.exactOptional(),
				messages: z.array(LabMessageView),
				draft: LabMessageView.exactOptional().describe("A preview below the messages, on platforms that have one."),
				typing: z.boolean(),
				calls_total: count,
				calls: z.array(
					z.object({
						at: time,
						call: z.string(),
						ms: z.number().exactOptional(),
						status: count.describe("HTTP status; 0 = no answer."),
						fault: z.string().exactOptional().describe("How it was made to go wrong."),
					} satisfies Fields<wire.LabCallJson>),
				),
				rate_limited_until: time.exactOptional(),
			} satisfies Fields<wire.LabChannelJson>),
		),
	} satisfies Fields<wire.LabStateJson>),
);
export const LabFaultRequest = component(
	"LabFaultRequest",
	z.object({
		channel: name,
		kind: z.enum(["429", "5xx", "hang", "reset_after_accept"]),
		count: z.int().min(1).max(1000).default(1),
	}) satisfies z.ZodType<Required<wire.LabFaultRequest>>,
);
export const LabFaultSet = component(
	"LabFaultSet",
	z.object({ set: z.literal(true) } satisfies Fields<wire.LabFaultSet>),
);
export const LabAsked = component("LabAsked", z.object({ question_id: z.string() } satisfies Fields<wire.LabAsked>));
export const LabPressRequest = component(
	"LabPressRequest",
	z.object({
		channel: name,
		message: name.describe("A message's id in the lab's state."),
		label: name,
	} satisfies Fields<wire.LabPressRequest>),
);
export const LabPressed = component(
	"LabPressed",
	z.object({ pressed: z.literal(true) } satisfies Fields<wire.LabPressed>),
);
