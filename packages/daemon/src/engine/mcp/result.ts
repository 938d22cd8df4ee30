/** The result of a server's call in parts that a model can read: bounded in bytes and in number, with notes about omitted parts. */

import type {
	CallToolResult,
	ContentBlock,
	JsonSchemaType,
	JsonSchemaValidator,
	jsonSchemaValidator,
} from "@modelcontextprotocol/client";
import { Ajv, AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";
import type { ContentPart } from "@nexus-stream/protocol";
import type { JsonSchema, ToolResult } from "../tool.ts";
import type { McpLimits } from "./port.ts";
import { checkable } from "./schema.ts";

type Limits = Pick<McpLimits, "resultBytesMax" | "resultPartsMax">;

export function toolResult(answer: CallToolResult, limits: Limits): ToolResult {
	const parts = answer.content.map(partOf);
	// Structured content should also be in the text content; accept a server that leaves that out.
	if (parts.length === 0 && answer.structuredContent !== undefined)
		parts.push({ type: "text", text: JSON.stringify(answer.structuredContent) });
	return { content: boundedParts(parts, limits), failed: answer.isError === true ? true : undefined };
}

function partOf(block: ContentBlock): ContentPart {
	switch (block.type) {
		case "text":
			return { type: "text", text: block.text };
		case "image":
			return { type: "image", contentType: block.mimeType, data: block.data };
		case "audio":
			return { type: "resource", uri: `data:${block.mimeType}`, contentType: block.mimeType, data: block.data };
		case "resource_link":
			return { type: "resource", uri: block.uri, ...typed(block.mimeType) };
		case "resource": {
			const { uri, mimeType } = block.resource;
			const held = "text" in block.resource ? { text: block.resource.text } : { data: block.resource.blob };
			return { type: "resource", uri, ...typed(mimeType), ...held };
		}
		default:
			return block satisfies never;
	}
}

const typed = (contentType: string | undefined) => (contentType === undefined ? {} : { contentType });

/** Texts are cut where the bytes end; images and files are whole or not there. */
function boundedParts(parts: readonly ContentPart[], { resultBytesMax, resultPartsMax }: Limits): ContentPart[] {
	const kept: ContentPart[] = [];
	let left = resultBytesMax;
	for (const part of parts.slice(0, resultPartsMax)) {
		const fitting = fitted(part, left);
		kept.push(fitting);
		left = Math.max(0, left - bytesOf(fitting));
	}
	const more = parts.length - resultPartsMax;
	if (more > 0) kept.push({ type: "text", text: `[${more} more parts were left out]` });
	return kept;
}

function bytesOf(part: ContentPart): number {
	const fields =
		part.type === "text" ? [part.text] : part.type === "image" ? [part.data] : [part.text, part.data, part.uri];
	return fields.reduce((sum, text = "") => sum + Buffer.byteLength(text), 0);
}

function fitted(part: ContentPart, bytesMax: number): ContentPart {
	const bytes = bytesOf(part);
	if (bytes <= bytesMax) return part;
	if (part.type === "text") return { type: "text", text: cut(part.text, bytesMax) };
	if (part.type === "resource" && part.text !== undefined && part.uri.length < bytesMax)
		return { ...part, text: cut(part.text, bytesMax - Buffer.byteLength(part.uri)) };
	const what = part.type === "image" ? `image ${part.contentType}` : `resource ${part.uri.slice(0, 200)}`;
	return { type: "text", text: `[${what} of ${bytes} bytes was left out: the result is too large]` };
}

function cut(text: string, bytesMax: number): string {
	const kept = Buffer.from(text)
		.subarray(0, Math.max(0, bytesMax))
		.toString("utf8")
		.replace(/\uFFFD$/, "");
	return `${kept}\n[the rest was left out: the result is too large]`;
}

/** Schemas and alternatives, times characters of the answer. Beyond, the answer is taken as it is. */
const WORK_MAX = 50_000_000;

/** A schema is compiled when it is needed first: the library asks for those of all tools at once. */
export function outputValidator({ schemaBytesMax }: Pick<McpLimits, "schemaBytesMax">): jsonSchemaValidator {
	const library = new AjvJsonSchemaValidator(new Ajv({ strict: false, validateSchema: false, validateFormats: false }));
	const compiled = <T>(given: JsonSchemaType) => {
		if (Buffer.byteLength(JSON.stringify(given)) > schemaBytesMax) throw new Error("its output schema is too large");
		const { schema, steps } = checkable(given as JsonSchema);
		const { $schema: _, ...rest } = schema;
		return { check: library.getValidator<T>(rest as JsonSchemaType), steps };
	};
	return {
		getValidator<T>(given: JsonSchemaType): JsonSchemaValidator<T> {
			let validator: ReturnType<typeof compiled<T>> | undefined;
			return (answer) => {
				validator ??= compiled<T>(given);
				const { check, steps } = validator;
				const isChecked = steps * JSON.stringify(answer).length <= WORK_MAX;
				return isChecked ? check(answer) : { valid: true, data: answer as T, errorMessage: undefined };
			};
		},
	};
}
