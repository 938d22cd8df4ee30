/** The pause of a whole account: what one of its processes learns about the platform's rate limit holds for all of them. */

import type { Clock } from "@nexus-stream/protocol/clock";
import { sleep } from "../sleep.ts";

export interface AccountGate {
	/** Nothing new is dispatched for this long. */
	pause(ms: number): void;
	/** Resolves when the account may write. */
	open(signal: AbortSignal): Promise<void>;
	/** Milliseconds since the epoch; undefined while open. */
	readonly pausedUntil: number | undefined;
}

const PAUSE_MS_MAX = 3_600_000;

export function createGate(clock: Clock): AccountGate {
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
