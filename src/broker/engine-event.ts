/** What an engine yields, held against its port: user code may yield anything. Throws `engine_failed` with what to yield instead. */

import type { EngineEvent } from "../engine/engine.ts";
import { type ContentPart, contentText, NexusError, wordsOf } from "../protocol/protocol.ts";
import { clipped, clippedText } from "./pieces.ts";

export type ToolEvent = Extract<EngineEvent, { type: "tool" }>;
export type SignedEvent = Extract<EngineEvent, { type: "signed_reasoning" }>;
export type PartEvent = Extract<EngineEvent, { type: "part" }>;

const TOOL_STATUS: ReadonlySet<string> = new Set(["started", "progress", "completed", "failed"]);
/** What the Broker frames by itself; a part of these would be a second, unordered lane. */
const OWN_MODALITIES: ReadonlySet<string> = new Set(["text", "reasoning", "tool"]);

/** What is kept of a report, in frames and in the turn alike. */
export function checkedTool(said: ToolEvent, charsMax: number): ToolEvent {
	const { callId, name, status, args, summary, content } = said;
	if (typeof callId !== "string" || typeof name !== "string" || !TOOL_STATUS.has(status)) throw malformed(said);
	if (content !== undefined && !isContent(content)) throw malformed(said);
	const event: ToolEvent = { type: "tool", callId, name, status };
	if (content !== undefined) event.content = content;
	const result = said.result ?? (content && contentText(content));
	try {
		if (summary !== undefined) event.summary = clippedText(wordsOf(summary), charsMax);
		if (args !== undefined) event.args = clipped(args, charsMax);
		if (result !== undefined) event.result = clipped(result, charsMax);
	} catch (cause) {
		throw new NexusError("engine_failed", `What tool ${name} was given or answered is not JSON: ${wordsOf(cause)}`, {
			cause,
		});
	}
	return event;
}

const isContent = (content: unknown): content is readonly ContentPart[] =>
	Array.isArray(content) && content.every(isContentPart);

const isTextOrNone = (value: unknown): boolean => value === undefined || typeof value === "string";

function isContentPart(part: ContentPart | undefined): boolean {
	switch (part?.type) {
		case "text":
			return typeof part.text === "string";
		case "image":
			return typeof part.contentType === "string" && typeof part.data === "string";
		case "resource":
			return typeof part.uri === "string" && [part.contentType, part.text, part.data].every(isTextOrNone);
		default:
			return false;
	}
}

export function checkSigned(event: SignedEvent): void {
	const { text, signature, after = 0 } = event;
	const counted = Number.isSafeInteger(after) && after >= 0;
	if (typeof text !== "string" || typeof signature !== "string" || !counted) throw malformed(event);
}

export function checkPart(event: PartEvent): void {
	const { modality, contentType, payload } = event;
	const named =
		typeof modality === "string" && modality !== "" && typeof contentType === "string" && contentType !== "";
	if (!named || typeof payload !== "string" || OWN_MODALITIES.has(modality)) throw malformed(event);
}

export function malformed(event: unknown): NexusError {
	const shown = wordsOf(event) || String(event);
	return new NexusError(
		"engine_failed",
		`The engine yielded something that is not an EngineEvent: ${shown.slice(0, 200)}. ` +
			"Yield text, reasoning, signed_reasoning, message, tool, part, usage or compaction with the fields of the engine port.",
	);
}
