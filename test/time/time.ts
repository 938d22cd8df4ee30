/**
 * Fast time for tests that keep a platform's pace: one epoch and one factor for the test, its fakes and every process it starts, so that a
 * restarted adapter reads the same time as the one before it. Only waiting is fast: limits on what others take (a call, an ack) keep their real length.
 */

import { type Clock, systemClock } from "../../packages/protocol/src/clock.ts";

/** Names the epoch and the factor to child processes. Adapters inherit NODE_ variables. */
const VARIABLE = "NODE_NEXUS_TIME";

export interface TestTime {
	/** How much faster than real time. */
	readonly factor: number;
	readonly clock: Clock;
	/** For child processes. */
	readonly env: Readonly<Record<string, string>>;
}

export const REAL_TIME: TestTime = { factor: 1, clock: systemClock, env: {} };

export function fastTime(factor: number, epochMs = Date.now()): TestTime {
	const clock: Clock = {
		now: () => epochMs + (Date.now() - epochMs) * factor,
		after: (ms, callback, due) => systemClock.after(ms / factor, callback, due),
	};
	return { factor, clock, env: { [VARIABLE]: `${epochMs}x${factor}` } };
}

/** The time that the parent has given to this process. */
export function timeOf(env: NodeJS.ProcessEnv): TestTime {
	const [epochMs, factor] = (env[VARIABLE] ?? "").split("x").map(Number);
	return epochMs && factor ? fastTime(factor, epochMs) : REAL_TIME;
}
