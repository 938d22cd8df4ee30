/** The framed streams of one run: begins, chunks and ends with their counts and checksums. No I/O: the records go to the attached log. */

import {
	type Align,
	checksumOf,
	chunkBytesOf,
	chunkEncoder,
	crc32,
	decodeToolStatus,
	type EndFrame,
	encodeFrame,
	encodeToolStatus,
	type Frame,
	type Modality,
	messageIdOf,
	NexusError,
	type ToolStatusEvent,
	traceIdOf,
} from "@nexus-stream/protocol";
import type { Ending } from "../ending.ts";
import { piecesOf, UTF8_BYTES_PER_UNIT_MAX } from "./text.ts";

/** Takes the records of a run in order. */
export type Append = (record: string) => void;

/** The agent that a stream belongs to, and whether chats show it. */
export interface Speaker {
	readonly agent?: string | undefined;
	readonly visible: boolean;
}

export interface FramedStream extends Speaker {
	readonly messageId: string;
	readonly modality: Modality;
	readonly contentType: string;
	/** Limit of one chunk. */
	readonly bytesMax: number;
	readonly encode: ReturnType<typeof chunkEncoder>;
	seqNo: number;
	crc: number;
	/** The first half of a surrogate pair at the end of the last delta; the next delta brings the second. */
	half: string;
	/** The call that a tool stream is about. */
	tool?: { toolName: string; toolCallId: string };
}

/** The public part of a message's text stream. */
export type TextStream = Pick<FramedStream, "messageId" | "agent" | "visible">;

export interface StreamsOptions {
	runId: string;
	/** Model calls have none. */
	session?: string | undefined;
	/** The run that it continues. */
	continues?: string | undefined;
	target?: unknown;
	/** The trace that the run is a part of; derived from the run's id when left out. */
	traceId?: string | undefined;
	/** Upper limit for every modality (P1.18). */
	chunkBytesMax: number;
}

/** Additional fields of an end; with usage it is the run's final end. */
export type EndFacts = Pick<EndFrame, "usage" | "usage_by" | "model" | "phase">;

export const DONE: Ending = { reason: "completed" };

export class RunStreams {
	readonly #options: StreamsOptions;
	#traceId: string;
	readonly #open = new Map<string, FramedStream>();
	#opened = 0;
	#chunks = 0;
	#finished = false;
	#newestText: FramedStream | undefined;
	#append: Append = () => {
		throw new NexusError("internal", "a record was written before the run has a log");
	};

	constructor(options: StreamsOptions) {
		this.#options = options;
		this.#traceId = options.traceId ?? traceIdOf(options.runId);
	}

	/** From now on records go to this log. */
	attach(append: Append): void {
		this.#append = append;
	}

	/** Runs `write` and returns its records instead of appending them: the caller commits them together with something else. */
	collect(write: () => void): string[] {
		const append = this.#append;
		const records: string[] = [];
		this.#append = (record) => records.push(record);
		try {
			write();
		} finally {
			this.#append = append;
		}
		return records;
	}

	/** In order of opening. */
	get open(): FramedStream[] {
		return [...this.#open.values()];
	}

	/** Counts the streams that have ended. */
	get chunks(): number {
		return this.#chunks;
	}

	/** The final end has been written. */
	get finished(): boolean {
		return this.#finished;
	}

	/** The message that was begun last. */
	get newestText(): FramedStream | undefined {
		return this.#newestText;
	}

	isOpen(stream: FramedStream): boolean {
		return this.#open.has(stream.messageId);
	}

	begin(
		{ agent, visible }: Speaker,
		modality: Modality,
		contentType: string,
		ts: number,
		expectedChunks?: number,
	): FramedStream {
		const { runId, session, continues, target } = this.#options;
		const stream = this.#add(messageIdOf(runId, this.#opened + 1), modality, contentType, { agent, visible });
		this.#append(
			encodeFrame({
				type: "stream.begin",
				message_id: stream.messageId,
				run_id: runId,
				trace_id: this.#traceId,
				correlation_group: runId,
				modality,
				content_type: contentType,
				expected_chunks: expectedChunks,
				session,
				continues,
				target,
				agent,
				visible: visible ? undefined : visible,
				ts,
			}),
		);
		return stream;
	}

	/** Adopts the state of a record that a dead process wrote, without writing it again. */
	replay(frame: Frame): void {
		if (frame.type === "stream.begin") {
			const { agent, visible = true } = frame;
			this.#add(frame.message_id, frame.modality, frame.content_type, { agent, visible });
			this.#traceId = frame.trace_id;
			return;
		}
		const stream = this.#open.get(frame.message_id);
		if (stream === undefined) return;
		if (frame.type === "stream.end") {
			this.#open.delete(stream.messageId);
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

	bytesMax(modality: Modality): number {
		return Math.min(chunkBytesOf(modality), this.#options.chunkBytesMax);
	}

	/** The hot path: a delta of a text that continues. */
	partial(stream: FramedStream, said: string, ts: number): void {
		const delta = stream.half === "" && said.isWellFormed() ? said : mended(stream, said);
		if (delta === "") return;
		if (delta.length * UTF8_BYTES_PER_UNIT_MAX <= stream.bytesMax) {
			stream.crc = crc32(delta, stream.crc);
			this.#append(stream.encode(++stream.seqNo, delta, ts));
			return;
		}
		for (const piece of piecesOf(delta, stream.bytesMax)) {
			stream.crc = crc32(piece, stream.crc);
			this.#append(stream.encode(++stream.seqNo, piece, ts));
		}
	}

	status(stream: FramedStream, status: ToolStatusEvent, ts: number): void {
		this.chunk(stream, encodeToolStatus(status), false, undefined, ts);
	}

	chunk(
		stream: FramedStream,
		payload: string,
		partial: boolean,
		align: Align | undefined,
		ts: number,
		contentType = stream.contentType,
	): void {
		stream.crc = crc32(payload, stream.crc);
		this.#append(
			encodeFrame({
				type: "stream.chunk",
				message_id: stream.messageId,
				seq_no: ++stream.seqNo,
				payload,
				is_partial: partial,
				content_type: contentType !== stream.contentType ? contentType : undefined,
				align,
				ts,
			}),
		);
	}

	end(stream: FramedStream, ending: Ending, ts: number, facts: EndFacts = {}): void {
		this.#endHalf(stream, ts);
		this.#chunks += stream.seqNo;
		this.#open.delete(stream.messageId);
		const final = facts.usage !== undefined;
		this.#finished ||= final;
		this.#append(
			encodeFrame({
				type: "stream.end",
				message_id: stream.messageId,
				total_chunks: stream.seqNo,
				checksum: checksumOf(stream.crc),
				final,
				reason: ending.reason,
				error: final ? ending.error : undefined,
				...facts,
				synthetic: ending.synthetic || undefined,
				ts,
			}),
		);
	}

	/** The other half never came. */
	#endHalf(stream: FramedStream, ts: number): void {
		if (stream.half === "") return;
		stream.half = "";
		this.partial(stream, "\uFFFD", ts);
	}

	#add(messageId: string, modality: Modality, contentType: string, { agent, visible }: Speaker): FramedStream {
		const stream: FramedStream = {
			messageId,
			modality,
			contentType,
			agent,
			visible,
			bytesMax: this.bytesMax(modality),
			encode: chunkEncoder(messageId),
			seqNo: 0,
			crc: 0,
			half: "",
		};
		this.#opened++;
		this.#open.set(messageId, stream);
		if (modality === "text") this.#newestText = stream;
		return stream;
	}
}

/** A surrogate pair is never split between chunks, and a lone half becomes U+FFFD (P1.10): not every reader accepts halves. */
function mended(stream: FramedStream, said: string): string {
	const text = stream.half + said;
	const last = text.charCodeAt(text.length - 1);
	stream.half = last >= 0xd800 && last <= 0xdbff ? text.slice(-1) : "";
	return text.slice(0, text.length - stream.half.length).toWellFormed();
}
