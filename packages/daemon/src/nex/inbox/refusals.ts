/** Messages that are not accepted: the checks before a message is accepted (I10), the bounded record of rejections, and the busy reply. */

import { isSessionLabel, NexusError, toNexusError } from "@nexus-stream/protocol";
import { ADMIT_MS_MAX, orphans } from "../../bus/bus.ts";
import { type Disposition, type InboundEvent, inboxWrites } from "../../ledger/inbox/port.ts";
import type { InboxLimits } from "./config.ts";
import type { InboxDeps } from "./deps.ts";
import type { ClientMessage, InboxMessage } from "./message.ts";

export interface InboxStats {
	received: number;
	/** Messages that a platform or client sent more than once. */
	duplicates: number;
	rejected: number;
}

/** Rejections between two deletions of the oldest ones. */
const REJECTIONS_PER_SWEEP = 64;

export class Refusals {
	readonly #deps: InboxDeps;
	readonly #stats: InboxStats;
	/** When each session last got the busy text. */
	readonly #busySentAt = new Map<string, number>();

	constructor(deps: InboxDeps, stats: InboxStats) {
		this.#deps = deps;
		this.#stats = stats;
	}

	async reject(
		message: InboxMessage,
		because: string,
		state: "rejected" | "dropped" = "rejected",
	): Promise<InboundEvent> {
		const { bus, limits, log } = this.#deps;
		const { eventId, origin } = message;
		const text = message.text.slice(0, limits.rejectedTextCharsMax).toWellFormed();
		const event: InboundEvent = { ...message, text, attachments: [], disposition: { state, because } };
		const isSweep = ++this.#stats.rejected % REJECTIONS_PER_SWEEP === 0;
		const forget = isSweep ? [inboxWrites.forgetRejected(limits.rejectedEventsMax)] : [];
		await bus.write([inboxWrites.accept(event), ...forget], ADMIT_MS_MAX);
		log.debug({ eventId, channel: origin.channel, sender: origin.sender, because }, "a message was rejected");
		return event;
	}

	/** The sender cancelled the message before it was queued. */
	async cancel(message: InboxMessage): Promise<InboundEvent> {
		const event: InboundEvent = { ...message, attachments: [], disposition: { state: "cancelled" } };
		await this.#deps.bus.write([inboxWrites.accept(event)], ADMIT_MS_MAX);
		return event;
	}

	/** Sends the busy text at most once in `busyReplyMs`. */
	sayBusy({ session, origin: { channel, account }, facts: { target } }: InboxMessage, busyText: string): void {
		const { clock, limits, tell } = this.#deps;
		const now = clock.now();
		for (const [label, at] of this.#busySentAt) if (now - at >= limits.busyReplyMs) this.#busySentAt.delete(label);
		if (busyText === "" || !target || this.#busySentAt.has(session)) return;
		this.#busySentAt.set(session, now);
		tell({ channel, account, target }, busyText);
	}
}

/** Checks a client's message. */
export function checkClientMessage(message: ClientMessage, limits: InboxLimits): void {
	const { session, text, idempotencyKey } = message;
	if (typeof session !== "string" || !isSessionLabel(session)) {
		throw new NexusError(
			"invalid",
			"A session name has 1 to 128 letters, digits or . _ : @ + - and begins with a letter or digit.",
		);
	}
	if (typeof text !== "string") throw new NexusError("invalid", "The text of a message must be a string.");
	checkContent(message, limits);
	if (idempotencyKey === undefined) return;
	if (idempotencyKey === "" || idempotencyKey.length > limits.idempotencyKeyCharsMax) {
		throw new NexusError("invalid", `An idempotency key has 1 to ${limits.idempotencyKeyCharsMax} characters.`);
	}
}

/** Checks the content of a message, after plugins may have changed it. */
export function checkContent(
	{ text, attachments = [] }: { text: string; attachments?: readonly unknown[] },
	limits: InboxLimits,
): void {
	if (text.trim() === "" && attachments.length === 0) {
		throw new NexusError("invalid", "A message needs text or an attachment.");
	}
	if (text.length > limits.textCharsMax) {
		throw new NexusError("too_large", `A message has at most ${limits.textCharsMax} characters; attach longer text.`);
	}
}

/**
 * Throws `conflict` when the idempotency key belongs to a different message: the client would otherwise never learn that the second one was
 * not accepted. An event without a digest, of an older version, cannot be compared and counts as the same.
 */
export function checkSame(first: InboundEvent, { facts }: InboxMessage): void {
	const digest = first.facts?.digest;
	if (digest === undefined || facts.digest === undefined || digest === facts.digest) return;
	throw new NexusError(
		"conflict",
		`not accepted: its idempotency key belongs to another message of this session already, event ${first.eventId}; send it with another key`,
	);
}

/** Records that messages will never start. False when they may still start: here, or in another daemon after a takeover. */
export async function rejectUnstarted(
	{ bus, log }: InboxDeps,
	messages: readonly InboxMessage[],
	cause: unknown,
): Promise<boolean> {
	// Another daemon has the session's run: the messages start when that has ended.
	if (isTemporary(cause) || (bus.isShared && orphans.isOwnedByAnother(cause))) return false;
	const { code, message: because } = toNexusError(cause);
	const eventIds = messages.map(({ eventId }) => eventId);
	// A rejection by a plugin is not a problem.
	log[code === "forbidden" ? "debug" : "warn"]({ eventIds, err: cause }, "messages could not be started");
	const disposition: Disposition = { state: "rejected", because };
	const rejectOne = async (message: InboxMessage): Promise<void> => {
		await bus.write([inboxWrites.dispose(message.eventId, disposition, ["queued"])], ADMIT_MS_MAX);
		message.disposition = disposition;
	};
	const results = await Promise.allSettled(messages.map(rejectOne));
	const failures: unknown[] = results.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
	for (const failure of failures)
		log.error({ eventIds, disposition, err: failure }, "the disposition of a message could not be recorded");
	return !failures.some(isTemporary);
}

/** The store refuses writes at the moment, or another daemon has taken over. */
const isTemporary = (cause: unknown): boolean => toNexusError(cause).code === "unavailable";
