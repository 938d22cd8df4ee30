/** EngineEvents → frames of one run: which streams are open, their counts and checksums. No I/O; records go to the sink that is passed in. */

import type { EngineEvent } from "../engine/engine.ts";
import {
	type Align,
	checksumOf,
	chunkBytesOf,
	chunkEncoder,
	crc32,
	decodeToolStatus,
	encodeFrame,
	encodeToolStatus,
	type Frame,
	isToolDone,
	type Modality,
	messageIdOf,
	type ToolStatusEvent,
	traceIdOf,
	type Usage,
} from "../protocol/protocol.ts";
import { type Ending, unpairedSummary } from "./ending.ts";
import {
	checkedTool,
	checkPart,
	checkSigned,
	malformed,
	type PartEvent,
	reportOf,
	type ToolEvent,
} from "./engine-event.ts";
import { partPiecesOf, piecesOf, UTF8_BYTES_PER_UNIT_MAX } from "./pieces.ts";

export type Sink = (record: string) => void;

interface Stream {
	readonly messageId: string;
	readonly modality: Modality;
	readonly contentType: string;
	/** Of one chunk. */
	readonly bytesMax: number;
	readonly encode: ReturnType<typeof chunkEncoder>;
	seqNo: number;
	crc: number;
	/** The first half of a surrogate pair that the last delta ended with; the next one brings the second. */
	half: string;
	/** The call that a tool stream is about. */
	tool?: { toolName: string; toolCallId: string };
}

export interface FramerOptions {
	runId: string;
	session: string;
	/** The run that it continues. */
	continues?: string | undefined;
	target?: unknown;
	/** The trace that the run is a part of; derived from the run's id when left out. */
	traceId?: string | undefined;
	/** A message's text is one chunk, once it is whole or something else comes (P1.14). */
	whole?: boolean;
	/** Above this no modality goes (P1.18). */
	chunkBytesMax: number;
	toolJsonCharsMax: number;
}

export class Framer {
	readonly #options: FramerOptions;
	#traceId: string;
	/** In order of opening. */
	readonly #open = new Map<string, Stream>();
	readonly #tools = new Map<string, Stream>();
	/** By modality. */
	readonly #parts = new Map<string, Stream>();
	#text: Stream | undefined;
	#reasoning: Stream | undefined;
	#compaction: Stream | undefined;
	#opened = 0;
	#chunks = 0;
	/** Text that waits until it is whole. */
	#held = "";
	#finished = false;

	constructor(options: FramerOptions) {
		this.#options = options;
		this.#traceId = options.traceId ?? traceIdOf(options.runId);
	}

	/** The text stream that is open, or the one that will be opened next. */
	get textId(): string {
		return this.#text?.messageId ?? messageIdOf(this.#options.runId, this.#opened + 1);
	}

	get compacting(): boolean {
		return this.#compaction !== undefined;
	}

	/** Of the streams that have ended. */
	get chunks(): number {
		return this.#chunks;
	}

	/** The final end has been written. */
	get finished(): boolean {
		return this.#finished;
	}

	isToolOpen(callId: string): boolean {
		return this.#tools.has(callId);
	}

	/** Every run begins with its first text stream. */
	open(ts: number, sink: Sink): void {
		this.#text = this.#begin("text", "text/markdown", ts, sink);
	}

	/** The event as it was framed: what is too long is cut. Throws `engine_failed` when it is not one of the port's. */
	take(event: EngineEvent, ts: number, sink: Sink): EngineEvent {
		switch (event?.type) {
			case "text":
				if (typeof event.delta !== "string") throw malformed(event);
				if (event.delta !== "") this.#takeText(event.delta, ts, sink);
				return event;
			case "reasoning":
				this.#release(false, ts, sink);
				if (typeof event.delta !== "string") throw malformed(event);
				if (event.delta !== "") this.#takeReasoning(event.delta, ts, sink);
				return event;
			case "message":
				this.#release(true, ts, sink);
				this.#nextMessage(ts, sink);
				return event;
			case "tool":
				this.#release(false, ts, sink);
				return this.#takeTool(event, ts, sink);
			case "part":
				this.#release(false, ts, sink);
				this.#takePart(event, ts, sink);
				return event;
			case "compaction":
				this.#takeCompaction(event.phase, ts, sink);
				return event;
			case "signed_reasoning":
				checkSigned(event);
				return event;
			case "usage":
			// Nobody is shown these.
			case "checkpoint":
			case "phase":
			case "log":
				return event;
			default:
				throw malformed(event satisfies never);
		}
	}

	/** Ends whatever is open; the text stream last, and it alone is final (I3). */
	end(ending: Ending, usage: Usage, ts: number, sink: Sink): void {
		if (this.#text === undefined) this.open(ts, sink);
		this.#release(ending.reason === "completed", ts, sink);
		const text = this.#text!;
		for (const stream of [...this.#open.values()]) {
			if (stream === text) continue;
			if (stream.tool) {
				const summary = unpairedSummary(ending.reason);
				this.#status(stream, { type: "tool_status", ...stream.tool, status: "failed", summary }, ts, sink);
			}
			this.#end(stream, ending, ts, sink);
		}
		this.#end(text, ending, ts, sink, usage);
		this.#finished = true;
	}

	/** Takes over the state that a record of a dead process left: what was written is not written again. */
	replay(frame: Frame): void {
		if (frame.type === "stream.begin") {
			const stream = this.#add(frame.message_id, frame.modality, frame.content_type);
			this.#traceId = frame.trace_id;
			if (frame.modality === "text") this.#text = stream;
			return;
		}
		const stream = this.#open.get(frame.message_id);
		if (stream === undefined) return;
		if (frame.type === "stream.end") {
			this.#forget(stream);
			this.#finished ||= frame.final;
			return;
		}
		stream.seqNo = frame.seq_no;
		stream.crc = crc32(frame.payload, stream.crc);
		if (stream.modality === "tool" && !stream.tool) {
			const status = decodeToolStatus(frame.payload);
			if (status) stream.tool = { toolName: status.toolName, toolCallId: status.toolCallId };
		}
	}

	#takeText(delta: string, ts: number, sink: Sink): void {
		if (this.#reasoning) this.#end(this.#reasoning, DONE, ts, sink);
		if (this.#options.whole) this.#held += delta;
		else this.#partial(this.#text!, delta, ts, sink);
	}

	/** `isAll`: nothing more comes for this message. */
	#release(isAll: boolean, ts: number, sink: Sink): void {
		if (this.#held === "") return;
		const stream = this.#text!;
		const pieces = piecesOf(this.#held.toWellFormed(), stream.bytesMax);
		this.#held = "";
		const isWhole = isAll && stream.seqNo === 0 && pieces.length === 1;
		for (const piece of pieces) this.#chunk(stream, piece, !isWhole, undefined, ts, sink);
	}

	#takeReasoning(delta: string, ts: number, sink: Sink): void {
		this.#reasoning ??= this.#begin("reasoning", "text/plain", ts, sink);
		this.#partial(this.#reasoning, delta, ts, sink);
	}

	/** With nothing said yet the current message goes on. */
	#nextMessage(ts: number, sink: Sink): void {
		if (this.#reasoning) this.#end(this.#reasoning, DONE, ts, sink);
		if (this.#text!.seqNo === 0) return;
		for (const part of [...this.#parts.values()]) this.#end(part, DONE, ts, sink);
		this.#parts.clear();
		this.#end(this.#text!, DONE, ts, sink);
		this.open(ts, sink);
	}

	#takeTool(said: ToolEvent, ts: number, sink: Sink): ToolEvent {
		const event = checkedTool(said, this.#options.toolJsonCharsMax);
		if (this.#reasoning) this.#end(this.#reasoning, DONE, ts, sink);
		let stream = this.#tools.get(event.callId);
		if (!stream) {
			stream = this.#begin("tool", "application/json", ts, sink);
			stream.tool = { toolName: event.name, toolCallId: event.callId };
			this.#tools.set(event.callId, stream);
		}
		this.#status(stream, { type: "tool_status", ...stream.tool!, ...reportOf(event) }, ts, sink);
		if (isToolDone(event.status)) this.#end(stream, DONE, ts, sink);
		return event;
	}

	/** Parts of one modality in one message are one stream; each waits for the text that was yielded before it. */
	#takePart(event: PartEvent, ts: number, sink: Sink): void {
		checkPart(event);
		const { modality, contentType, payload } = event;
		if (this.#reasoning) this.#end(this.#reasoning, DONE, ts, sink);
		const text = this.#text!;
		const align = text.seqNo === 0 ? undefined : { message_id: text.messageId, seq_no: text.seqNo };
		const pieces = partPiecesOf(payload.toWellFormed(), contentType, this.#bytesMax(modality));
		if (modality === "image" || pieces.length > 1) this.#wholePart(event, pieces, align, ts, sink);
		else this.#chunk(this.#partStream(event, ts, sink), payload.toWellFormed(), false, align, ts, sink, contentType);
	}

	/** One whose number of chunks is known: a stream of its own, after those of its modality that came before. */
	#wholePart(event: PartEvent, pieces: readonly string[], align: Align | undefined, ts: number, sink: Sink): void {
		const { modality, contentType } = event;
		const before = this.#parts.get(modality);
		if (before) this.#end(before, DONE, ts, sink);
		this.#parts.delete(modality);
		const stream = this.#begin(modality, contentType, ts, sink, pieces.length);
		for (const [n, piece] of pieces.entries()) {
			this.#chunk(stream, piece, n < pieces.length - 1, align, ts, sink);
		}
		this.#end(stream, DONE, ts, sink);
	}

	#partStream({ modality, contentType }: PartEvent, ts: number, sink: Sink): Stream {
		const known = this.#parts.get(modality);
		if (known) return known;
		const stream = this.#begin(modality, contentType, ts, sink);
		this.#parts.set(modality, stream);
		return stream;
	}

	#takeCompaction(phase: "start" | "end", ts: number, sink: Sink): void {
		if (phase !== "start" && phase !== "end") throw malformed({ type: "compaction", phase });
		if (this.#reasoning) this.#end(this.#reasoning, DONE, ts, sink);
		this.#compaction ??= this.#begin("data", "application/json", ts, sink);
		const stream = this.#compaction;
		this.#chunk(stream, JSON.stringify({ compaction: phase }), false, undefined, ts, sink);
		if (phase === "end") this.#end(stream, DONE, ts, sink);
	}

	#begin(modality: Modality, contentType: string, ts: number, sink: Sink, expectedChunks?: number): Stream {
		const { runId, session, continues, target } = this.#options;
		const stream = this.#add(messageIdOf(runId, this.#opened + 1), modality, contentType);
		sink(
			encodeFrame({
				type: "stream.begin",
				message_id: stream.messageId,
				run_id: runId,
				trace_id: this.#traceId,
				correlation_group: runId,
				modality,
				content_type: contentType,
				...(expectedChunks !== undefined && { expected_chunks: expectedChunks }),
				session,
				...(continues !== undefined && { continues }),
				...(target !== undefined && { target }),
				ts,
			}),
		);
		return stream;
	}

	#bytesMax(modality: Modality): number {
		return Math.min(chunkBytesOf(modality), this.#options.chunkBytesMax);
	}

	#add(messageId: string, modality: Modality, contentType: string): Stream {
		const stream: Stream = {
			messageId,
			modality,
			contentType,
			bytesMax: this.#bytesMax(modality),
			encode: chunkEncoder(messageId),
			seqNo: 0,
			crc: 0,
			half: "",
		};
		this.#opened++;
		this.#open.set(messageId, stream);
		return stream;
	}

	/** The hot path: a piece of text that goes on. */
	#partial(stream: Stream, said: string, ts: number, sink: Sink): void {
		const delta = stream.half === "" && said.isWellFormed() ? said : mended(stream, said);
		if (delta === "") return;
		if (delta.length * UTF8_BYTES_PER_UNIT_MAX <= stream.bytesMax) {
			stream.crc = crc32(delta, stream.crc);
			sink(stream.encode(++stream.seqNo, delta, ts));
			return;
		}
		for (const piece of piecesOf(delta, stream.bytesMax)) {
			stream.crc = crc32(piece, stream.crc);
			sink(stream.encode(++stream.seqNo, piece, ts));
		}
	}

	#status(stream: Stream, status: ToolStatusEvent, ts: number, sink: Sink): void {
		this.#chunk(stream, encodeToolStatus(status), false, undefined, ts, sink);
	}

	#chunk(
		stream: Stream,
		payload: string,
		partial: boolean,
		align: Align | undefined,
		ts: number,
		sink: Sink,
		contentType = stream.contentType,
	): void {
		stream.crc = crc32(payload, stream.crc);
		sink(
			encodeFrame({
				type: "stream.chunk",
				message_id: stream.messageId,
				seq_no: ++stream.seqNo,
				payload,
				is_partial: partial,
				...(contentType !== stream.contentType && { content_type: contentType }),
				...(align && { align }),
				ts,
			}),
		);
	}

	/** With usage it is the run's final end. */
	#end(stream: Stream, ending: Ending, ts: number, sink: Sink, usage?: Usage): void {
		this.#endHalf(stream, ts, sink);
		this.#chunks += stream.seqNo;
		this.#forget(stream);
		sink(
			encodeFrame({
				type: "stream.end",
				message_id: stream.messageId,
				total_chunks: stream.seqNo,
				checksum: checksumOf(stream.crc),
				final: usage !== undefined,
				reason: ending.reason,
				...(usage && ending.error && { error: ending.error }),
				...(usage && { usage }),
				...(ending.synthetic && { synthetic: true }),
				ts,
			}),
		);
	}

	/** The other half never came. */
	#endHalf(stream: Stream, ts: number, sink: Sink): void {
		if (stream.half === "") return;
		stream.half = "";
		this.#partial(stream, "\uFFFD", ts, sink);
	}

	#forget(stream: Stream): void {
		this.#open.delete(stream.messageId);
		if (stream.tool) this.#tools.delete(stream.tool.toolCallId);
		if (this.#text === stream) this.#text = undefined;
		if (this.#reasoning === stream) this.#reasoning = undefined;
		if (this.#compaction === stream) this.#compaction = undefined;
	}
}

const DONE: Ending = { reason: "completed" };
/** A pair is never split between chunks, and half of one that stays alone is U+FFFD (P1.10): not every reader takes halves. */
function mended(stream: Stream, said: string): string {
	const text = stream.half + said;
	const last = text.charCodeAt(text.length - 1);
	stream.half = last >= 0xd800 && last <= 0xdbff ? text.slice(-1) : "";
	return text.slice(0, text.length - stream.half.length).toWellFormed();
}
