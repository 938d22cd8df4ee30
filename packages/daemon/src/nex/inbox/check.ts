/** Checks a message before it is taken in: after that it is never silently dropped (I10). */

import { isSessionLabel, NexusError } from "@nexus-stream/protocol";
import type { InboundEvent } from "../../ledger/ledger.ts";
import type { InboxLimits } from "./limits.ts";
import type { ClientMessage, InboxMessage } from "./message.ts";

/** What a client sent, before anything is done with it. */
export function checkClients(message: ClientMessage, limits: InboxLimits): void {
	const { session, text, idempotencyKey } = message;
	if (typeof session !== "string" || !isSessionLabel(session)) {
		throw new NexusError(
			"invalid",
			"A session is called by 1 to 128 letters, digits or . _ : @ + - and begins with a letter or digit.",
		);
	}
	if (typeof text !== "string") throw new NexusError("invalid", "The text of a message must be a string.");
	checkContent(message, limits);
	if (idempotencyKey === undefined) return;
	if (idempotencyKey === "" || idempotencyKey.length > limits.idempotencyKeyCharsMax) {
		throw new NexusError("invalid", `An idempotency key has 1 to ${limits.idempotencyKeyCharsMax} characters.`);
	}
}

/** What a message says, once plugins had their say. */
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
 * The known event is what the message's idempotency key belongs to. A client that uses a key for two messages would otherwise never learn
 * that the second was not taken. An event of a version that kept no digest counts as the same: nobody can tell any more.
 */
export function checkSame(known: InboundEvent, { facts }: InboxMessage): void {
	const digest = known.facts?.digest;
	if (digest === undefined || facts.digest === undefined || digest === facts.digest) return;
	throw new NexusError(
		"conflict",
		`not accepted: its idempotency key belongs to another message of this session already, event ${known.eventId}; send it with a key of its own`,
	);
}
