/** What stands beside an answer's text, as the turn keeps it and the next turn's context tells it: by description. Pure. */

import type { StoredMessage, StoredPart } from "../../ledger/ledger.ts";
import { base64Bytes } from "../../std/base64.ts";
import { isTextual } from "./pieces.ts";

const DESCRIPTION_CHARS_MAX = 300;
const CARDS_NAMED_MAX = 10;
/** Text and JSON up to here are kept whole; what is longer or binary stays in the run's frames. */
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
	const said = named === "" ? `${modality} (${contentType})` : `${modality}: ${named}${more}`;
	return said.replace(/\s+/g, " ").slice(0, DESCRIPTION_CHARS_MAX).toWellFormed();
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
		// Not JSON: it is told by its type.
		return undefined;
	}
}

/** An assistant message's text with what stood beside it, and how far its own text moved for that. */
export function modelText(message: StoredMessage): { text: string; moved: number } {
	const { text, parts = [], reasoning, signedReasoning } = message;
	// Signed, the model gets it back as its own.
	const isTold = reasoning !== undefined && signedReasoning === undefined;
	const thought = isTold ? [`[Reasoning before this answer: ${reasoning}]`] : [];
	const beside = parts.length === 0 ? [] : [`[Shown with this answer: ${parts.map(noteOf).join(" | ")}]`];
	const told = [...thought, ...(text === "" ? [] : [text]), ...beside].join(APART);
	return { text: told, moved: isTold ? thought.join().length + APART.length : 0 };
}

const APART = "\n\n";

const noteOf = ({ description, bytes }: StoredPart): string => `${description}, ${bytes} bytes`;
