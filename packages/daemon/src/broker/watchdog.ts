/** Whether a run has been silent or busy for too long: a pure function of its times. The driver owns the timer. */

import type { BrokerLimits } from "./port.ts";

/** No deadline counts the time in between; without `to` the pause lasts on. */
export interface Pause {
	from: number;
	to?: number;
}

export interface WatchdogState {
	startedAt: number;
	/** The last event of any kind. */
	lastEventAt: number | undefined;
	/** When the longest running tool was started. */
	oldestToolAt: number | undefined;
	/** When the stop was requested. */
	stoppedAt: number | undefined;
	/** Waits for a person, in order and without overlap. */
	pauses?: readonly Pause[];
}

export type Alarm = "first_token" | "inter_token" | "total" | "tool" | "grace";

export type WatchLimits = Pick<BrokerLimits, "firstTokenMs" | "interTokenMs" | "totalMs" | "toolMs" | "abortGraceMs">;

/** Returns the deadline that has passed, or the time until the next one. */
export function watch(run: WatchdogState, limits: WatchLimits, now: number): { alarm: Alarm } | { againMs: number } {
	let next: [Alarm, at: number] | undefined;
	for (const due of dues(run, limits)) if (next === undefined || due[1] < next[1]) next = due;
	if (next === undefined) return { againMs: Infinity };
	return next[1] <= now ? { alarm: next[0] } : { againMs: next[1] - now };
}

function* dues(run: WatchdogState, limits: WatchLimits): Generator<[Alarm, at: number]> {
	if (run.stoppedAt !== undefined) {
		yield ["grace", run.stoppedAt + limits.abortGraceMs];
		return;
	}
	const { pauses = [] } = run;
	// Only a stop ends the wait for a person, who may answer late or never.
	if (pauses.length > 0 && pauses.at(-1)!.to === undefined) return;
	const due = (alarm: Alarm, from: number, ms: number): [Alarm, number] => [alarm, from + ms + pausedMs(pauses, from)];
	yield due("total", run.startedAt, limits.totalMs);
	// The engine is asked to end a tool at toolMs; this is for one that does not.
	if (run.oldestToolAt !== undefined) yield due("tool", run.oldestToolAt, limits.toolMs + limits.abortGraceMs);
	else if (run.lastEventAt === undefined) yield due("first_token", run.startedAt, limits.firstTokenMs);
	else yield due("inter_token", run.lastEventAt, limits.interTokenMs);
}

/** Paused time after `since`. */
function pausedMs(pauses: readonly Pause[], since: number): number {
	let ms = 0;
	for (const { from, to = from } of pauses) ms += Math.max(0, to - Math.max(from, since));
	return ms;
}

export const alarmMessage = (alarm: Exclude<Alarm, "grace">, limits: WatchLimits): string =>
	({
		first_token: `The engine said nothing within ${limits.firstTokenMs} ms.`,
		inter_token: `The engine went silent for ${limits.interTokenMs} ms.`,
		total: `The run took longer than ${limits.totalMs} ms.`,
		tool: `A tool took longer than ${limits.toolMs} ms.`,
	})[alarm];
