/** A run's log as a platform hears it: StreamEvents with their positions in the answer's text, from any position on, then live. */

import type { RunFacts } from "@nexus-stream/adapter/host";
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
import { createMessageOrder } from "./stream/message-order.ts";

/** A card, an image … : what is neither text nor a tool. A passage of reasoning is one when it has ended. */
export interface SourcePartEvent {
	type: "part";
	modality: string;
	contentType: string;
	payload: string;
}

export interface SourceEvent {
	/** The run's end also says why. */
	event: StreamEvent | SourcePartEvent;
	/** Why a text ended. */
	reason?: string;
	/** What a text's end tells of its run: of several agents, the message's own. The usage is the run's, at its end. */
	facts?: RunFacts;
	/** Offset in the log. */
	offset: number;
	/** Source position before the event: UTF-16 units of all text so far. */
	position: number;
	/** Of the end of a damaged answer: the text from this position on failed its check, and is not what was produced. */
	damagedFrom?: number;
}

export interface SourceOptions {
	/** Source position to begin at. */
	position: number;
	signal: AbortSignal;
	log: Log;
	/** Records are lost or changed: what was handed out before is whole, and the end that follows is not the run's own. */
	onDamage?: (reason: string) => void;
}

/**
 * The events of each batch, message by message in the order of their begins. What lies before the position is left out, but for parts: they
 * have none of their own. So is the end of a text exactly there: it belongs to the message before.
 */
export async function* readSource(
	bus: Bus,
	runId: string,
	options: SourceOptions,
): AsyncGenerator<SourceEvent[], void, undefined> {
	const reader = createReader(options.position);
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
	// Whoever waits for the end still gets one: a log without it is damaged as well (I3).
	const { reason, from: damagedFrom } = damage ?? { reason: "the log has no end" };
	options.log.error({ runId, offset: last.offset, reason }, "the stored answer is damaged; its delivery ends here");
	options.onDamage?.(reason);
	const said = last.position + (last.event.type === "token" ? last.event.text.length : 0);
	const position = Math.max(said, options.position);
	const error = `The stored answer is damaged: ${reason}`;
	const end = { event: { type: "stream_error" as const, error, partial: true }, offset: last.offset, position };
	// What has an end has a start: a reader knows of no answer otherwise.
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

interface Reader {
	/** The events of a batch, up to the first damaged record, or up to where what follows has to be read again: after that offset. */
	read(batch: Batch): { events: SourceEvent[]; rewind?: number };
	readonly damage: DamageFound | undefined;
}

interface DamageFound {
	reason: string;
	/** Where the text begins that failed its check. */
	from?: number;
}

class Damage extends Error {
	/** The stream whose end does not fit its chunks. */
	readonly stream: string | undefined;

	constructor(reason: string, stream?: string) {
		super(reason);
		this.stream = stream;
	}
}

/** Every frame is verified on its way: a hole in an answer must not look like an answer (I2). */
function createReader(start: number): Reader {
	const verifier = createVerifier();
	const order = createMessageOrder();
	const toEvents = createToEvents();
	const parts = createParts();
	const ends = createEnds();
	let damage: DamageFound | undefined;
	let position = 0;
	/** Where the text of each stream begins. */
	const begins = new Map<string, number>();
	/** Reads the tokens of the text that spoke last, which is what most records are, without parsing them. */
	let tokenAt: ReturnType<typeof chunkDecoder> = () => undefined;
	let spoken = { message_id: "", seq_no: 0 };

	function verify(frame: Frame): void {
		const violation = verifier.push(frame);
		if (isDamage(violation)) {
			const unfit = violation.kind === "wrong_checksum" || violation.kind === "wrong_count";
			throw new Damage(`${violation.message} (${violation.rule})`, unfit ? frame.message_id : undefined);
		}
		// Recovery could not read all of it: its end fits what is left.
		if (frame.type === "stream.end" && frame.error?.code === "data_loss") throw new Damage(frame.error.message);
	}

	function eventOf(record: string, offset: number): SourceEvent | undefined {
		const frame = frameOf(record, offset);
		if (!order.wasRead(offset)) verify(frame);
		if (!order.takes(frame, offset)) return undefined;
		const heard = toEvents.push(frame);
		const part = parts(frame);
		const end = ends(frame);
		const event = heard ?? part;
		if (!event || end?.isEmpty) return undefined;
		if (event.type === "token" && frame.type === "stream.chunk") {
			tokenAt = chunkDecoder(frame.message_id);
			spoken = { message_id: frame.message_id, seq_no: frame.seq_no };
			if (!begins.has(frame.message_id)) begins.set(frame.message_id, position);
			return tokenOf(event.text, offset);
		}
		if (position < start && !isLast(event) && event.type !== "part") return undefined;
		if (position === start && start > 0 && event.type === "stream_end" && event.final === false) return undefined;
		return { event, offset, position, reason: end?.reason, facts: end?.facts };
	}

	/** The next token of the text that spoke last, verified; undefined when it is something else. */
	function nextToken(text: string, at: number, end: number, offset: number): string | undefined {
		const payload = tokenAt(text, at, end, spoken.seq_no + 1);
		if (payload === undefined) return undefined;
		spoken.seq_no++;
		const frame = { type: "stream.chunk" as const, ...spoken, payload, is_partial: true, ts: 0 };
		if (!order.wasRead(offset)) verify(frame);
		return order.takes(frame, offset) ? payload : undefined;
	}

	function tokenOf(text: string, offset: number): SourceEvent | undefined {
		const at = position;
		position += text.length;
		if (at >= start) return { event: { type: "token", text }, offset, position: at };
		if (position <= start) return undefined;
		return { event: { type: "token", text: text.slice(start - at) }, offset, position: start };
	}

	/** Returns where to read on, when that is not behind the batch. */
	function readAll({ text, first }: Batch, events: SourceEvent[]): number | undefined {
		for (let at = 0, offset = first; at <= text.length; offset++) {
			const feed = text.indexOf("\n", at);
			const end = feed < 0 ? text.length : feed;
			const token = nextToken(text, at, end, offset);
			const event = token === undefined ? eventOf(text.slice(at, end), offset) : tokenOf(token, offset);
			if (event) events.push(event);
			const begin = token === undefined ? order.rewind() : undefined;
			if (begin !== undefined) return begin - 1;
			at = end + 1;
		}
		return undefined;
	}

	return {
		read(batch) {
			const events: SourceEvent[] = [];
			try {
				const rewind = readAll(batch, events);
				return { events, rewind };
			} catch (cause) {
				if (!(cause instanceof Damage)) throw cause;
				const from = cause.stream === undefined ? undefined : begins.get(cause.stream);
				damage = { reason: cause.message, from };
				return { events };
			}
		},
		get damage() {
			return damage;
		},
	};
}

function frameOf(record: string, offset: number): Frame {
	try {
		return decodeFrame(record);
	} catch (cause) {
		throw new Damage(`record ${offset} is no frame: ${wordsOf(cause)}`);
	}
}

/** Begin and end of the run are always told. */
const isLast = (event: SourceEvent["event"]): boolean => event.type === "stream_start" || isEnd(event);

/** What the end of a text says. One that said nothing ends no message: the next goes on in its place. */
function createEnds(): (frame: Frame) => { reason: string; facts: RunFacts; isEmpty: boolean } | undefined {
	const agents = new Map<string, string | undefined>();
	return (frame) => {
		if (frame.type === "stream.begin" && frame.modality === "text") agents.set(frame.message_id, frame.agent);
		if (frame.type !== "stream.end") return undefined;
		const agent = agents.get(frame.message_id);
		agents.delete(frame.message_id);
		const { model, phase, reason, final } = frame;
		const counts = Object.entries(frame.usage ?? {}).filter(([, count]) => count >= 0);
		const facts: RunFacts = {
			...(agent !== undefined && { agent }),
			...(model !== undefined && { model }),
			...(phase !== undefined && { phase }),
			...(counts.length > 0 && { usage: Object.fromEntries(counts) }),
		};
		return { reason, facts, isEmpty: !final && frame.total_chunks === 0 };
	};
}

const HEARD: ReadonlySet<string> = new Set(["text", "tool", "data"]);

/** Puts the pieces of a part together. */
function createParts(): (frame: Frame) => SourcePartEvent | undefined {
	const streams = new Map<string, { modality: string; contentType: string; payload: string }>();
	return (frame) => {
		if (frame.type === "stream.begin") {
			const { modality, content_type: contentType } = frame;
			if (!HEARD.has(modality) && isShown(frame)) streams.set(frame.message_id, { modality, contentType, payload: "" });
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
