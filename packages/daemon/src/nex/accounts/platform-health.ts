/** How an account's platform is doing: the rate limit that pauses all of the account's processes, and whether the platform answers. */

import type { StreamStatus } from "@nexus-stream/adapter/port";
import type { Clock } from "@nexus-stream/protocol/clock";
import { sleep } from "@nexus-stream/protocol/retry";

export type RatePause = ReturnType<typeof createRatePause>;

const PAUSE_MS_MAX = 3_600_000;

export function createRatePause(clock: Clock) {
	let until = 0;
	return {
		/** Nothing new is sent for this long. */
		pause(ms: number): void {
			until = Math.max(until, clock.now() + Math.min(Math.max(0, ms), PAUSE_MS_MAX));
		},
		/** Resolves when the account may send, or the signal aborts. */
		async open(signal: AbortSignal): Promise<void> {
			while (!signal.aborted && clock.now() < until) await sleep(clock, until - clock.now(), signal);
		},
		/** Milliseconds since the epoch; undefined while nothing is paused. */
		get pausedUntil(): number | undefined {
			return clock.now() < until ? until : undefined;
		},
	};
}

type CallReport = Pick<Extract<StreamStatus, { type: "call" }>, "ok" | "call" | "detail">;

export type CallHealth = ReturnType<typeof createCallHealth>;

/** Older failures say nothing about the present. */
const FAILURE_KEPT_MS = 60_000;
/** All other refusals are answers: about a chat, a text, or the rate. */
const UNANSWERED = /^(?:unavailable|unknown_outcome): /;

export function createCallHealth(clock: Clock) {
	let failed: { error: string; at: number } | undefined;
	return {
		note({ ok, detail = "" }: CallReport): void {
			if (ok || !UNANSWERED.test(detail)) failed = undefined;
			else failed = { error: detail.replace(UNANSWERED, ""), at: clock.now() };
		},
		/** Why the platform did not answer the last call; undefined when it did, or the call is more than a minute old. */
		error: () => (failed && clock.now() - failed.at < FAILURE_KEPT_MS ? failed.error : undefined),
	};
}
