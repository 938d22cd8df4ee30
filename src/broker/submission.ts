/** Checks a message before it is taken in: after that it is never silently dropped (I10). */

import { isSessionLabel, NexusError } from "../protocol/protocol.ts";
import type { BrokerLimits } from "./limits.ts";
import type { Submission } from "./port.ts";

export function checkSession(session: string): void {
	if (typeof session === "string" && isSessionLabel(session)) return;
	throw new NexusError(
		"invalid",
		"A session is called by 1 to 128 letters, digits or . _ : @ + - and begins with a letter or digit.",
	);
}

export function checkSubmission(submission: Submission, limits: BrokerLimits): void {
	checkSession(submission.session);
	const { text, attachments = [], idempotencyKey } = submission;
	if (typeof text !== "string") throw new NexusError("invalid", "The text of a message must be a string.");
	if (text.trim() === "" && attachments.length === 0) {
		throw new NexusError("invalid", "A message needs text or an attachment.");
	}
	if (text.length > limits.textCharsMax) {
		throw new NexusError("too_large", `A message has at most ${limits.textCharsMax} characters; attach longer text.`);
	}
	if (idempotencyKey === undefined) return;
	if (idempotencyKey === "" || idempotencyKey.length > limits.idempotencyKeyCharsMax) {
		throw new NexusError("invalid", `An idempotency key has 1 to ${limits.idempotencyKeyCharsMax} characters.`);
	}
}
