/** One model call without a session: its events become the frames of a separate log, and it ends exactly once (I3, Z4). */

import {
	type EndError,
	type EndReason,
	type LogKind,
	NexusError,
	Refused,
	toNexusError,
	type Usage,
} from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import type { LogWriter } from "../bus/bus.ts";
import type { Write } from "../std/write.ts";
import { type Driven, Driver } from "./driver.ts";
import { ABORTED, type Ending, failureOf, SHUT_DOWN } from "./ending.ts";
import { Framer } from "./frames/framer.ts";
import type { BrokerLimits } from "./port.ts";
import type { RecoveryDeps } from "./recovery.ts";
import type { Alarm } from "./watchdog.ts";

export type CallEvent =
	| { type: "text"; delta: string }
	/** The payload of audio is base64. */
	| { type: "part"; modality: string; contentType: string; payload: string }
	/** Proves that the provider works; readers do not see it. */
	| { type: "alive" }
	/** Usage of the whole call as far as known; a later event replaces it. */
	| { type: "usage"; input: number; output: number };

export interface CallRequest {
	runId: string;
	kind: LogKind;
	/** Facts for readers of the log; JSON. */
	meta: Readonly<Record<string, unknown>>;
	/** The owner whose share of the store its log counts in. */
	countedFor?: string;
	model: string;
	run(signal: AbortSignal): AsyncIterable<CallEvent>;
	/** Limit from the start to the first event of any kind. Never reset. */
	firstEventMs: number;
	/** Limit of the whole call. Never reset. */
	totalMs: number;
	/** Limit of all payloads together; a longer answer is a failure. */
	charsMax: number;
	/** Called now and then while the answer grows. A rejection (the store is full) ends the call. */
	room?(): Promise<void>;
	/** Committed with the beginning of the log; if one of these is refused, the call is. */
	begin?: readonly Write[];
	/** How long the beginning may wait for a store that refuses it; without it, until the store gives up. */
	patienceMs?: number;
	/** Committed with the end. */
	settle?(end: ModelCallEnd): readonly Write[];
	/** The error that callers see for what the provider threw. */
	failure(cause: unknown): NexusError;
}

export interface ModelCallEnd {
	reason: EndReason;
	error?: EndError;
	usage: Usage;
}

export interface ModelCallDeps extends RecoveryDeps {
	limits: Pick<BrokerLimits, "abortGraceMs" | "chunkBytesMax" | "toolJsonCharsMax">;
	/** The store gave up before the end was durable. */
	settleLate(runId: string): void;
}

export const UNKNOWN_USAGE: Usage = { input: -1, output: -1 };

/** Growth before the call asks for room again. */
const CHARS_PER_ROOM = 256 * 1024;

export class ModelCall {
	readonly request: CallRequest;
	readonly #deps: ModelCallDeps;
	readonly #driver: Driver<CallEvent>;
	readonly #framer: Framer;
	readonly #ended = Promise.withResolvers<ModelCallEnd>();
	#usage: Usage = UNKNOWN_USAGE;
	#chars = 0;
	#roomChars = CHARS_PER_ROOM;
	#writer: LogWriter | undefined;

	constructor(deps: ModelCallDeps, request: CallRequest) {
		this.#deps = deps;
		this.request = request;
		this.#driver = new Driver(deps.clock, this.#driven());
		this.#framer = new Framer({ runId: request.runId, ...deps.limits });
		this.#ended.promise.catch(() => {});
	}

	/** Rejects only if the call was never established. */
	get result(): Promise<ModelCallEnd> {
		return this.#ended.promise;
	}

	/** Makes the first begin durable, then starts the call (I9). */
	async establish(): Promise<void> {
		const { runId, kind, meta, countedFor, model, begin = [], patienceMs } = this.request;
		const { startedAt } = this.#driver;
		const records = this.#framer.streams.collect(() => this.#framer.open(startedAt));
		this.#framer.take({ type: "usage", model, ...UNKNOWN_USAGE }, startedAt);
		let writer: LogWriter;
		try {
			const spec = { log: runId, kind, meta: { ...meta, startedAt }, countedFor };
			writer = await this.#deps.bus.create(spec, records, { with: begin, patienceMs });
		} catch (cause) {
			this.#driver.cancel();
			this.#ended.reject(cause);
			throw cause;
		}
		this.#writer = writer;
		this.#framer.streams.attach((record) => writer.append(record));
		this.#driver.start(writer);
	}

	/** Ends within the grace time, even if the provider ignores its signal (I12). */
	abort(): void {
		this.#driver.stop(ABORTED);
	}

	shutDown(): void {
		this.#driver.stop(SHUT_DOWN);
	}

	#driven(): Driven<CallEvent> {
		const { request } = this;
		const { log, limits } = this.#deps;
		return {
			runId: request.runId,
			noun: "call",
			limits: {
				firstTokenMs: request.firstEventMs,
				totalMs: request.totalMs,
				interTokenMs: Infinity,
				toolMs: Infinity,
				abortGraceMs: limits.abortGraceMs,
			},
			open: (signal) => request.run(signal)[Symbol.asyncIterator](),
			take: (event, now) => this.#take(event, now),
			timeout: (alarm) => timeout(alarm, request),
			failed(cause, isOver) {
				const error = request.failure(cause);
				const facts = { runId: request.runId, err: error };
				if (isOver) log.debug(facts, "a model call failed after it was over or stopped");
				else log.warn(facts, "a model call failed");
				return explained(error);
			},
			settle: (ending) => void this.#seal(ending),
		};
	}

	#take(event: CallEvent, now: number): boolean {
		switch (event.type) {
			case "alive":
				return false;
			case "usage":
				this.#usage = merged(event, this.#usage);
				return false;
			case "text":
			case "part":
				if (this.#driver.isStopped) return false;
				this.#count(event.type === "text" ? event.delta : event.payload);
				this.#framer.take(event, now);
				return false;
			default:
				throw new TypeError(`not an event: ${JSON.stringify(event satisfies never)}`);
		}
	}

	/** Asks for room now and then; the call continues meanwhile. */
	#count(payload: string): void {
		const { charsMax } = this.request;
		this.#chars += payload.length;
		if (this.#chars > charsMax)
			throw new NexusError("too_large", `the answer is longer than ${charsMax} characters`, { reason: "TOO_LARGE" });
		if (this.#chars <= this.#roomChars) return;
		this.#roomChars = this.#chars + CHARS_PER_ROOM;
		this.request.room?.().catch((cause: unknown) => this.#driver.stop(explained(toNexusError(cause))));
	}

	async #seal({ reason, error }: Ending): Promise<void> {
		const end: ModelCallEnd = { reason, usage: this.#usage, error };
		const { runId, settle = () => [] } = this.request;
		try {
			const now = this.#driver.now();
			const records = this.#framer.streams.collect(() => this.#framer.end({ reason, error }, this.#usage, now));
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

/** A log ends even if the writes that accompany its end are refused. */
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
		log.error(
			{ runId: writer.log, err: cause },
			"writes that accompany the end of a model call were refused; sealing without them",
		);
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

const merged = ({ input, output }: { input: number; output: number }, before: Usage): Usage => ({
	input: isCount(input) ? input : before.input,
	output: isCount(output) ? output : before.output,
});

const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;
