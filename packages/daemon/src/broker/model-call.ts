/** One model call without a session: its events become the frames of a log of its own, and it ends exactly once, whoever ends it (I3, Z4). */

import {
	type EndError,
	type EndReason,
	type LogKind,
	NexusError,
	Refused,
	toNexusError,
	type Usage,
} from "@nexus-stream/protocol";
import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus, LogWriter } from "../bus/bus.ts";
import type { Write } from "../std/write.ts";
import { DELTA_CHARS_MAX, pause } from "./frames/burst.ts";
import { Framer } from "./frames/framer.ts";
import type { BrokerLimits } from "./limits.ts";
import { asRun } from "./run/current-run.ts";
import { closeIterator } from "./run/engine-run.ts";
import { ABORTED, COMPLETED, type Ending, failureOf, SHUT_DOWN } from "./settle/ending.ts";
import { type Alarm, watch } from "./watchdog.ts";

export type CallEvent =
	| { type: "text"; delta: string }
	/** Of audio, as base64. */
	| { type: "part"; modality: string; contentType: string; payload: string }
	/** A sign of life that nobody is shown. */
	| { type: "alive" }
	/** Of the whole call, as far as it is known; what comes later takes its place. */
	| { type: "usage"; input: number; output: number };

export interface CallRequest {
	runId: string;
	kind: LogKind;
	/** Facts for whoever reads the log; JSON. */
	meta: Readonly<Record<string, unknown>>;
	/** In whose share of the store its log counts. */
	countedFor?: string;
	model: string;
	run(signal: AbortSignal): AsyncIterable<CallEvent>;
	/** From the start to the first event of any kind. Never reset. */
	firstEventMs: number;
	/** Of the whole call. Never reset. */
	totalMs: number;
	/** Of all payloads; what is longer is a failure. */
	charsMax: number;
	/** Asked now and then while it grows: rejects when the store has no room for more of it, which ends it. */
	room?(): Promise<void>;
	/** What commits with the log's beginning; when one of these is refused, the call is. */
	begin?: readonly Write[];
	/** How long the beginning may wait for a store that refuses it; left out: until the store gives up. */
	patienceMs?: number;
	/** What commits with its end. */
	settle?(end: ModelCallEnd): readonly Write[];
	/** What is said about what it threw. */
	failure(cause: unknown): NexusError;
}

export interface ModelCallEnd {
	reason: EndReason;
	error?: EndError;
	usage: Usage;
}

export interface ModelCallDeps {
	bus: Bus;
	limits: Pick<BrokerLimits, "abortGraceMs" | "chunkBytesMax" | "toolJsonCharsMax">;
	clock: Clock;
	log: Log;
	/** The store gave up before the end was on record. */
	settleLate(runId: string): void;
}

export const UNKNOWN_USAGE: Usage = { input: -1, output: -1 };

/** How much it grows before it asks for room again. */
const CHARS_PER_ROOM = 256 * 1024;

/** Events that write nothing must not starve the loop. */
const EVENTS_PER_TURN_OF_LOOP_MAX = 1024;

export class ModelCall {
	readonly request: CallRequest;
	readonly #deps: ModelCallDeps;
	/** Setting the clock neither ends a call nor keeps it alive. */
	readonly #now: () => number;
	readonly #startedAt: number;
	readonly #framer: Framer;
	readonly #abort = new AbortController();
	readonly #ended = Promise.withResolvers<ModelCallEnd>();
	#usage: Usage = UNKNOWN_USAGE;
	#chars = 0;
	#roomChars = CHARS_PER_ROOM;
	#writer: LogWriter | undefined;
	#iterator: AsyncIterator<CallEvent> | undefined;
	#lastEventAt: number | undefined;
	/** Why it was told to stop: from then on that is how it ends. */
	#stop: { ending: Ending; at: number } | undefined;
	/** Decided how it ends; nothing is taken any more. */
	#settled = false;
	#disarm: (() => void) | undefined;

	constructor(deps: ModelCallDeps, request: CallRequest) {
		this.#deps = deps;
		this.request = request;
		this.#now = elapsing(deps.clock);
		this.#startedAt = this.#now();
		this.#framer = new Framer({ runId: request.runId, ...deps.limits });
		this.#ended.promise.catch(() => {});
	}

	/** Rejects only when it was never established. */
	get ended(): Promise<ModelCallEnd> {
		return this.#ended.promise;
	}

	/** Makes the first begin durable, then lets the call go (I9). */
	async establish(): Promise<void> {
		const { runId, kind, meta, countedFor, model, begin = [], patienceMs } = this.request;
		const records: string[] = [];
		this.#framer.open(this.#startedAt, (record) => records.push(record));
		this.#framer.take({ type: "usage", model, ...UNKNOWN_USAGE }, this.#startedAt, () => {});
		try {
			const counted = countedFor === undefined ? {} : { countedFor };
			const spec = { log: runId, kind, meta: { ...meta, startedAt: this.#startedAt }, ...counted };
			this.#writer = await this.#deps.bus.create(spec, records, { with: begin, patienceMs });
		} catch (cause) {
			this.#settled = true;
			this.#ended.reject(cause);
			throw cause;
		}
		void asRun(runId, () => this.#drive(this.#writer!));
	}

	/** Ends within the grace time, even if the provider ignores its signal (I12). */
	abort(): void {
		this.#stopWith(ABORTED);
	}

	shutDown(): void {
		this.#stopWith(SHUT_DOWN);
	}

	async #drive(writer: LogWriter): Promise<void> {
		try {
			await this.#pump(writer);
			this.#iterator = undefined;
			this.#settle(COMPLETED);
		} catch (cause) {
			const error = this.request.failure(cause);
			const facts = { runId: this.request.runId, err: error };
			if (this.#settled || this.#stop) this.#deps.log.debug(facts, "a model call failed after it was over or stopped");
			else this.#deps.log.warn(facts, "a model call failed");
			this.#settle(explained(error));
		}
	}

	/** The way of every token. One await per event; no promise, timer or check of ours beyond that. */
	async #pump(writer: LogWriter): Promise<void> {
		if (this.#stop) return;
		this.#look();
		const append = (record: string) => writer.append(record);
		const iterator = this.request.run(this.#abort.signal)[Symbol.asyncIterator]();
		this.#iterator = iterator;
		for (let quiet = 0; !this.#settled; ) {
			const step = await iterator.next();
			if (step.done || this.#settled) return;
			const event = step.value;
			if (event.type === "text" && event.delta.length > DELTA_CHARS_MAX)
				await this.#takeLong(event.delta, writer, append);
			else this.#take(event, append);
			if (writer.crowded || ++quiet >= EVENTS_PER_TURN_OF_LOOP_MAX) {
				quiet = 0;
				await pause(writer);
			}
		}
	}

	#take(event: CallEvent, append: (record: string) => void): void {
		const now = this.#now();
		this.#lastEventAt = now;
		switch (event.type) {
			case "alive":
				return;
			case "usage":
				this.#usage = known(event, this.#usage);
				return;
			case "text":
			case "part":
				if (this.#stop) return;
				this.#count(event.type === "text" ? event.delta : event.payload);
				this.#framer.take(event, now, append);
				return;
			default:
				throw new TypeError(`not an event: ${JSON.stringify(event satisfies never)}`);
		}
	}

	#count(payload: string): void {
		const { charsMax } = this.request;
		this.#chars += payload.length;
		if (this.#chars > charsMax)
			throw new NexusError("too_large", `the answer is longer than ${charsMax} characters`, { reason: "TOO_LARGE" });
		if (this.#chars > this.#roomChars) this.#askForRoom();
	}

	/** The call goes on meanwhile. */
	#askForRoom(): void {
		this.#roomChars = this.#chars + CHARS_PER_ROOM;
		this.request.room?.().catch((cause: unknown) => this.#stopWith(explained(toNexusError(cause))));
	}

	/** In portions: neither a commit nor a stop has to wait for all of it. */
	async #takeLong(delta: string, writer: LogWriter, append: (record: string) => void): Promise<void> {
		for (let at = 0; at < delta.length && !this.#settled; at += DELTA_CHARS_MAX) {
			this.#take({ type: "text", delta: delta.slice(at, at + DELTA_CHARS_MAX) }, append);
			if (writer.crowded) await writer.room();
		}
	}

	/** One timer: after the first event it merely finds that only the total time is left. */
	#look(): void {
		this.#disarm?.();
		this.#disarm = undefined;
		if (this.#settled) return;
		const { clock, limits } = this.#deps;
		const { abortGraceMs } = limits;
		const { firstEventMs: firstTokenMs, totalMs } = this.request;
		const times = { startedAt: this.#startedAt, lastEventAt: this.#lastEventAt, oldestToolAt: undefined };
		const allowed = { firstTokenMs, totalMs, interTokenMs: Infinity, toolMs: Infinity, abortGraceMs };
		const verdict = watch({ ...times, stoppedAt: this.#stop?.at }, allowed, this.#now());
		if ("againMs" in verdict) this.#disarm = clock.after(verdict.againMs, () => this.#look());
		else if (verdict.alarm === "grace") this.#settle(this.#stop!.ending);
		else this.#stopWith(timeout(verdict.alarm, this.request));
	}

	#stopWith(ending: Ending): void {
		if (this.#settled || this.#stop) return;
		this.#stop = { ending, at: this.#now() };
		this.#abort.abort(new NexusError(ending.reason === "timeout" ? "timeout" : "aborted", "the call was stopped"));
		if (this.#writer) this.#look();
	}

	#settle(ending: Ending): void {
		if (this.#settled) return;
		this.#settled = true;
		this.#disarm?.();
		this.#release();
		void this.#seal(this.#stop?.ending ?? ending);
	}

	/** A provider that has not ended by itself is told to, and not waited for. */
	#release(): void {
		if (!this.#iterator) return;
		const { runId, failure } = this.request;
		this.#abort.abort(new NexusError("aborted", "the call is over"));
		const failed = (cause: unknown) =>
			this.#deps.log.debug({ runId, err: failure(cause) }, "a provider failed after its call was over");
		closeIterator(this.#iterator, failed);
	}

	async #seal({ reason, error }: Ending): Promise<void> {
		const end: ModelCallEnd = { reason, usage: this.#usage, error };
		const { runId, settle = () => [] } = this.request;
		try {
			const records: string[] = [];
			this.#framer.end({ reason, error }, this.#usage, this.#now(), (record) => records.push(record));
			await sealWith(this.#deps.log, this.#writer!, records, settle(end));
			this.#ended.resolve(end);
		} catch (cause) {
			const { code, message } = toNexusError(cause);
			this.#deps.log.error({ runId, err: cause }, "the end of a model call could not be written");
			this.#deps.settleLate(runId);
			this.#ended.resolve({ ...end, reason: "error", error: { code, message } });
		}
	}
}

/** A failure with its reason code. */
function explained(error: NexusError): Ending {
	const ending = failureOf(error);
	return error.reason ? { ...ending, error: { ...ending.error!, reason: error.reason } } : ending;
}

/** A log ends even if what should commit beside its end is refused. */
export async function sealWith(
	log: Log,
	writer: LogWriter,
	records: readonly string[],
	writes: readonly Write[],
): Promise<void> {
	try {
		await writer.seal(records, writes);
	} catch (cause) {
		if (!(cause instanceof Refused) || cause.refusal === "fenced" || writes.length === 0) throw cause;
		log.error({ runId: writer.log, err: cause }, "what belongs beside the end of a model call was refused");
		await writer.seal(records);
	}
}

function timeout(alarm: Exclude<Alarm, "grace">, { firstEventMs, totalMs }: CallRequest): Ending {
	const message =
		alarm === "first_token"
			? `The provider sent nothing within ${firstEventMs} ms.`
			: `The call took longer than ${totalMs} ms.`;
	return { reason: "timeout", error: { code: "timeout", message, reason: "AI_PROVIDER_TIMEOUT" } };
}

const known = (said: { input: number; output: number }, before: Usage): Usage => ({
	input: isCount(said.input) ? said.input : before.input,
	output: isCount(said.output) ? said.output : before.output,
});

const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;
