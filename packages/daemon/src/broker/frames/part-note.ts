/** Attachments of an answer, described in words for the turn and for the context of the next run. Pure. */

import type { StoredMessage, StoredPart } from "../../ledger/turns/port.ts";
import { base64Bytes } from "../../std/base64.ts";
import { isTextual } from "./pieces.ts";

const DESCRIPTION_CHARS_MAX = 300;
const CARDS_NAMED_MAX = 10;
/** Text and JSON up to this length are kept whole; longer or binary payloads stay in the run's frames. */
const PAYLOAD_CHARS_MAX = 16 * 1024;

interface PartPayload {
	modality: string;
	contentType: string;
	payload: string;
}

export function storedPart({ modality, contentType, payload }: PartPayload, after: number): StoredPart {
	const isText = isTextual(contentType);
	return {
		modality,
		contentType,
		description: descriptionOf({ modality, contentType, payload }, isText),
		bytes: isText ? Buffer.byteLength(payload) : base64Bytes(payload),
		after,
		payload: isText && payload.length <= PAYLOAD_CHARS_MAX ? payload : undefined,
	};
}

function descriptionOf({ modality, contentType, payload }: PartPayload, isText: boolean): string {
	const value = payload.length <= PAYLOAD_CHARS_MAX * 4 && isText ? jsonOf(payload) : undefined;
	const cards = cardsIn(value).flatMap((card) => titleOf(card) ?? []);
	const named = cards.slice(0, CARDS_NAMED_MAX).join("; ");
	const more = cards.length > CARDS_NAMED_MAX ? `; and ${cards.length - CARDS_NAMED_MAX} more` : "";
	const description = named === "" ? `${modality} (${contentType})` : `${modality}: ${named}${more}`;
	return description.replace(/\s+/g, " ").slice(0, DESCRIPTION_CHARS_MAX).toWellFormed();
}

function cardsIn(value: unknown): unknown[] {
	if (Array.isArray(value)) return value;
	const { items, cards } = (value ?? {}) as { items?: unknown; cards?: unknown };
	const list = items ?? cards;
	return Array.isArray(list) ? list : [value];
}

function titleOf(value: unknown): string | undefined {
	if (typeof value !== "object" || value === null) return undefined;
	const { title, name, subtitle, price } = value as Record<string, unknown>;
	const head = title ?? name;
	if (typeof head !== "string" || head === "") return undefined;
	return [head, subtitle, price].filter((each) => typeof each === "string" || typeof each === "number").join(", ");
}

function jsonOf(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		// Not JSON: the description is its type.
		return undefined;
	}
}

/** An assistant message's text with notes about its reasoning and attachments; `moved` is how far its own text shifted. */
export function modelText(message: StoredMessage): { text: string; moved: number } {
	const { text, parts = [], reasoning, signedReasoning } = message;
	// The model gets signed reasoning back as its own.
	const isNoted = reasoning !== undefined && signedReasoning === undefined;
	const thought = isNoted ? [`[Reasoning before this answer: ${reasoning}]`] : [];
	const shown = parts.length === 0 ? [] : [`[Shown with this answer: ${parts.map(noteOf).join(" | ")}]`];
	const noted = [...thought, ...(text === "" ? [] : [text]), ...shown].join(SEPARATOR);
	return { text: noted, moved: isNoted ? thought.join().length + SEPARATOR.length : 0 };
}

const SEPARATOR = "\n\n";

const noteOf = ({ description, bytes }: StoredPart): string => `${description}, ${bytes} bytes`;
