/**
 * Fast time for tests that keep a platform's pace: one epoch and one factor for the test, its fakes and every process it starts, so that a
 * restarted adapter reads the same time as the one before it. Only waiting is fast: limits on what others take (a call, an ack) keep their real length.
 */

import { join } from "node:path";
import { type Clock, systemClock } from "../../src/std/clock.ts";

/** Names the epoch and the factor to child processes. Adapters inherit NODE_ variables. */
const VARIABLE = "NODE_NEXUS_TIME";

/** Names the bundled adapters, where a run has made them (build.ts). */
export const ADAPTER_VARIABLE = "NODE_NEXUS_ADAPTER";

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

/** An adapter that takes its time from whoever starts it: `<adapter> <verb> …`. */
export const timedAdapter = (channel: string): string[] => [
	process.execPath,
	// Of a library: Node is silent about those in node_modules only.
	"--disable-warning=DEP0040",
	process.env[ADAPTER_VARIABLE] ?? join(import.meta.dirname, "adapter.ts"),
	channel,
];

/** The time that the parent has given to this process. */
export function timeOf(env: NodeJS.ProcessEnv): TestTime {
	const [epochMs, factor] = (env[VARIABLE] ?? "").split("x").map(Number);
	return epochMs && factor ? fastTime(factor, epochMs) : REAL_TIME;
}
