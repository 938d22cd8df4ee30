/** Content parts of a tool result: validated, and cut to the limit of a turn. Pure. */

import type { ContentPart } from "@nexus-stream/protocol";
import { clippedText } from "./pieces.ts";

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

const isTextOrNone = (value: unknown): boolean => value === undefined || typeof value === "string";

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

export const base64Bytes = (data: string): number => Math.floor((data.replace(/=+$/, "").length * 3) / 4);
