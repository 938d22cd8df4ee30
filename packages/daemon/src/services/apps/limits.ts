/** How fast applications may write to one another, as pure steps: a rate for each sender, and a breaker for two that answer each other without end. */

export interface MessageLimits {
	payloadBytesMax: number;
	/** Messages of one sender within any second. */
	perSecondMax: number;
	/** Bytes of one sender's payloads within a day: they are kept for seven. */
	bytesPerDayMax: number;
	/** Between two applications, both ways together, within any second. More opens the breaker. */
	loopPerSecondMax: number;
	/** How long the breaker lets nothing pass between the two. */
	loopOpenMs: number;
}

export const MESSAGE_LIMITS: MessageLimits = {
	payloadBytesMax: 64 * 1024,
	perSecondMax: 100,
	bytesPerDayMax: 256 * 1024 ** 2,
	loopPerSecondMax: 20,
	loopOpenMs: 60_000,
};

const WINDOW_MS = 1000;

/** When a sender's messages of the last second were sent. */
export type SendTimes = readonly number[];

export interface RateStep {
	state: SendTimes;
	allowed: boolean;
}

/** A refused message does not count. */
export function stepRate(state: SendTimes, now: number, perSecondMax: number): RateStep {
	const recent = state.filter((at) => at > now - WINDOW_MS);
	return recent.length < perSecondMax ? { state: [...recent, now], allowed: true } : { state: recent, allowed: false };
}

const DAY_MS = 24 * 60 * 60_000;

/** Bytes that a sender has sent since its day began. */
export interface Volume {
	readonly since: number;
	readonly bytes: number;
}

export interface VolumeStep {
	state: Volume;
	allowed: boolean;
}

/** A refused message does not count. */
export function stepVolume(state: Volume | undefined, now: number, bytes: number, bytesPerDayMax: number): VolumeStep {
	const today = state && now - state.since < DAY_MS ? state : { since: now, bytes: 0 };
	const next = { since: today.since, bytes: today.bytes + bytes };
	return next.bytes <= bytesPerDayMax ? { state: next, allowed: true } : { state: today, allowed: false };
}

export const isOverDay = ({ since }: Volume, now: number): boolean => now - since >= DAY_MS;

/** Two applications: their messages of the last second, and until when the breaker is open. */
export interface Pair {
	readonly sent: readonly { readonly from: string; readonly at: number }[];
	readonly openUntil?: number;
}

export const QUIET: Pair = { sent: [] };

export interface PairStep {
	state: Pair;
	allowed: boolean;
}

/** Messages in one direction alone are not a loop, however many: the sender's rate limits them. */
export function stepPair(state: Pair, from: string, now: number, limits: MessageLimits): PairStep {
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

export const isIdle = (state: SendTimes, now: number): boolean => state.every((at) => at <= now - WINDOW_MS);
