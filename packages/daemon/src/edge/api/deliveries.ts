/** Deliveries: how far each answer is on its platform. */

import { NexusError, newId, toNexusError } from "@nexus-stream/protocol";
import { z } from "zod";
import type { Delivery } from "../../ledger/deliveries/port.ts";
import type { DeliverRequest } from "../../nex/nex.ts";
import { defined } from "../../std/defined.ts";
import type { Channels, EdgeDeps, EdgeLimits } from "../port.ts";
import {
	beforeId,
	component,
	count,
	get,
	type HandlersOf,
	LIMIT_DEFAULT,
	limit,
	name,
	named,
	post,
	time,
	viewOf,
} from "./resource.ts";

export const deliveryState = named(
	"DeliveryState",
	z.enum(["active", "complete", "failed", "unknown", "stale", "damaged"]),
);
export const deliveryMode = named("DeliveryMode", z.enum(["stream", "blocks", "whole"]));
export const lab = z
	.literal(true)
	.exactOptional()
	.describe("It belongs to the channel lab, which has no real readers.");
export const IN_LAB = { lab: true as const };

const SentMessageView = named("SentMessageJson", {
	ordinal: count,
	message_id: z.string().exactOptional(),
	from: count,
	to: count.exactOptional(),
	shown: count.exactOptional().describe("An open message shows the answer's text up to here."),
	state: z.enum(["intended", "open", "sent", "unknown", "failed"]),
	error: z.string().exactOptional().describe("Why the platform did not bring it to its reader."),
});
export const DeliveryView = component("Delivery", {
	delivery_id: z.string(),
	run_id: z.string(),
	channel: z.string(),
	account: z.string(),
	lab,
	target: z.looseObject({ to: z.string() }),
	mode: deliveryMode.exactOptional().describe("Decided when it begins."),
	state: deliveryState,
	position: count.describe("Everything before this position of the answer's text is in finished messages."),
	messages: z.array(SentMessageView),
	error: z.string().exactOptional(),
	created_at: time,
	updated_at: time,
});
const DeliveryList = component("DeliveryList", { deliveries: z.array(DeliveryView) });

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
};
const DeliveryRequest = component(
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
	]),
);
const DeliveryAccepted = component("DeliveryAccepted", { delivery_id: z.string(), run_id: z.string().exactOptional() });

export const DELIVERY_ROUTES = {
	listDeliveries: get("/v1/deliveries", "Deliveries, newest first: how far each answer is on its platform.", {
		query: z.object({
			run: name.optional(),
			channel: name.optional(),
			account: name.optional(),
			state: deliveryState.optional(),
			limit,
			before: beforeId("dlv", "the id of a delivery").describe("A delivery id: only older ones."),
		}),
		answer: DeliveryList,
	}),
	postDelivery: post(
		"/v1/deliveries",
		"Delivers a run, live or finished, or a text, to a target on a platform. The same run and chat, however the chat is spelled, is the same delivery; so is the same text with the same `idempotency_key`. A delivery that failed or became stale resumes where it stopped.",
		{ body: DeliveryRequest, status: 202, answer: DeliveryAccepted, errors: ["not_found", "conflict"] },
	),
};

export function deliveryHandlers(
	{ channels: { outbound, lab }, deliverOnce, clock }: EdgeDeps,
	limits: EdgeLimits,
): HandlersOf<typeof DELIVERY_ROUTES> {
	/** The same key gives the first one's delivery, also when the daemon died before that was on record. */
	const deliverText = async (request: Omit<DeliverRequest, "runId">, text: string, key: string | undefined) => {
		const log = newId("txt", clock.now());
		let first: Delivery | undefined;
		const asked = { key, body: { ...request, text }, result: log };
		const { id: runId } = await deliverOnce(asked, async (writes) => {
			first = await outbound.deliver({ ...request, text, ...(writes.length > 0 && { log, with: writes }) });
		}).catch((cause: unknown) => {
			const { reason, message } = toNexusError(cause);
			throw reason === "IDEMPOTENCY_CONFLICT" ? new NexusError("conflict", message) : cause;
		});
		return first ?? outbound.deliver({ ...request, runId });
	};
	return {
		async listDeliveries({ query: { run, limit, ...query } }) {
			const most = Math.min(limit ?? LIMIT_DEFAULT, limits.listItemsMax);
			const asked = defined({ ...query, runId: run, limit: most }) as Parameters<Channels["outbound"]["deliveries"]>[0];
			const own = (await outbound.deliveries(asked)).map(deliveryView);
			const inLab = await lab.deliveries(asked);
			const all = [...own, ...inLab.map((delivery) => ({ ...deliveryView(delivery), ...IN_LAB }))];
			// Both are lists by id, so a page of them together ends where the next one begins in each.
			return { deliveries: all.toSorted((a, b) => (a.delivery_id < b.delivery_id ? 1 : -1)).slice(0, most) };
		},
		async postDelivery({ body }) {
			const { channel, account, target, disable_streaming: disableStreaming, tools, reasoning } = body;
			const options = defined({ disableStreaming, tools, reasoning }) as NonNullable<DeliverRequest["options"]>;
			const place = {
				account: { channel, id: account },
				target,
				options: Object.keys(options).length > 0 ? options : undefined,
			};
			const { id, runId } = await ("run_id" in body
				? outbound.deliver({ ...place, runId: body.run_id })
				: deliverText(place, body.text, body.idempotency_key));
			return { delivery_id: id, run_id: "run_id" in body ? runId : undefined };
		},
	};
}

export const deliveryView = (delivery: Delivery) =>
	viewOf(DeliveryView, {
		...delivery,
		deliveryId: delivery.id,
		position: delivery.cursor,
		messages: delivery.messages.map((message) => viewOf(SentMessageView, message)),
	});
