/** Tool results and attachments as a turn keeps them, and their descriptions for the context of the next run. Pure. */

import type { ContentPart } from "@nexus-stream/protocol";
import type { StoredMessage, StoredPart } from "../../ledger/turns/port.ts";
import { base64Bytes } from "../../std/content-type.ts";
import { clippedText, isTextual } from "./text.ts";

/** Limit per tool call. */
const PARTS_MAX = 100;
const NOTE_CHARS_MAX = 300;

type Resource = Extract<ContentPart, { type: "resource" }>;

/** Copies the fields that the port has; undefined for invalid content. All text together is kept up to `textCharsMax`. */
export function checkedContent(said: unknown, textCharsMax: number): ContentPart[] | undefined {
	if (!Array.isArray(said)) return undefined;
	const content: ContentPart[] = [];
	let room = textCharsMax;
	for (const part of said.slice(0, PARTS_MAX)) {
		const checked = checkedPart(part);
		if (checked === undefined) return undefined;
		if (checked.type === "text") {
			checked.text = clippedText(checked.text, Math.max(0, room));
			room -= checked.text.length;
		}
		content.push(checked);
	}
	if (said.length > PARTS_MAX) content.push(note(`${said.length - PARTS_MAX} more parts`));
	return content;
}

function checkedPart(part: ContentPart | undefined): ContentPart | undefined {
	switch (part?.type) {
		case "text":
			return typeof part.text === "string" ? { type: "text", text: part.text } : undefined;
		case "image": {
			const { contentType, data } = part;
			if (typeof contentType !== "string" || typeof data !== "string") return undefined;
			return { type: "image", contentType, data };
		}
		case "resource":
			return checkedResource(part);
		default:
			return undefined;
	}
}

export const isTextOrNone = (value: unknown): boolean => value === undefined || typeof value === "string";

function checkedResource({ uri, contentType, text, data }: Resource): Resource | undefined {
	if (typeof uri !== "string" || ![contentType, text, data].every(isTextOrNone)) return undefined;
	return { type: "resource", uri, contentType, text, data };
}

/** Replaces images and resources that do not fit by notes; `chars` is the size of the others. */
export function fitContent(parts: readonly ContentPart[], charsMax: number): { content: ContentPart[]; chars: number } {
	let chars = 0;
	const content = parts.map((part) => {
		if (part.type === "text") return part;
		const size = partChars(part);
		if (chars + size > charsMax) return note(described(part));
		chars += size;
		return part;
	});
	return { content, chars };
}

export function partChars(part: ContentPart): number {
	switch (part.type) {
		case "text":
			return part.text.length;
		case "image":
			return part.data.length + part.contentType.length;
		case "resource":
			return part.uri.length + [part.contentType, part.text, part.data].join("").length;
		default:
			return part satisfies never;
	}
}

const note = (what: string): ContentPart => ({
	type: "text",
	text: `[${clippedText(what, NOTE_CHARS_MAX)}: left out, too long to be kept]`,
});

function described(part: Exclude<ContentPart, { type: "text" }>): string {
	if (part.type === "image") return `image ${part.contentType}, ${base64Bytes(part.data)} bytes`;
	const { uri, text, data = "" } = part;
	const size = text === undefined ? `${base64Bytes(data)} bytes` : `${text.length} characters`;
	return `resource ${uri}, ${size}`;
}

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
