/** When readers get what is new: at once while the event loop has room, else at their log's next flush, all readers of a log together (ADR 26). */

import { performance } from "node:perf_hooks";
import { continuesText } from "@nexus-stream/protocol";
import { type Clock, elapsing, systemClock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Grown } from "../../bus/bus.ts";

/** Serves a reader. */
export type Serve = () => void;

export interface FlusherParts {
	/** The longest that new records wait; 0 = they never do. */
	flushMsMax: number;
	log: Log;
	clock?: Clock;
	/** How much of the time since the last call the event loop was busy, 0 to 1. */
	utilisation?(): number;
}

const SAMPLE_MS = 100;
/** Logs whose flushes fall into one slot are flushed in one tick. */
const SLOT_MS = 4;
/** So many are worth a write of their own: merging more of them saves nothing, and keeps them from the log's tail in memory. */
const MERGED_RECORDS_MAX = 16;
/** Backlog that all readers together take in one turn of the event loop: about two milliseconds. */
const BACKLOG_CHARS_PER_TURN_MAX = 512 * 1024;
/** Successive multiples of it, modulo 1, lie apart however many there are. */
const GOLDEN_RATIO = 0.618_033_988_749_895;

/** One log, while the loop is busy. Holds readers, never records (I6). */
interface LogPace {
	readonly log: Grown;
	/** In the spacing, 0 to 1: logs that grow in the same commit are not flushed in the same tick. */
	readonly phase: number;
	/** The head at the last decision: all readers that a commit wakes share one decision. */
	decidedHead: number;
	flushedHead: number;
	flushedAt: number;
	/** The readers that wait, and their slot. Without a slot no reader waits. */
	readonly waiting: Set<Serve>;
	slot: number | undefined;
}

export class Flusher {
	readonly #msMax: number;
	readonly #slotMs: number;
	readonly #log: Log;
	readonly #clock: Clock;
	readonly #now: () => number;
	readonly #utilisation: () => number;
	#spacing: Spacing = AT_ONCE;
	/** Something grew since the last sample. Without that nothing is measured: an idle daemon does not wake up for it. */
	#isActive = false;
	#isMeasuring = false;
	#paces = new WeakMap<Grown, LogPace>();
	#phases = 0;
	/** By slot, in the order of waiting; few at a time, and none while the loop has room. */
	readonly #slots = new Map<number, Set<LogPace>>();
	#deferred = 0;
	/** Backlog that was taken in this turn of the loop. */
	#backlogChars = 0;
	/** Readers of a backlog that wait for a later turn, in turn. */
	#resting: Serve[] = [];
	#isTurning = false;

	constructor({ flushMsMax, log, clock = systemClock, utilisation = loopUtilisation() }: FlusherParts) {
		this.#msMax = flushMsMax;
		this.#slotMs = Math.min(SLOT_MS, flushMsMax);
		this.#log = log;
		this.#clock = clock;
		this.#now = elapsing(clock);
		this.#utilisation = utilisation;
		// Nothing to decide, nothing to measure.
		if (flushMsMax === 0) this.#isMeasuring = true;
	}

	get spacingMs(): number {
		return this.#spacing.ms;
	}

	/** Flushes that were put off. */
	get deferred(): number {
		return this.#deferred;
	}

	/** Whether the reader of a log that grew has to wait. If so, `serve` is called at the log's flush. */
	defers(log: Grown, serve: Serve): boolean {
		this.#isActive = true;
		if (!this.#isMeasuring) this.#measure();
		return this.#spacing.ms > 0 && this.#defersBusy(log, serve);
	}

	/** No more of a backlog is read in this turn of the loop: what else is due comes first. */
	get isTurnSpent(): boolean {
		return this.#backlogChars >= BACKLOG_CHARS_PER_TURN_MAX;
	}

	/** So much of a backlog was read. */
	spend(chars: number): void {
		this.#backlogChars += chars;
		this.#turnLater();
	}

	/** Serves a reader in the next turn of the loop that has room for it. */
	nextTurn(serve: Serve): void {
		this.#resting.push(serve);
		this.#turnLater();
	}

	#turnLater(): void {
		if (this.#isTurning) return;
		this.#isTurning = true;
		setImmediate(() => this.#turn());
	}

	#turn(): void {
		this.#isTurning = false;
		this.#backlogChars = 0;
		const resting = this.#resting;
		this.#resting = [];
		let served = 0;
		while (served < resting.length && !this.isTurnSpent) this.#serve(resting[served++]!);
		if (served === resting.length) return;
		this.#resting = [...resting.slice(served), ...this.#resting];
		this.#turnLater();
	}

	#defersBusy(log: Grown, serve: Serve): boolean {
		const pace = this.#paceOf(log);
		if (pace.decidedHead !== log.head || !isMergeable(log)) this.#decide(pace);
		if (pace.slot === undefined) return false;
		pace.waiting.add(serve);
		return true;
	}

	#paceOf(log: Grown): LogPace {
		let pace = this.#paces.get(log);
		if (pace) return pace;
		pace = {
			log,
			phase: (this.#phases++ * GOLDEN_RATIO) % 1,
			decidedHead: -1,
			flushedHead: log.head,
			flushedAt: -Infinity,
			waiting: new Set(),
			slot: undefined,
		};
		this.#paces.set(log, pace);
		return pace;
	}

	#decide(pace: LogPace): void {
		const { log } = pace;
		const now = this.#now();
		pace.decidedHead = log.head;
		const isDue = now - pace.flushedAt >= this.#spacing.ms || log.head - pace.flushedHead >= MERGED_RECORDS_MAX;
		if (isDue || !mayWait(log)) this.#flush(pace, now);
		else if (pace.slot === undefined) this.#putOff(pace, now);
	}

	#putOff(pace: LogPace, now: number): void {
		const { ms } = this.#spacing;
		// A slot begins before the flushes in it: one that has just been made is not due again.
		const due = flushAt(pace.phase, ms, Math.max(now, pace.flushedAt + this.#slotMs));
		const slotOf = (at: number) => Math.floor(at / this.#slotMs);
		pace.slot = Math.max(slotOf(Math.min(due, now + ms)), slotOf(now) + 1);
		this.#deferred++;
		if (this.#slots.size === 0) this.#tickSoon(now);
		const slot = this.#slots.get(pace.slot);
		if (slot) slot.add(pace);
		else this.#slots.set(pace.slot, new Set([pace]));
	}

	/** One timer for all logs, while anybody waits. */
	#tickSoon(now: number): void {
		this.#clock.after(this.#slotMs - (now % this.#slotMs), () => this.#tick());
	}

	#tick(): void {
		const now = this.#now();
		const current = Math.floor(now / this.#slotMs);
		for (const [slot, paces] of this.#slots) {
			if (slot > current) continue;
			for (const pace of paces) this.#flush(pace, now);
			this.#slots.delete(slot);
		}
		if (this.#slots.size > 0) this.#tickSoon(this.#now());
	}

	/** Serves who waits. Those whom the present commit wakes come by themselves. */
	#flush(pace: LogPace, now: number): void {
		pace.flushedAt = now;
		pace.flushedHead = pace.log.head;
		if (pace.slot === undefined) return;
		this.#slots.get(pace.slot)?.delete(pace);
		pace.slot = undefined;
		for (const serve of pace.waiting) this.#serve(serve);
		pace.waiting.clear();
	}

	#serve(serve: Serve): void {
		try {
			serve();
		} catch (cause) {
			this.#log.error({ err: cause }, "a reader failed when its log was flushed");
		}
	}

	#measure(): void {
		this.#isMeasuring = true;
		this.#utilisation();
		this.#sampleLater();
	}

	#sampleLater(): void {
		const due = this.#now() + SAMPLE_MS;
		this.#clock.after(SAMPLE_MS, () => {
			const sample = { utilisation: this.#utilisation(), lateMs: this.#now() - due };
			this.#spacing = nextSpacing(this.#spacing, sample, this.#msMax);
			this.#isMeasuring = this.#isActive || this.#spacing.ms > 0;
			this.#isActive = false;
			if (this.#isMeasuring) this.#sampleLater();
			else this.#spacing = AT_ONCE;
		});
	}
}

/** Ends, begins, tools, parts and a stream's first piece never wait; further pieces of a text may. */
const mayWait = (log: Grown): boolean => isMergeable(log) && log.newest!.records.every(continuesText);

/** Records that arrive before the flush are in memory then, read once for all readers. */
const isMergeable = ({ sealedAt, newest }: Grown): boolean => sealedAt === undefined && newest !== undefined;

function loopUtilisation(): () => number {
	let last = performance.eventLoopUtilization();
	return () => {
		const now = performance.eventLoopUtilization();
		const { utilization } = performance.eventLoopUtilization(now, last);
		last = now;
		return utilization;
	};
}

/** The event loop over one period, as it was measured: how far apart the flushes of one log are is a pure step over it (ADR 26). */
export interface LoopSample {
	/** Share of the time in which it did not wait, 0 to 1. */
	readonly utilisation: number;
	/** How late the timer came that took the sample. */
	readonly lateMs: number;
}

export interface Spacing {
	/** 0: every record leaves at once. */
	readonly ms: number;
	/** Smoothed: the noise of single periods would only ever raise the spacing. */
	readonly utilisation: number;
}

export const AT_ONCE: Spacing = { ms: 0, utilisation: 0 };

/** Between the two the spacing stays: spaced flushes lower the utilisation, which must not bring the spacing down at once. */
const BUSY = 0.95;
const ROOMY = 0.75;
/** Weight of the newest period. */
const NEWEST = 1 / 4;
const RAISES_TO_MAX = 6;
const LOWERINGS_TO_NONE = 30;

/**
 * The spacing of the next period. A loop that is busy for more than a moment and late by `msMax` gets all of it: what waits for the loop waits
 * longer than for a flush.
 */
export function nextSpacing(spacing: Spacing, { utilisation: newest, lateMs }: LoopSample, msMax: number): Spacing {
	const utilisation = spacing.utilisation + NEWEST * (newest - spacing.utilisation);
	if (newest >= BUSY && utilisation > ROOMY && lateMs >= msMax) return { ms: msMax, utilisation };
	if (utilisation >= BUSY) return { ms: Math.min(msMax, spacing.ms + msMax / RAISES_TO_MAX), utilisation };
	if (utilisation <= ROOMY) return { ms: Math.max(0, spacing.ms - msMax / LOWERINGS_TO_NONE), utilisation };
	return { ms: spacing.ms, utilisation };
}

/** The first moment from `now` on that is a flush of the log with this place (0 to 1) in the spacing. At most one spacing away. */
export function flushAt(place: number, spacingMs: number, now: number): number {
	const shift = place * spacingMs;
	return shift + Math.ceil((now - shift) / spacingMs) * spacingMs;
}
