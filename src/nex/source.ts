/** A run's log as a platform hears it: StreamEvents with their positions in the answer's text, from any position on, then live. */

import { type Batch, type Bus, follow } from "../bus/bus.ts";
import { chunkDecoder, createToEvents, type Frame, type StreamEvent } from "../protocol/protocol.ts";
import type { Log } from "../std/log.ts";

/** A card, an image … : what is neither text nor a tool. A passage of reasoning is one when it has ended. */
export interface PartEvent {
	type: "part";
	modality: string;
	contentType: string;
	payload: string;
}

export interface SourceEvent {
	/** The run's end also says why. */
	event: StreamEvent | PartEvent;
	/** Why a text ended. */
	reason?: string;
	/** Offset in the log. */
	offset: number;
	/** Source position before the event: UTF-16 units of all text so far. */
	position: number;
}

export interface SourceOptions {
	/** Source position to begin at. */
	position: number;
	signal: AbortSignal;
	log: Log;
}

/**
 * The events of each batch. What lies before the position is left out, but for parts: they have none of their own. So is the end of a text
 * exactly there: it belongs to the message before.
 */
export async function* readSource(
	bus: Bus,
	runId: string,
	options: SourceOptions,
): AsyncGenerator<SourceEvent[], void, undefined> {
	const cursor = await bus.cursor({ log: runId }, 0);
	const read = createReader(options.position, (record) => frameOf(record, runId, options.log));
	let ended = false;
	let last: SourceEvent = { event: { type: "token", text: "" }, offset: 0, position: options.position };
	for await (const batch of follow(cursor, options.signal)) {
		const events = read(batch);
		last = events.at(-1) ?? last;
		ended ||= isEnd(last.event);
		if (events.length > 0) yield events;
	}
	if (ended || options.signal.aborted) return;
	// Only a damaged store has such a log (I3); whoever waits for the end still gets one.
	const position = last.position + (last.event.type === "token" ? last.event.text.length : 0);
	yield [
		{ event: { type: "stream_error", error: "the log has no end", partial: true }, offset: last.offset, position },
	];
}

/** The run is over. */
export const isEnd = (event: SourceEvent["event"]): boolean =>
	event.type === "stream_error" || (event.type === "stream_end" && event.final !== false);

/** The Bus holds what the Broker wrote; only a damaged store gives something else. */
function frameOf(record: string, runId: string, log: Log): Frame | undefined {
	try {
		return JSON.parse(record) as Frame;
	} catch (cause) {
		log.error({ runId, err: cause }, "a record of the run is damaged; its delivery goes on without it");
		return undefined;
	}
}

type Read = (batch: Batch) => SourceEvent[];

function createReader(start: number, frameIn: (record: string) => Frame | undefined): Read {
	const toEvents = createToEvents();
	const parts = createParts();
	let position = 0;
	/** Reads the tokens of the text that spoke last, which is what most records are, without parsing them. */
	let tokenAt: ReturnType<typeof chunkDecoder> = () => undefined;

	function eventOf(record: string, offset: number): SourceEvent | undefined {
		const frame = frameIn(record);
		const heard = frame && toEvents.push(frame);
		const part = frame && parts(frame);
		const event = heard ?? part;
		if (!frame || !event) return undefined;
		if (event.type === "token") {
			tokenAt = chunkDecoder(frame.message_id);
			return tokenOf(event.text, offset);
		}
		if (position < start && !isLast(event) && event.type !== "part") return undefined;
		if (position === start && start > 0 && event.type === "stream_end" && event.final === false) return undefined;
		return { event, offset, position, ...(frame.type === "stream.end" && { reason: frame.reason }) };
	}

	function tokenOf(text: string, offset: number): SourceEvent | undefined {
		const at = position;
		position += text.length;
		if (at >= start) return { event: { type: "token", text }, offset, position: at };
		if (position <= start) return undefined;
		return { event: { type: "token", text: text.slice(start - at) }, offset, position: start };
	}

	return ({ text, first }) => {
		const events: SourceEvent[] = [];
		for (let at = 0, offset = first; at <= text.length; offset++) {
			const feed = text.indexOf("\n", at);
			const end = feed < 0 ? text.length : feed;
			const token = tokenAt(text, at, end);
			const event = token === undefined ? eventOf(text.slice(at, end), offset) : tokenOf(token, offset);
			if (event) events.push(event);
			at = end + 1;
		}
		return events;
	};
}

/** Begin and end of the run are always told. */
const isLast = (event: SourceEvent["event"]): boolean => event.type === "stream_start" || isEnd(event);

const HEARD: ReadonlySet<string> = new Set(["text", "tool", "data"]);

/** Puts the pieces of a part together. */
function createParts(): (frame: Frame) => PartEvent | undefined {
	const streams = new Map<string, { modality: string; contentType: string; payload: string }>();
	return (frame) => {
		if (frame.type === "stream.begin") {
			const { modality, content_type: contentType } = frame;
			if (!HEARD.has(modality)) streams.set(frame.message_id, { modality, contentType, payload: "" });
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
