/** Counts how much each sender has sent lately: the shell around the steps in `limits.ts`. In memory, and only for senders of the last day. */

import { NexusError } from "@nexus-stream/protocol";
import {
	isIdle,
	isOverDay,
	isQuiet,
	type MessageLimits,
	type Pair,
	QUIET,
	type SendTimes,
	stepPair,
	stepRate,
	stepVolume,
	type Volume,
} from "./limits.ts";

/** Beyond it those that matter no more are forgotten. */
const REMEMBERED_MAX = 1000;

export interface MessageRateLimiter {
	/** Counts a message, or throws `busy` (APP_MESSAGE_LOOP_DETECTED, APP_MESSAGE_RATE_LIMITED, QUOTA_EXCEEDED). */
	take(from: string, to: string, bytes: number): void;
}

/** `now` is a monotonic time: it is never set back. */
export function createPace(limits: MessageLimits, now: () => number): MessageRateLimiter {
	const senders = new Map<string, SendTimes>();
	const volumes = new Map<string, Volume>();
	const pairs = new Map<string, Pair>();
	return {
		take(from, to, bytes) {
			const at = now();
			const key = JSON.stringify([from, to].toSorted());
			const rate = stepRate(senders.get(from) ?? [], at, limits.perSecondMax);
			if (!rate.allowed) throw rateLimited(from, limits);
			const volume = stepVolume(volumes.get(from), at, bytes, limits.bytesPerDayMax);
			if (!volume.allowed) throw overQuota(from, limits);
			const pair = stepPair(pairs.get(key) ?? QUIET, from, at, limits);
			pairs.set(key, pair.state);
			// A message that the breaker refused was not sent, so it does not count.
			if (!pair.allowed) throw loopDetected(from, to, (pair.state.openUntil ?? at) - at);
			senders.set(from, rate.state);
			volumes.set(from, volume.state);
			if (senders.size > REMEMBERED_MAX) drop(senders, (state) => isIdle(state, at));
			if (volumes.size > REMEMBERED_MAX) drop(volumes, (state) => isOverDay(state, at));
			if (pairs.size > REMEMBERED_MAX) drop(pairs, (state) => isQuiet(state, at));
		},
	};
}

function drop<State>(states: Map<string, State>, isOver: (state: State) => boolean): void {
	for (const [key, state] of states) if (isOver(state)) states.delete(key);
}

const rateLimited = (from: string, { perSecondMax }: MessageLimits) =>
	new NexusError("busy", `${from} may send ${perSecondMax} messages a second; wait a second`, {
		reason: "APP_MESSAGE_RATE_LIMITED",
	});

const overQuota = (from: string, { bytesPerDayMax }: MessageLimits) =>
	new NexusError("busy", `${from} may send ${bytesPerDayMax} bytes a day: keep files in artifacts`, {
		reason: "QUOTA_EXCEEDED",
	});

const loopDetected = (from: string, to: string, leftMs: number) =>
	new NexusError(
		"busy",
		`${from} and ${to} answer each other without end; nothing passes between them for ${Math.ceil(leftMs / 1000)} s`,
		{ reason: "APP_MESSAGE_LOOP_DETECTED" },
	);
