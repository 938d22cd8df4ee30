/** Frames → StreamEvents (PROTOCOL §2): a run as the Bus stores it, and as a chat platform hears it. */

import type { BeginFrame, ChunkFrame, EndFrame, Frame } from "./frame.ts";
import { decodeToolStatus, type StreamEvent } from "./stream-event.ts";

export interface ToEvents {
	/** The event that this frame is; undefined for a frame that no platform hears (a card, the end of a tool call, hidden words). */
	push(frame: Frame): StreamEvent | undefined;
}

/** Reads one run's frames in order, from its first. */
export function createToEvents(): ToEvents {
	const begins = new Map<string, BeginFrame>();
	let runId: string | undefined;
	let started = false;
	/** Some text has arrived: the value of `partial` in a stream_error. */
	let heard = false;

	function begin(frame: BeginFrame): StreamEvent | undefined {
		begins.set(frame.message_id, frame);
		runId ??= frame.run_id;
		if (started || frame.modality !== "text") return undefined;
		started = true;
		const { session: sessionLabel = "", target = null } = frame;
		return named({ type: "stream_start", runId, sessionLabel, target }, frame);
	}

	function chunk(frame: ChunkFrame): StreamEvent | undefined {
		const from = begins.get(frame.message_id);
		if (from === undefined || from.visible === false) return undefined;
		switch (from.modality) {
			case "text":
				heard = true;
				return named({ type: "token", text: frame.payload }, from);
			case "reasoning":
				return named({ type: "reasoning", text: frame.payload }, from);
			case "tool": {
				const status = decodeToolStatus(frame.payload);
				return status && named(status, from);
			}
			default:
				return undefined;
		}
	}

	function end(frame: EndFrame): StreamEvent | undefined {
		const from = begins.get(frame.message_id);
		begins.delete(frame.message_id);
		const isMessage = from?.modality === "text" && from.visible !== false;
		if (!isMessage && !frame.final) return undefined;
		// The end of the run gives the reason why a message was cut short.
		if (!frame.final || frame.reason === "completed" || frame.reason === "aborted") {
			const ended = { type: "stream_end" as const, runId: runId ?? "", final: frame.final };
			return isMessage ? named(ended, from) : ended;
		}
		return { type: "stream_error", error: frame.error?.message ?? frame.reason, partial: heard };
	}

	return {
		push(frame) {
			switch (frame.type) {
				case "stream.begin":
					return begin(frame);
				case "stream.chunk":
					return chunk(frame);
				case "stream.end":
					return end(frame);
				default:
					return frame satisfies never;
			}
		},
	};
}

const named = (event: Exclude<StreamEvent, { type: "stream_error" }>, { agent }: BeginFrame): StreamEvent =>
	agent === undefined ? event : { ...event, agent };
