/** Whole streams as one value, for callers that do not show them while they come. */

import { NexusError } from "@nexus-stream/protocol";
import type { StreamScenarioResponse } from "../gen/nexus/runtime/v1/ai_pb.ts";
import type { ExportAuditEventsResponse } from "../gen/nexus/runtime/v1/audit_pb.ts";

/** How a scenario came out: failed when it has a reason code. */
export interface ScenarioResult
	extends Pick<StreamScenarioResponse, "runId" | "reasonCode" | "reason" | "usage" | "modelId" | "demo"> {
	text: string;
	audio: Uint8Array;
	mimeType: string;
}

/** The result of a mode A stream. A failed call has a reason code and the text that arrived before it. */
export async function outcomeOf(stream: AsyncIterable<StreamScenarioResponse>): Promise<ScenarioResult> {
	let text = "";
	let mimeType = "";
	const audio: Uint8Array[] = [];
	for await (const event of stream) {
		text += event.textDelta;
		if (event.audioChunk.length > 0) audio.push(event.audioChunk);
		mimeType = event.mimeType || mimeType;
		if (!event.done) continue;
		const { runId, reasonCode, reason, usage, modelId, demo } = event;
		return { runId, reasonCode, reason, usage, modelId, demo, text, audio: joined(audio), mimeType };
	}
	throw notWhole();
}

/** The result of a mode B stream: the event with the terminal state, whose snapshot is the result. */
export async function lastOf<Event>(stream: AsyncIterable<Event>): Promise<Event> {
	let last: Event | undefined;
	for await (last of stream);
	if (last === undefined) throw notWhole();
	return last;
}

/** The result of a mode C stream. */
export async function bytesOf(stream: AsyncIterable<ExportAuditEventsResponse>): Promise<Uint8Array> {
	const chunks: Uint8Array[] = [];
	for await (const { chunk, eof } of stream) {
		chunks.push(chunk);
		if (eof) return joined(chunks);
	}
	throw notWhole();
}

const notWhole = () => new NexusError("data_loss", "the stream ended before its end");

function joined(pieces: readonly Uint8Array[]): Uint8Array {
	const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
	let at = 0;
	for (const piece of pieces) {
		whole.set(piece, at);
		at += piece.length;
	}
	return whole;
}
