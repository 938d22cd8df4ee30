/** The counts of a load client, whatever the protocol. */

import { nowUs, STAMP_CHARS } from "./pace.ts";

export interface Tally {
	/** Tokens, and the frames around them where a protocol has any. */
	events: number;
	/** The pieces that they arrived in. */
	messages: number;
	bytes: number;
	latenciesMs: number[];
	timed: boolean;
	/** Called once, when so many events have arrived. */
	full: { events: number; reached: () => void };
}

/** Calls back when everything has arrived. What comes with the end is not timed. */
export function checkFull(tally: Tally): void {
	const { events, full } = tally;
	if (events < full.events) return;
	tally.timed = false;
	full.events = Infinity;
	full.reached();
}

/** Adds the latency of a token that begins at `at`. */
export function time(tally: Tally, bytes: Buffer, at: number, now: number = nowUs()): void {
	let due = 0;
	for (let digit = 0; digit < STAMP_CHARS; digit++) due = due * 10 + (bytes[at + digit] ?? 48) - 48;
	tally.latenciesMs.push((now - due) / 1000);
}
