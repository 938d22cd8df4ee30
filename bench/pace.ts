/** Shared by the measured engine and the bare server: the clock, the start signal and the rhythm of tokens. */

import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Both clocks are read as close to each other as they can be: the first use of either takes its time. */
function origin(): number {
	let best = { gapMs: Infinity, us: 0 };
	for (let tries = 0; tries < 20; tries++) {
		const before = performance.now();
		const [seconds, nanoseconds] = process.hrtime();
		const gapMs = performance.now() - before;
		if (gapMs < best.gapMs) best = { gapMs, us: seconds * 1e6 + nanoseconds / 1e3 - (before + gapMs / 2) * 1e3 };
	}
	return best.us;
}

const originUs = origin();

/** Microseconds on the clock that every process of this machine shares. */
export const nowUs = (): number => originUs + performance.now() * 1e3;

/** A token that carries when it was due; as long as the one that does not. */
export const STAMP_CHARS = 16;
const stamp = (dueMs: number): string => String(Math.round(originUs + dueMs * 1e3)).padStart(STAMP_CHARS, "0");
export const FILLER = "sixteen letters ";

const TIMER_MS = 1;

export interface Rhythm {
	tokens: number;
	/** Per second; 0 = as fast as the consumer takes them. */
	rate: number;
	/** Nothing is made before this file exists, so that every reader is there from the first token on. */
	go?: string;
	/** The stream ends no sooner than this file exists, so that live streams can be looked at after their last token. */
	end?: string;
	/** The engine yields so many tokens at once, as one array; left out = one by one. For a rate of 0 only. */
	burst?: number;
}

/** `tokens=1000 rate=50 go=/tmp/x`: the message that asks the engine for it, and the query that asks the bare server. */
export const textOf = (rhythm: Rhythm): string =>
	Object.entries(rhythm)
		.map(([name, value]) => `${name}=${value}`)
		.join(" ");

export function rhythmOf(text: string): Rhythm {
	const words = new Map(text.split(/\s+/).map((word) => word.split("=", 2) as [string, string]));
	const [go, end, burst] = [words.get("go"), words.get("end"), words.get("burst")];
	return {
		tokens: Number(words.get("tokens") ?? 0),
		rate: Number(words.get("rate") ?? 0),
		...(go && { go }),
		...(end && { end }),
		...(burst && { burst: Number(burst) }),
	};
}

const signals = new Map<string, Promise<void>>();

/** A thousand streams that wait for one signal share one poll. */
export function signal(path: string): Promise<void> {
	const poll = async () => {
		while (!existsSync(path)) await sleep(2);
		signals.delete(path);
	};
	const known = signals.get(path) ?? poll();
	signals.set(path, known);
	return known;
}

export async function* paced({ tokens, rate, go, end }: Rhythm): AsyncGenerator<string> {
	if (go) await signal(go);
	const periodMs = 1000 / rate;
	// Streams that start together must not tick together.
	let due = performance.now() + Math.random() * periodMs;
	for (let made = 0; made < tokens; made++, due += periodMs) {
		if (rate === 0) {
			yield FILLER;
			continue;
		}
		const waitMs = due - performance.now();
		// Timers have whole milliseconds: wake before the token is due, never after it because of rounding.
		if (waitMs >= TIMER_MS) await sleep(Math.floor(waitMs));
		// A late producer does not wait until it has caught up, and what it makes is as late as it was due.
		yield stamp(Math.min(due, performance.now()));
	}
	if (end) await signal(end);
}
