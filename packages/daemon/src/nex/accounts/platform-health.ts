/** How an account's platform is doing: the rate limit that pauses all of the account's processes, and whether the platform answers. */

import type { StreamStatus } from "@nexus-stream/adapter/port";
import type { Clock } from "@nexus-stream/protocol/clock";
import { sleep } from "@nexus-stream/protocol/retry";

export interface RatePause {
	/** Nothing new is sent for this long. */
	pause(ms: number): void;
	/** Resolves when the account may send, or the signal aborts. */
	open(signal: AbortSignal): Promise<void>;
	/** Milliseconds since the epoch; undefined while nothing is paused. */
	readonly pausedUntil: number | undefined;
}

const PAUSE_MS_MAX = 3_600_000;

export function createRatePause(clock: Clock): RatePause {
	let until = 0;
	return {
		pause(ms) {
			until = Math.max(until, clock.now() + Math.min(Math.max(0, ms), PAUSE_MS_MAX));
		},
		async open(signal) {
			while (!signal.aborted && clock.now() < until) await sleep(clock, until - clock.now(), signal);
		},
		get pausedUntil() {
			return clock.now() < until ? until : undefined;
		},
	};
}

type CallReport = Pick<Extract<StreamStatus, { type: "call" }>, "ok" | "call" | "detail">;

export interface CallHealth {
	note(call: CallReport): void;
	/** Why the platform did not answer the last call; undefined when it did, or the call is more than a minute old. */
	error(): string | undefined;
}

/** Older failures say nothing about the present. */
const FAILURE_KEPT_MS = 60_000;
/** All other refusals are answers: about a chat, a text, or the rate. */
const UNANSWERED = /^(?:unavailable|unknown_outcome): /;

export function createCallHealth(clock: Clock): CallHealth {
	let failed: { error: string; at: number } | undefined;
	return {
		note({ ok, detail = "" }) {
			if (ok || !UNANSWERED.test(detail)) failed = undefined;
			else failed = { error: detail.replace(UNANSWERED, ""), at: clock.now() };
		},
		error: () => (failed && clock.now() - failed.at < FAILURE_KEPT_MS ? failed.error : undefined),
	};
}
