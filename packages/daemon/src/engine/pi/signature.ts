/** Thinking blocks that a provider signed ⇄ signed reasoning. A signature is worth something to the model that made it only. */

import { createHash } from "node:crypto";
import type { AssistantMessage, ThinkingContent } from "@earendil-works/pi-ai";
import type { SignedReasoning } from "@nexus-stream/protocol";
import type { EngineEvent } from "@nexus-stream/protocol/engine";

/** The signing model and its account, because a provider accepts encrypted reasoning only from the same organisation. */
export interface Signer extends Pick<AssistantMessage, "api" | "provider" | "model"> {
	account: string;
}

/** Tells one key from another and tells nothing of either. Another key of the same organisation costs the past reasoning, a refused one would cost the session. */
export const accountOf = (apiKey: string): string =>
	createHash("sha256").update(`nexus reasoning ${apiKey}`).digest("hex").slice(0, 16);

/** The content of the opaque signature, as JSON. */
interface SignatureContent extends Signer {
	signature: string;
	/** The provider withheld the text; the signature is all there is. */
	redacted?: true;
}

/** Servers on OpenAI's old wire sign nothing: pi notes there in which field the text came, and they do not expect it back. */
const FIELD_NAME = /^reasoning(?:_[a-z]+)?$/;

/** The signed reasoning of a finished message, each with its position in the text. */
export function signedReasoning({ content, api, provider, model }: AssistantMessage, account: string): EngineEvent[] {
	const events: EngineEvent[] = [];
	let after = 0;
	for (const part of content) {
		if (part.type === "text") after += part.text.length;
		if (part.type !== "thinking") continue;
		const { thinking, thinkingSignature: signature = "", redacted } = part;
		if (signature.trim() === "" || FIELD_NAME.test(signature)) continue;
		const seal: SignatureContent = {
			api,
			provider,
			model,
			account,
			signature,
			redacted: redacted === true ? redacted : undefined,
		};
		events.push({ type: "signed_reasoning", text: thinking, signature: JSON.stringify(seal), after });
	}
	return events;
}

/** As the model wants it back; undefined when another model or account signed it. */
export function thinkingOf({ text, signature }: SignedReasoning, by: Signer): ThinkingContent | undefined {
	const seal = sealIn(signature);
	const isOwn = (["api", "provider", "model", "account"] as const).every((field) => seal?.[field] === by[field]);
	if (!isOwn || typeof seal?.signature !== "string") return undefined;
	return {
		type: "thinking",
		thinking: text,
		thinkingSignature: seal.signature,
		redacted: seal.redacted === true ? true : undefined,
	};
}

function sealIn(signature: string): Partial<SignatureContent> | undefined {
	try {
		return JSON.parse(signature) as Partial<SignatureContent> | undefined;
	} catch {
		// Another engine's.
		return undefined;
	}
}
