/** One stream of the daemon across lost connections and restarts: calls, takes what is new, waits, calls again. */

import { Code, ConnectError } from "@connectrpc/connect";
import type { CloseMode } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { sleep } from "@nexus-stream/protocol/retry";
import type { ReasonCode } from "../gen/nexus/runtime/v1/common_pb.ts";
import { NO_OUTAGE, type Outage, stepOutage } from "../outage.ts";
import { endOf, type RuntimeRetryLimits, reasonCodeOf, verdictOf } from "./failures.ts";
import type { ResumeFields, StreamPosition } from "./resume-position.ts";

/** S-RUNTIME-028: a stream lost its connection, or has one again. One of each for every outage of every stream. */
export type RuntimeEvent =
	| {
			type: "runtime.disconnected";
			/** `service/method` of its package. */
			procedure: string;
			closes: CloseMode | "unary";
			/** The status of the cut. */
			code: Code;
			reasonCode: ReasonCode;
			message: string;
	  }
	| { type: "runtime.reconnected"; procedure: string; closes: CloseMode | "unary"; attempts: number };

/** Shared by all calls of a client. */
export interface CallContext {
	clock: Clock;
	random(): number;
	limits: RuntimeRetryLimits;
	emit(event: RuntimeEvent): void;
	/** Aborts when the client is closed. */
	closed: AbortSignal;
}

export interface CallTarget {
	procedure: string;
	closes: CloseMode | "unary";
}

/** Events of a call other than its messages. */
export interface CallAttempt {
	signal: AbortSignal;
	onHeader(header: Headers): void;
}

/** A status follows its headers at once: a stream whose headers are alone for this long is open, and has nothing to say yet. */
const OPEN_MS = 300;
/** After the last message the server closes at once; a connection that does not is dropped. */
const CLOSE_MS = 1000;
/** Where a log's stream begins that was asked for "from now on". */
const BEGINS_HEADER = "x-nexus-after";

/** The outages of one stream or call: decides on retries and emits their events. */
export function createTries({ clock, random, limits, emit }: CallContext, { procedure, closes }: CallTarget) {
	let outage: Outage = NO_OUTAGE;
	let upAt: number | undefined;
	let isDown = false;
	const patience = closes === "B" || closes === "D" ? { ...limits, giveUpMs: limits.subscriptionGiveUpMs } : limits;
	return {
		/** The daemon answered. */
		up() {
			upAt ??= clock.now();
			if (!isDown) return;
			isDown = false;
			emit({ type: "runtime.reconnected", procedure, closes, attempts: outage.attempt });
		},
		/** Something new came: the line is good. */
		progress() {
			outage = NO_OUTAGE;
		},
		/** Waits for the next try; throws what was lost when there is none. */
		async again(error: ConnectError, signal: AbortSignal): Promise<void> {
			const now = clock.now();
			if (upAt !== undefined && now - upAt >= limits.steadyMs) outage = NO_OUTAGE;
			upAt = undefined;
			const step = stepOutage(outage, verdictOf(error), now, random, patience);
			if (typeof step === "string") throw error;
			outage = step.outage;
			if (!isDown) {
				isDown = true;
				const { code, rawMessage: message } = error;
				emit({ type: "runtime.disconnected", procedure, closes, code, reasonCode: reasonCodeOf(error), message });
			}
			await sleep(clock, step.delayMs, signal, "due");
		},
	};
}

/**
 * Every new message, once and in order. Ends after the `last` one, or in mode D with a clean close; throws what the daemon refused with,
 * and the signal's reason.
 */
export async function* read<Message>(
	line: CallContext,
	target: CallTarget,
	position: StreamPosition<Message>,
	call: (fields: ResumeFields, attempt: CallAttempt) => AsyncIterable<Message>,
	given: AbortSignal | undefined,
): AsyncGenerator<Message, void, undefined> {
	const left = new AbortController();
	const signal = AbortSignal.any([left.signal, line.closed, ...(given ? [given] : [])]);
	const tries = createTries(line, target);
	try {
		for (;;) {
			const error = yield* attempt(line, tries, position, call, signal);
			if (signal.aborted) {
				if (line.closed.aborted && target.closes === "D") return;
				throw signal.reason;
			}
			if (!error) return;
			if (!position.lost(error)) await tries.again(error, signal);
		}
	} finally {
		left.abort();
	}
}

/** One connection; returns why it was lost, or nothing when the stream is at its end. */
async function* attempt<Message>(
	{ clock }: CallContext,
	tries: ReturnType<typeof createTries>,
	position: StreamPosition<Message>,
	call: (fields: ResumeFields, attempt: CallAttempt) => AsyncIterable<Message>,
	outer: AbortSignal,
): AsyncGenerator<Message, ConnectError | undefined, undefined> {
	const ended = new AbortController();
	const signal = AbortSignal.any([ended.signal, outer]);
	let forget = () => {};
	const onHeader = (header: Headers) => {
		forget = clock.after(OPEN_MS, () => tries.up(), "due");
		const at = header.get(BEGINS_HEADER);
		if (at !== null && /^\d+$/.test(at)) position.begins?.(BigInt(at));
	};
	try {
		if (outer.aborted) return undefined;
		const messages = call(position.ask(), { signal, onHeader })[Symbol.asyncIterator]();
		for (;;) {
			const next = await nextOf(messages);
			if (next instanceof ConnectError) return next;
			if (next.done) return position.endsWithOk ? undefined : closedEarly();
			tries.up();
			const taken = position.take(next.value);
			if (taken === "known") continue;
			tries.progress();
			yield next.value;
			if (taken === "last") return await drain(messages, clock, ended);
		}
	} finally {
		forget();
		ended.abort();
	}
}

const nextOf = <Message>(messages: AsyncIterator<Message>): Promise<IteratorResult<Message> | ConnectError> =>
	messages.next().catch(endOf);

/** A clean close without a terminal event counts as an outage: the outcome is unknown (P5.2). */
const closedEarly = () => new ConnectError("the stream was closed without its end", Code.Internal);

/** Lets the server close, so that its connection can be used again. The outcome is known: how it closes changes nothing. */
async function drain(messages: AsyncIterator<unknown>, clock: Clock, ended: AbortController): Promise<undefined> {
	const cancel = clock.after(CLOSE_MS, () => ended.abort(), "due");
	for (let next = await nextOf(messages); !(next instanceof ConnectError) && !next.done; next = await nextOf(messages));
	cancel();
}
