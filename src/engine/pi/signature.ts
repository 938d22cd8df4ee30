/** Thinking blocks that a provider signed ⇄ signed reasoning. A signature is worth something to the model that made it only. */

import type { AssistantMessage, ThinkingContent } from "@earendil-works/pi-ai";
import type { SignedReasoning } from "../../protocol/protocol.ts";
import type { EngineEvent } from "../port.ts";

/** As pi-ai tells whether a past message is the model's own. */
export type ModelIdentity = Pick<AssistantMessage, "api" | "provider" | "model">;

/** What the opaque signature holds, as JSON. */
interface Seal extends ModelIdentity {
	signature: string;
	/** The provider withheld the text; the signature is all there is. */
	redacted?: true;
}

/** Servers on OpenAI's old wire sign nothing: pi notes there in which field the text came, and they do not expect it back. */
const FIELD_NAME = /^reasoning(?:_[a-z]+)?$/;

/** What of a finished message its provider signed, each where it stands in the text. */
export function signedReasoning({ content, api, provider, model }: AssistantMessage): EngineEvent[] {
	const events: EngineEvent[] = [];
	let after = 0;
	for (const part of content) {
		if (part.type === "text") after += part.text.length;
		if (part.type !== "thinking") continue;
		const { thinking, thinkingSignature: signature = "", redacted } = part;
		if (signature.trim() === "" || FIELD_NAME.test(signature)) continue;
		const seal: Seal = { api, provider, model, signature, ...(redacted === true && { redacted }) };
		events.push({ type: "signed_reasoning", text: thinking, signature: JSON.stringify(seal), after });
	}
	return events;
}

/** As the model wants it back; undefined when another one signed it. */
export function thinkingOf({ text, signature }: SignedReasoning, by: ModelIdentity): ThinkingContent | undefined {
	const seal = sealIn(signature);
	if (seal?.api !== by.api || seal.provider !== by.provider || seal.model !== by.model) return undefined;
	if (typeof seal.signature !== "string") return undefined;
	return {
		type: "thinking",
		thinking: text,
		thinkingSignature: seal.signature,
		...(seal.redacted === true && { redacted: true }),
	};
}

function sealIn(signature: string): Partial<Seal> | undefined {
	try {
		return JSON.parse(signature) as Partial<Seal> | undefined;
	} catch {
		// Another engine's.
		return undefined;
	}
}
