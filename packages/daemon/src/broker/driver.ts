/** Drives an engine's run or a model call to its end, and settles it exactly once, whatever comes first: the end, a failure, a deadline or a stop. */

import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate } from "node:timers/promises";
import { NexusError } from "@nexus-stream/protocol";
import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { LogWriter } from "../bus/bus.ts";
import { COMPLETED, type Ending } from "./ending.ts";
import { type Alarm, type Pause, type WatchLimits, watch } from "./watchdog.ts";

/** A longer delta is taken in portions. */
const DELTA_CHARS_MAX = 64 * 1024;

/** Events that write nothing must not starve the event loop. */
const EVENTS_PER_TURN_OF_LOOP_MAX = 1024;

const current = new AsyncLocalStorage<string>();

/** The run that the calling code belongs to: an unhandled error does not say so by itself. Undefined outside of every run. */
export const currentRun = (): string | undefined => current.getStore();

type Source<E> = AsyncIterator<E | readonly E[]>;

/** The two ends of a driver: the source of events, and the run that takes them. */
export interface Driven<E> {
	readonly runId: string;
	/** As messages of the abort signal name it. */
	readonly noun: "run" | "call";
	readonly limits: WatchLimits;
	/** Starts the source. Undefined when the run was stopped meanwhile. */
	open(signal: AbortSignal): Promise<Source<E> | undefined> | Source<E>;
	/** Takes one event. Returns true if a deadline may now be earlier than the timer. */
	take(event: E, now: number): boolean;
	/** A commit under way that the next event has to wait for. */
	blockedBy?(): Promise<void> | undefined;
	/** Called after each yield; the source waits for the returned promise. */
	afterYield?(): Promise<void> | undefined;
	oldestToolAt?(): number | undefined;
	pauses?(): readonly Pause[];
	timeout(alarm: Exclude<Alarm, "grace">): Ending;
	/** Logs what the source threw, and returns how the run ends. `isOver`: the run was already stopped or settled. */
	failed(cause: unknown, isOver: boolean): Ending;
	/** Called exactly once. */
	settle(ending: Ending): void;
}

export class Driver<E> {
	/** Elapsed time: setting the system clock neither fires a deadline nor delays one, and no answer ends before it began. */
	readonly now: () => number;
	readonly startedAt: number;
	readonly #clock: Clock;
	readonly #driven: Driven<E>;
	readonly #abort = new AbortController();
	#writer: LogWriter | undefined;
	#iterator: Source<E> | undefined;
	#lastEventAt: number | undefined;
	/** The first stop decides how the run ends. */
	#stop: { ending: Ending; at: number } | undefined;
	#settled = false;
	#disarm: (() => void) | undefined;

	constructor(clock: Clock, driven: Driven<E>) {
		this.#clock = clock;
		this.#driven = driven;
		this.now = elapsing(clock);
		this.startedAt = this.now();
	}

	get isStopped(): boolean {
		return this.#stop !== undefined;
	}

	/** Stopped or settled: nothing but outcomes is taken any more. */
	get isOver(): boolean {
		return this.#settled || this.#stop !== undefined;
	}

	/** The log is durable: begins to take events. */
	start(writer: LogWriter): void {
		this.#writer = writer;
		void current.run(this.#driven.runId, () => this.#drive(writer));
	}

	/** The log could not be created: the run will never start, and nothing settles it. */
	cancel(): void {
		this.#settled = true;
	}

	/** Settles within the grace time even if the source ignores its signal (I12), or now if the stop is immediate. */
	stop(ending: Ending, when: "gracefully" | "immediately" = "gracefully"): void {
		if (this.isOver) return;
		this.#stop = { ending, at: this.now() };
		if (when === "immediately") {
			this.#settle(ending);
			return;
		}
		const code = ending.reason === "timeout" ? "timeout" : "aborted";
		this.#abort.abort(new NexusError(code, `the ${this.#driven.noun} was stopped`));
		this.look();
	}

	/** Time spent waiting for a person does not count as silence of the source. */
	resume(): void {
		this.#lastEventAt &&= this.now();
	}

	/** Checks all deadlines, and sets the one timer to the next. */
	look(): void {
		this.#disarm?.();
		this.#disarm = undefined;
		if (this.#settled || !this.#writer) return;
		const driven = this.#driven;
		const state = {
			startedAt: this.startedAt,
			lastEventAt: this.#lastEventAt,
			stoppedAt: this.#stop?.at,
			oldestToolAt: driven.oldestToolAt?.(),
			pauses: driven.pauses?.(),
		};
		const verdict = watch(state, driven.limits, this.now());
		if ("againMs" in verdict) {
			if (verdict.againMs !== Infinity) this.#disarm = this.#clock.after(verdict.againMs, () => this.look());
		} else if (verdict.alarm === "grace") this.#settle(this.#stop!.ending);
		else this.stop(driven.timeout(verdict.alarm));
	}

	async #drive(writer: LogWriter): Promise<void> {
		try {
			await this.#pump(writer);
			this.#iterator = undefined;
			this.#settle(COMPLETED);
		} catch (cause) {
			this.#settle(this.#driven.failed(cause, this.isOver));
		}
	}

	/** The hot path. One await per yield; the driver adds no promise, timer or check to that. */
	async #pump(writer: LogWriter): Promise<void> {
		if (this.#stop) return;
		this.look();
		const driven = this.#driven;
		const iterator = await driven.open(this.#abort.signal);
		if (iterator === undefined) return;
		this.#iterator = iterator;
		for (let quiet = 0; !this.#settled; ) {
			const step = await iterator.next();
			if (step.done || this.#settled) return;
			const { value } = step;
			quiet++;
			if (isBurst(value)) {
				quiet += value.length;
				const taken = this.#takeSome(value, 0, writer);
				if (taken < value.length) await this.#takeRest(value, taken, writer);
			} else if (isLong(value)) await this.#takeLong(value, writer);
			else this.#take(value);
			const blocked = driven.blockedBy?.();
			if (blocked) await blocked;
			const committed = driven.afterYield?.();
			if (committed) await committed;
			if (writer.crowded || quiet >= EVENTS_PER_TURN_OF_LOOP_MAX) {
				quiet = 0;
				await roomIn(writer);
			}
		}
	}

	#take(event: E): void {
		const now = this.now();
		const isFirst = this.#lastEventAt === undefined;
		this.#lastEventAt = now;
		if (this.#driven.take(event, now) || isFirst) this.look();
	}

	/** Takes as many events as fit into one commit and one turn of the loop, up to a long delta. Returns the position of the next one. */
	#takeSome(burst: readonly E[], from: number, writer: LogWriter): number {
		const end = Math.min(burst.length, from + EVENTS_PER_TURN_OF_LOOP_MAX);
		if (from === end || isLong(burst[from]!)) return from;
		const now = this.now();
		let mustLook = this.#lastEventAt === undefined;
		this.#lastEventAt = now;
		let at = from;
		do {
			if (this.#driven.take(burst[at++]!, now)) mustLook = true;
		} while (at < end && !this.#driven.blockedBy?.() && !writer.crowded && !isLong(burst[at]!));
		if (mustLook) this.look();
		return at;
	}

	/** Neither a stop nor other runs wait for the end of a long burst. */
	async #takeRest(burst: readonly E[], from: number, writer: LogWriter): Promise<void> {
		for (let at = from; at < burst.length; ) {
			const event = burst[at]!;
			if (isLong(event)) {
				await this.#takeLong(event, writer);
				at++;
			}
			await (this.#driven.blockedBy?.() ?? roomIn(writer));
			if (this.#settled) return;
			at = this.#takeSome(burst, at, writer);
		}
	}

	/** In portions, so that no commit and no reader holds all of it at once, and a stop does not wait for its end. */
	async #takeLong(event: E & { delta: string }, writer: LogWriter): Promise<void> {
		const { delta } = event;
		for (let at = 0; at < delta.length && !this.#settled; at += DELTA_CHARS_MAX) {
			this.#take({ ...event, delta: delta.slice(at, at + DELTA_CHARS_MAX) });
			if (writer.crowded) await writer.room();
		}
	}

	#settle(ending: Ending): void {
		if (this.#settled) return;
		this.#settled = true;
		this.#disarm?.();
		this.#release();
		this.#driven.settle(this.#stop?.ending ?? ending);
	}

	/** Asks a source that has not ended to end, and does not wait for it. */
	#release(): void {
		const iterator = this.#iterator;
		if (!iterator) return;
		this.#abort.abort(new NexusError("aborted", `the ${this.#driven.noun} is over`));
		const failed = (cause: unknown) => void this.#driven.failed(cause, true);
		try {
			iterator.return?.().catch(failed);
		} catch (cause) {
			failed(cause);
		}
	}
}

const isBurst = <E>(value: E | readonly E[]): value is readonly E[] => Array.isArray(value);

function isLong<E>(event: E): event is E & { delta: string } {
	const { type, delta } = (event ?? {}) as { type?: unknown; delta?: unknown };
	return (type === "text" || type === "reasoning") && typeof delta === "string" && delta.length > DELTA_CHARS_MAX;
}

const roomIn = (writer: LogWriter): Promise<unknown> => (writer.crowded ? writer.room() : setImmediate());
