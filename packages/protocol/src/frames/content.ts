/** Content in parts: what a tool answered, as a model reads it, beside the text that a person is shown. */

export type ContentPart =
	| { type: "text"; text: string }
	/** `data` is base64. */
	| { type: "image"; contentType: string; data: string }
	/** Something that has an address: its text, its bytes as base64, or neither. */
	| { type: "resource"; uri: string; contentType?: string; text?: string; data?: string };

/** Reasoning that its provider signed: a later turn gives it back to the model whole, or not at all. */
export interface SignedReasoning {
	text: string;
	/** Opaque to everybody but the engine that made it. */
	signature: string;
	/** After how many characters of its message's text it stands. */
	after: number;
	/** After how many of its message's tool calls. */
	callsBefore: number;
}

/** As text, for whoever reads nothing else: what is not text is named. */
export function contentText(parts: readonly ContentPart[]): string {
	return parts.map(partText).join("\n");
}

function partText(part: ContentPart): string {
	switch (part.type) {
		case "text":
			return part.text;
		case "image":
			return `[image ${part.contentType}]`;
		case "resource":
			return part.text ?? `[resource ${part.uri}]`;
		default:
			return part satisfies never;
	}
}
