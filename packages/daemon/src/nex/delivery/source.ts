/** Reads a run's log for a platform: StreamEvents with their positions in the answer's text, from any position on, then live. */

import type { RunFacts } from "@nexus-stream/adapter/port";
import {
	chunkDecoder,
	createToEvents,
	createVerifier,
	decodeFrame,
	type Frame,
	isDamage,
	isShown,
	NexusError,
	type StreamEvent,
	wordsOf,
} from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import { type Batch, type Bus, follow } from "../../bus/bus.ts";
import { defined } from "../../std/defined.ts";
import { createMessageOrder } from "./stream/message-order.ts";

/** A card, an image, or other content that is neither text nor a tool. Reasoning becomes a part when its passage has ended. */
export interface SourcePartEvent {
	type: "part";
	modality: string;
	contentType: string;
	payload: string;
}

export interface SourceEvent {
	event: StreamEvent | SourcePartEvent;
	/** Why a text ended. */
	reason?: string;
	/** Agent and model of an ended text; with several agents, those of the message. The end of the run has the run's usage. */
	facts?: RunFacts;
	/** Offset in the log. */
	offset: number;
	/** Source position before the event: UTF-16 units of all earlier text. */
	position: number;
	/** At the end of a damaged answer: the text from this position on failed its check. */
	damagedFrom?: number;
}

export interface SourceOptions {
	/** Source position to start at. */
	position: number;
	signal: AbortSignal;
	log: Log;
	/** Records are missing or changed: earlier events are intact, and the end that follows is synthetic. */
	onDamage?: (reason: string) => void;
}

/**
 * The events of each batch, message by message in the order of their begins. Events before the position are skipped, except parts, which have
 * no position. The end of a text exactly at the position belongs to the earlier message and is skipped as well.
 */
export async function* readSource(
	bus: Bus,
	runId: string,
	options: SourceOptions,
): AsyncGenerator<SourceEvent[], void, undefined> {
	const reader = new SourceReader(options.position);
	let ended = false;
	let begun = false;
	let last: SourceEvent = { event: { type: "token", text: "" }, offset: 0, position: options.position };
	let damage: DamageFound | undefined;
	let after: number | undefined = 0;
	try {
		while (after !== undefined) {
			const cursor = await bus.cursor({ log: runId }, after);
			after = undefined;
			for await (const batch of follow(cursor, options.signal)) {
				const { events, rewind } = reader.read(batch);
				last = events.at(-1) ?? last;
				begun ||= events[0]?.event.type === "stream_start";
				ended ||= isEnd(last.event);
				if (events.length > 0) yield events;
				damage = reader.damage;
				after = rewind;
				if (damage !== undefined || rewind !== undefined) break;
			}
			if (damage !== undefined || options.signal.aborted) break;
		}
	} catch (cause) {
		if (!(cause instanceof NexusError) || cause.code !== "data_loss") throw cause;
		damage = { reason: cause.message };
	}
	if (options.signal.aborted || (ended && damage === undefined)) return;
	// Every reader gets an end: a log without one is damaged as well (I3).
	const { reason, from: damagedFrom } = damage ?? { reason: "the log has no end" };
	options.log.error({ runId, offset: last.offset, reason }, "the stored answer is damaged; its delivery ends here");
	options.onDamage?.(reason);
	const lastPosition = last.position + (last.event.type === "token" ? last.event.text.length : 0);
	const position = Math.max(lastPosition, options.position);
	const error = `The stored answer is damaged: ${reason}`;
	const end = { event: { type: "stream_error" as const, error, partial: true }, offset: last.offset, position };
	// An end needs a start: without one the reader does not know the answer.
	const start = begun ? [] : [await startOf(bus, runId)];
	yield [...start, { ...end, damagedFrom }];
}

/** The start that is missing in the log. */
async function startOf(bus: Bus, runId: string): Promise<SourceEvent> {
	const meta = (await bus.describe(runId))?.meta as { session?: string } | undefined;
	const event = { type: "stream_start" as const, runId, sessionLabel: meta?.session ?? "", target: null };
	return { event, offset: 0, position: 0 };
}

/** The run is over. */
export const isEnd = (event: SourceEvent["event"]): boolean =>
	event.type === "stream_error" || (event.type === "stream_end" && event.final !== false);

interface DamageFound {
	reason: string;
	/** Where the text begins that failed its check. */
	from?: number;
}

class Damage extends Error {
	/** The stream whose end does not match its chunks. */
	readonly stream: string | undefined;

	constructor(reason: string, stream?: string) {
		super(reason);
		this.stream = stream;
	}
}

/** Turns batches of records into events. Verifies every frame: an answer with a gap must not look complete (I2). */
class SourceReader {
	readonly #start: number;
	readonly #verifier = createVerifier();
	readonly #order = createMessageOrder();
	readonly #toEvents = createToEvents();
	readonly #parts = createParts();
	readonly #ends = createEnds();
	#damage: DamageFound | undefined;
	#position = 0;
	/** Where the text of each stream begins. */
	readonly #begins = new Map<string, number>();
	/** Decodes the next tokens of the current text, which most records are, without parsing JSON. */
	#tokenAt: ReturnType<typeof chunkDecoder> = () => undefined;
	#current = { message_id: "", seq_no: 0 };

	constructor(start: number) {
		this.#start = start;
	}

	get damage(): DamageFound | undefined {
		return this.#damage;
	}

	/** The events of a batch up to the first damaged record, or up to `rewind`: the offset after which to read again. */
	read(batch: Batch): { events: SourceEvent[]; rewind?: number } {
		const events: SourceEvent[] = [];
		try {
			const rewind = this.#readAll(batch, events);
			return { events, rewind };
		} catch (cause) {
			if (!(cause instanceof Damage)) throw cause;
			const from = cause.stream === undefined ? undefined : this.#begins.get(cause.stream);
			this.#damage = { reason: cause.message, from };
			return { events };
		}
	}

	#readAll({ text, first }: Batch, events: SourceEvent[]): number | undefined {
		for (let at = 0, offset = first; at <= text.length; offset++) {
			const feed = text.indexOf("\n", at);
			const end = feed < 0 ? text.length : feed;
			const token = this.#nextToken(text, at, end, offset);
			const event = token === undefined ? this.#eventOf(text.slice(at, end), offset) : this.#tokenOf(token, offset);
			if (event) events.push(event);
			const begin = token === undefined ? this.#order.rewind() : undefined;
			if (begin !== undefined) return begin - 1;
			at = end + 1;
		}
		return undefined;
	}

	/** The next token of the current text, verified; undefined when the record is something else. */
	#nextToken(text: string, at: number, end: number, offset: number): string | undefined {
		const payload = this.#tokenAt(text, at, end, this.#current.seq_no + 1);
		if (payload === undefined) return undefined;
		this.#current.seq_no++;
		const frame = { type: "stream.chunk" as const, ...this.#current, payload, is_partial: true, ts: 0 };
		if (!this.#order.wasRead(offset)) this.#verify(frame);
		return this.#order.takes(frame, offset) ? payload : undefined;
	}

	#eventOf(record: string, offset: number): SourceEvent | undefined {
		const frame = frameOf(record, offset);
		if (!this.#order.wasRead(offset)) this.#verify(frame);
		if (!this.#order.takes(frame, offset)) return undefined;
		const streamEvent = this.#toEvents.push(frame);
		const part = this.#parts(frame);
		const end = this.#ends(frame);
		const event = streamEvent ?? part;
		if (!event || end?.isEmpty) return undefined;
		if (event.type === "token" && frame.type === "stream.chunk") {
			this.#tokenAt = chunkDecoder(frame.message_id);
			this.#current = { message_id: frame.message_id, seq_no: frame.seq_no };
			if (!this.#begins.has(frame.message_id)) this.#begins.set(frame.message_id, this.#position);
			return this.#tokenOf(event.text, offset);
		}
		const start = this.#start;
		const position = this.#position;
		if (position < start && !isRunBoundary(event) && event.type !== "part") return undefined;
		if (position === start && start > 0 && event.type === "stream_end" && event.final === false) return undefined;
		return { event, offset, position, reason: end?.reason, facts: end?.facts };
	}

	#tokenOf(text: string, offset: number): SourceEvent | undefined {
		const start = this.#start;
		const at = this.#position;
		this.#position += text.length;
		if (at >= start) return { event: { type: "token", text }, offset, position: at };
		if (this.#position <= start) return undefined;
		return { event: { type: "token", text: text.slice(start - at) }, offset, position: start };
	}

	#verify(frame: Frame): void {
		const violation = this.#verifier.push(frame);
		if (isDamage(violation)) {
			const isMismatch = violation.kind === "wrong_checksum" || violation.kind === "wrong_count";
			throw new Damage(`${violation.message} (${violation.rule})`, isMismatch ? frame.message_id : undefined);
		}
		// Recovery could not read the whole log and sealed it with an end that matches the readable part.
		if (frame.type === "stream.end" && frame.error?.code === "data_loss") throw new Damage(frame.error.message);
	}
}

function frameOf(record: string, offset: number): Frame {
	try {
		return decodeFrame(record);
	} catch (cause) {
		throw new Damage(`record ${offset} is not a frame: ${wordsOf(cause)}`);
	}
}

/** Begin and end of the run are never skipped. */
const isRunBoundary = (event: SourceEvent["event"]): boolean => event.type === "stream_start" || isEnd(event);

/** Reads the end of a text. The end of an empty text does not end a message: the next text continues it. */
function createEnds(): (frame: Frame) => { reason: string; facts: RunFacts; isEmpty: boolean } | undefined {
	const agents = new Map<string, string | undefined>();
	return (frame) => {
		if (frame.type === "stream.begin" && frame.modality === "text") agents.set(frame.message_id, frame.agent);
		if (frame.type !== "stream.end") return undefined;
		const agent = agents.get(frame.message_id);
		agents.delete(frame.message_id);
		const { model, phase, reason, final } = frame;
		const counts = Object.entries(frame.usage ?? {}).filter(([, count]) => count >= 0);
		const usage = counts.length > 0 ? Object.fromEntries(counts) : undefined;
		const facts: RunFacts = defined({ agent, model, phase, usage });
		return { reason, facts, isEmpty: !final && frame.total_chunks === 0 };
	};
}

/** Modalities that are not parts. */
const STREAMED: ReadonlySet<string> = new Set(["text", "tool", "data"]);

/** Joins the chunks of a part. */
function createParts(): (frame: Frame) => SourcePartEvent | undefined {
	const streams = new Map<string, { modality: string; contentType: string; payload: string }>();
	return (frame) => {
		if (frame.type === "stream.begin") {
			const { modality, content_type: contentType } = frame;
			if (!STREAMED.has(modality) && isShown(frame))
				streams.set(frame.message_id, { modality, contentType, payload: "" });
			return undefined;
		}
		const stream = streams.get(frame.message_id);
		if (!stream) return undefined;
		if (frame.type === "stream.end") {
			streams.delete(frame.message_id);
			return stream.modality === "reasoning" ? { type: "part", ...stream } : undefined;
		}
		stream.payload += frame.payload;
		if (frame.is_partial || stream.modality === "reasoning") return undefined;
		const part = { ...stream, contentType: frame.content_type ?? stream.contentType };
		stream.payload = "";
		return { type: "part", ...part };
	};
}
