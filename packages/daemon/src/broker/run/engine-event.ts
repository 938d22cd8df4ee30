/** Validates the events of an engine: user code may yield anything. Throws `engine_failed` with what to yield instead. */

import { contentText, isToolDone, NexusError, type ToolApprovalStatus, wordsOf } from "@nexus-stream/protocol";
import type { EngineEvent, ToolApproval } from "@nexus-stream/protocol/engine";
import { checkedContent } from "../frames/content.ts";
import { clipped, clippedText } from "../frames/text.ts";

export type ToolEvent = Extract<EngineEvent, { type: "tool" }>;
export type SignedEvent = Extract<EngineEvent, { type: "signed_reasoning" }>;
export type PartEvent = Extract<EngineEvent, { type: "part" }>;

const TOOL_STATUS: ReadonlySet<string> = new Set(["started", "progress", "completed", "failed"]);
/** The Broker frames these itself; parts with these modalities would be a second, unordered lane. */
const OWN_MODALITIES: ReadonlySet<string> = new Set(["text", "reasoning", "tool"]);

/** A tool report cut to the limit, for frames and turn alike. */
export function checkedTool(report: ToolEvent, charsMax: number): ToolEvent {
	const { callId, name, status, args, summary } = report;
	if (typeof callId !== "string" || typeof name !== "string" || !TOOL_STATUS.has(status)) throw malformed(report);
	const content = report.content === undefined ? undefined : checkedContent(report.content, charsMax);
	if (report.content !== undefined && content === undefined) throw malformed(report);
	const event: ToolEvent = { type: "tool", callId, name, status };
	if (report.agent !== undefined) event.agent = report.agent;
	if (report.asking !== undefined) event.asking = report.asking;
	if (content !== undefined) event.content = content;
	const result = report.result ?? (content && contentText(content));
	try {
		if (summary !== undefined) event.summary = clippedText(wordsOf(summary), charsMax);
		if (args !== undefined) event.args = clipped(args, charsMax);
		if (result !== undefined) event.result = clipped(result, charsMax);
	} catch (cause) {
		const message = `The arguments or the result of tool ${name} are not JSON: ${wordsOf(cause)}`;
		throw new NexusError("engine_failed", message, { cause });
	}
	return event;
}

const NAME_CHARS_MAX = 200;

/** A valid name of an agent or a model. */
export const isNamed = (name: unknown): name is string =>
	typeof name === "string" && name !== "" && name.length <= NAME_CHARS_MAX && name.isWellFormed();

export function checkAgent(agent: unknown): void {
	if (!isNamed(agent)) throw malformed({ agent });
}

/** The fields of a frame except the names of tool and call. */
export function reportOf({ status, summary, args, result, asking }: ToolEvent) {
	return { status, summary, args, result, ...(asking && { [asking.kind]: approvalStatus(asking) }) };
}

/** As frames carry it (P2.8). */
function approvalStatus(asking: ToolApproval): ToolApprovalStatus {
	const { id, state, question: text = "", choices, by, because, once, expiresAt = 0 } = asking;
	return { id, state, text, because, once: once || undefined, choices, by, expires_at: expiresAt };
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
			"Yield text, reasoning, signed_reasoning, message, message_end, tool, part, usage, compaction, checkpoint, phase or log with the fields of the engine port, or an array of these.",
	);
}

/** After a stop only usage, checkpoints, log entries and the outcomes of running tools are still taken. */
export function isOutcome(event: EngineEvent, tools: { isToolOpen(callId: string): boolean }): boolean {
	if (event?.type === "usage" || event?.type === "checkpoint" || event?.type === "log") return true;
	return event?.type === "tool" && isToolDone(event.status) && tools.isToolOpen(event.callId);
}

/** Makes every tool call start exactly once, even if the engine omits or repeats the start. */
export class ToolStarts {
	/** Calls that have started and not ended. */
	readonly #running = new Set<string>();

	/** Adds a missing start; turns a second start into progress. A call that failed without a start never ran. */
	mended(event: ToolEvent): readonly ToolEvent[] {
		const { callId, status, asking: approval } = event;
		const isRunning = this.#running.has(callId);
		if (isToolDone(status)) this.#running.delete(callId);
		else if (approval === undefined) this.#running.add(callId);
		if (isRunning) return status === "started" ? [{ ...event, status: "progress" }] : [event];
		const isStart = status === "started" || status === "failed" || approval !== undefined;
		const { name, agent, args } = event;
		return isStart ? [event] : [{ type: "tool", callId, name, status: "started", agent, args }, event];
	}
}
