/** Sessions of platforms without a process around them. */

import { expect } from "vitest";
import {
	type Account,
	type Platform,
	PlatformError,
	type Session,
	type Tools,
} from "../../packages/adapter/src/kit.ts";
import { type Clock, systemClock } from "../../packages/protocol/src/clock.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { until } from "../until.ts";

export function memory(): Tools["state"] {
	const kept = new Map<string, string>();
	return { get: (key) => kept.get(key), set: (key, value) => void kept.set(key, value) };
}

/** Waits take no time, so that a look-up's second look comes at once. */
export const hurriedClock: Clock = { now: () => Date.now(), after: (_, callback) => systemClock.after(0, callback) };

/** The same, and its time stands still but for `pass`: for an account and its platform. */
export function standingClock(): Clock & { pass(ms: number): void } {
	let now = Date.now();
	const pass = (ms: number) => {
		now += ms;
	};
	return { ...hurriedClock, now: () => now, pass };
}

export async function openSession(
	platform: Platform,
	settings: Account["settings"],
	tools: Partial<Tools> = {},
): Promise<Session> {
	const { state = memory() } = tools;
	// Processes of one account have both files in common.
	const notes = tools.state && notesBeside(tools.state);
	const rest = { log: silentLog, clock: hurriedClock, state, notes };
	return await platform.open({ id: "a", settings }, { ...rest, ...tools });
}

const kept = new WeakMap<Tools["state"], NonNullable<Tools["notes"]>>();

function notesBeside(state: Tools["state"]): NonNullable<Tools["notes"]> {
	const known = kept.get(state);
	if (known) return known;
	let lines: string[] = [];
	const add = (line: string) => {
		lines = [...lines, line];
	};
	const notes = { add, addLasting: add, all: () => lines };
	kept.set(state, notes);
	return notes;
}

export const sendOptions = (nonce = "n1", signal = AbortSignal.timeout(60_000)) => ({ nonce, final: true, signal });

/** A call that hangs is left when the platform has it: after some time only, it might be left before it was made. */
export function abortedWhen(condition: () => boolean): AbortSignal {
	const leaving = new AbortController();
	const leave = () => leaving.abort();
	void until("the call is made", condition).then(leave, leave);
	return leaving.signal;
}

export async function faultOf(work: Promise<unknown> | undefined): Promise<PlatformError> {
	const outcome = await work?.then(
		() => undefined,
		(cause: unknown) => cause,
	);
	expect(outcome).toBeInstanceOf(PlatformError);
	return outcome as PlatformError;
}
