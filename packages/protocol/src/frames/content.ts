/** Content in parts: a tool's result for the model, separate from the text that people see. */

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

/** As text, for readers without support for parts: other parts are named. */
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
