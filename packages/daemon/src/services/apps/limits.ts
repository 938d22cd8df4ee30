/** How fast applications may write to one another: a rate and a daily volume for each sender, and a breaker for two that answer each other without end. */

import { NexusError, type Reason } from "@nexus-stream/protocol";

export const MESSAGE_LIMITS = {
	payloadBytesMax: 64 * 1024,
	/** Messages of one sender within any second. */
	perSecondMax: 100,
	/** Bytes of one sender's payloads within a day: they are kept for seven. */
	bytesPerDayMax: 256 * 1024 ** 2,
	/** Between two applications, both ways together, within any second. More opens the breaker. */
	loopPerSecondMax: 20,
	/** How long the breaker lets nothing pass between the two. */
	loopOpenMs: 60_000,
};

export type MessageLimits = typeof MESSAGE_LIMITS;

const WINDOW_MS = 1000;

interface LimitStep<State> {
	state: State;
	/** A refused message does not count. */
	allowed: boolean;
}

/** When a sender's messages of the last second were sent. */
export type SendTimes = readonly number[];

export function stepRate(state: SendTimes, now: number, perSecondMax: number): LimitStep<SendTimes> {
	const recent = state.filter((at) => at > now - WINDOW_MS);
	return recent.length < perSecondMax ? { state: [...recent, now], allowed: true } : { state: recent, allowed: false };
}

const DAY_MS = 24 * 60 * 60_000;

/** Bytes that a sender has sent since its day began. */
interface Volume {
	readonly since: number;
	readonly bytes: number;
}

function stepVolume(state: Volume | undefined, now: number, bytes: number, bytesPerDayMax: number): LimitStep<Volume> {
	const today = state && now - state.since < DAY_MS ? state : { since: now, bytes: 0 };
	const next = { since: today.since, bytes: today.bytes + bytes };
	return next.bytes <= bytesPerDayMax ? { state: next, allowed: true } : { state: today, allowed: false };
}

/** Two applications: their messages of the last second, and until when the breaker is open. */
export interface Pair {
	readonly sent: readonly { readonly from: string; readonly at: number }[];
	readonly openUntil?: number;
}

export const QUIET: Pair = { sent: [] };

/** Messages in one direction alone are not a loop, however many: the sender's rate limits them. */
export function stepPair(state: Pair, from: string, now: number, limits: MessageLimits): LimitStep<Pair> {
	if (state.openUntil !== undefined && now < state.openUntil) return { state, allowed: false };
	const sent = [...state.sent.filter(({ at }) => at > now - WINDOW_MS), { from, at: now }];
	const bothWays = sent.some((one) => one.from !== from);
	if (bothWays && sent.length > limits.loopPerSecondMax)
		return { state: { sent: [], openUntil: now + limits.loopOpenMs }, allowed: false };
	return { state: { sent }, allowed: true };
}

/** Nothing of it matters any more. */
export const isQuiet = ({ sent, openUntil = 0 }: Pair, now: number): boolean =>
	now >= openUntil && sent.every(({ at }) => at <= now - WINDOW_MS);

/** Beyond it those that matter no more are forgotten. */
const REMEMBERED_MAX = 1000;

/** Counts how much each sender has sent lately. In memory, and only for senders of the last day. */
export class MessagePace {
	readonly #limits: MessageLimits;
	readonly #now: () => number;
	readonly #senders = new Map<string, SendTimes>();
	readonly #volumes = new Map<string, Volume>();
	readonly #pairs = new Map<string, Pair>();

	/** `now` is a monotonic time: it is never set back. */
	constructor(limits: MessageLimits, now: () => number) {
		this.#limits = limits;
		this.#now = now;
	}

	/** Counts a message, or throws `busy` (APP_MESSAGE_LOOP_DETECTED, APP_MESSAGE_RATE_LIMITED, QUOTA_EXCEEDED). */
	take(from: string, to: string, bytes: number): void {
		const at = this.#now();
		const key = JSON.stringify([from, to].toSorted());
		const { perSecondMax, bytesPerDayMax } = this.#limits;
		const rate = stepRate(this.#senders.get(from) ?? [], at, perSecondMax);
		if (!rate.allowed)
			throw busy(`${from} may send ${perSecondMax} messages a second; wait a second`, "APP_MESSAGE_RATE_LIMITED");
		const volume = stepVolume(this.#volumes.get(from), at, bytes, bytesPerDayMax);
		if (!volume.allowed)
			throw busy(`${from} may send ${bytesPerDayMax} bytes a day: keep files in artifacts`, "QUOTA_EXCEEDED");
		const pair = stepPair(this.#pairs.get(key) ?? QUIET, from, at, this.#limits);
		this.#pairs.set(key, pair.state);
		// A message that the breaker refused was not sent, so it does not count.
		if (!pair.allowed) throw loopDetected(from, to, (pair.state.openUntil ?? at) - at);
		this.#senders.set(from, rate.state);
		this.#volumes.set(from, volume.state);
		dropOver(this.#senders, (times) => times.every((time) => time <= at - WINDOW_MS));
		dropOver(this.#volumes, ({ since }) => at - since >= DAY_MS);
		dropOver(this.#pairs, (state) => isQuiet(state, at));
	}
}

function dropOver<State>(states: Map<string, State>, isOver: (state: State) => boolean): void {
	if (states.size <= REMEMBERED_MAX) return;
	for (const [key, state] of states) if (isOver(state)) states.delete(key);
}

const loopDetected = (from: string, to: string, leftMs: number) =>
	busy(
		`${from} and ${to} answer each other without end; nothing passes between them for ${Math.ceil(leftMs / 1000)} s`,
		"APP_MESSAGE_LOOP_DETECTED",
	);

const busy = (message: string, reason: Reason) => new NexusError("busy", message, { reason });
