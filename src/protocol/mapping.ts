/** StreamEvents ⇄ frames (PROTOCOL §2): the same run as a chat platform hears it and as the Bus stores it. */

import { checksumOf, crc32 } from "./crc.ts";
import { NexusError } from "./error.ts";
import type { BeginFrame, ChunkFrame, EndFrame, EndReason, Frame, Modality } from "./frame.ts";
import { messageIdOf, traceIdOf } from "./ids.ts";
import {
	decodeToolStatus,
	encodeToolStatus,
	isToolDone,
	type StreamEvent,
	type ToolStatusEvent,
} from "./stream-event.ts";

export interface ToEvents {
	/** The event that this frame is; undefined for a frame that no platform hears (a card, the end of a tool call). */
	push(frame: Frame): StreamEvent | undefined;
}

/** Reads one run's frames in order, from its first. */
export function createToEvents(): ToEvents {
	const modalities = new Map<string, Modality>();
	let runId: string | undefined;
	let started = false;
	/** Some text has been heard: what `partial` of a stream_error says. */
	let heard = false;

	function begin(frame: BeginFrame): StreamEvent | undefined {
		modalities.set(frame.message_id, frame.modality);
		runId ??= frame.run_id;
		if (started || frame.modality !== "text") return undefined;
		started = true;
		return { type: "stream_start", runId, sessionLabel: frame.session ?? "", target: frame.target ?? null };
	}

	function chunk(frame: ChunkFrame): StreamEvent | undefined {
		switch (modalities.get(frame.message_id)) {
			case "text":
				heard = true;
				return { type: "token", text: frame.payload };
			case "reasoning":
				return { type: "reasoning", text: frame.payload };
			case "tool":
				return decodeToolStatus(frame.payload);
			default:
				return undefined;
		}
	}

	function end(frame: EndFrame): StreamEvent | undefined {
		const modality = modalities.get(frame.message_id);
		modalities.delete(frame.message_id);
		if (modality !== "text" && !frame.final) return undefined;
		if (frame.reason === "completed" || frame.reason === "aborted") {
			return { type: "stream_end", runId: runId ?? "", final: frame.final };
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

export interface ToFrames {
	/** The frames that this event is, in order. Throws `invalid` for an event that cannot stand here. */
	push(event: StreamEvent): Frame[];
}

export interface ToFramesOptions {
	runId: string;
	session: string;
	/** Derived from the run's id when left out. */
	traceId?: string;
	/** Milliseconds since the epoch. */
	now: () => number;
}

interface OpenStream {
	readonly messageId: string;
	readonly modality: Modality;
	chunks: number;
	crc: number;
}

type EndDetails = Pick<EndFrame, "final" | "reason" | "error" | "usage">;

/** Turns the events of one run, from its stream_start to its final stream_end or stream_error, into its log. */
export function createToFrames(options: ToFramesOptions): ToFrames {
	const { runId, session, traceId = traceIdOf(runId), now } = options;
	/** Open streams in order of opening. */
	const open = new Set<OpenStream>();
	const tools = new Map<string, OpenStream>();
	let opened = 0;
	let text: OpenStream | undefined;
	let reasoning: OpenStream | undefined;
	let target: unknown;
	let over = false;

	function begin(modality: Modality, contentType: string): [OpenStream, BeginFrame] {
		const messageId = messageIdOf(runId, ++opened);
		const stream: OpenStream = { messageId, modality, chunks: 0, crc: 0 };
		open.add(stream);
		const frame: BeginFrame = {
			type: "stream.begin",
			message_id: messageId,
			run_id: runId,
			trace_id: traceId,
			correlation_group: runId,
			modality,
			content_type: contentType,
			session,
			...(target !== undefined && { target }),
			ts: now(),
		};
		return [stream, frame];
	}

	function beginText(): Frame {
		const [stream, frame] = begin("text", "text/markdown");
		text = stream;
		return frame;
	}

	function chunk(stream: OpenStream, payload: string): Frame {
		stream.crc = crc32(payload, stream.crc);
		const is_partial = stream.modality !== "tool";
		return {
			type: "stream.chunk",
			message_id: stream.messageId,
			seq_no: ++stream.chunks,
			payload,
			is_partial,
			ts: now(),
		};
	}

	function end(stream: OpenStream, details: EndDetails): Frame {
		open.delete(stream);
		const { messageId: message_id, chunks: total_chunks, crc } = stream;
		return { type: "stream.end", message_id, total_chunks, checksum: checksumOf(crc), ...details, ts: now() };
	}

	/** Reasoning is one stream as long as nothing else comes between. */
	function endReasoning(): Frame[] {
		const stream = reasoning;
		reasoning = undefined;
		return stream ? [end(stream, { final: false, reason: "completed" })] : [];
	}

	function reason(piece: string): Frame[] {
		if (reasoning) return [chunk(reasoning, piece)];
		const [stream, frame] = begin("reasoning", "text/plain");
		reasoning = stream;
		return [frame, chunk(stream, piece)];
	}

	function tool(event: ToolStatusEvent): Frame[] {
		const frames = endReasoning();
		let stream = tools.get(event.toolCallId);
		if (stream === undefined) {
			const [fresh, frame] = begin("tool", "application/json");
			stream = fresh;
			tools.set(event.toolCallId, stream);
			frames.push(frame);
		}
		frames.push(chunk(stream, encodeToolStatus(event)));
		if (isToolDone(event.status)) {
			tools.delete(event.toolCallId);
			frames.push(end(stream, { final: false, reason: "completed" }));
		}
		return frames;
	}

	/** Everything else ends first; the text stream's end is the last record. */
	function settle(current: OpenStream, reason: EndReason, error?: EndFrame["error"]): Frame[] {
		over = true;
		const others = [...open].filter((stream) => stream !== current);
		const frames = others.map((stream) => end(stream, { final: false, reason }));
		const usage = { input: -1, output: -1 };
		return [...frames, end(current, { final: true, reason, ...(error && { error }), usage })];
	}

	return {
		push(event) {
			if (over) throw new NexusError("invalid", `${event.type} after the end of run ${runId}`);
			if (event.type === "stream_start") {
				if (text) throw new NexusError("invalid", `second stream_start in run ${runId}`);
				if (event.runId !== runId) throw new NexusError("invalid", `stream_start of ${event.runId} in run ${runId}`);
				target = event.target;
				return [beginText()];
			}
			if (!text) throw new NexusError("invalid", `${event.type} before stream_start in run ${runId}`);
			switch (event.type) {
				case "token":
					return event.text === "" ? [] : [...endReasoning(), chunk(text, event.text)];
				case "reasoning":
					return event.text === "" ? [] : reason(event.text);
				case "tool_status":
					return tool(event);
				case "stream_end":
					if (event.final !== false) return settle(text, "completed");
					return [...endReasoning(), end(text, { final: false, reason: "completed" }), beginText()];
				case "stream_error":
					return settle(text, "error", { code: "engine_failed", message: event.error });
				default:
					return event satisfies never;
			}
		},
	};
}
