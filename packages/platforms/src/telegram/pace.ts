/**
 * How fast a chat may be written to. Telegram takes short bursts and about one message a second from then on, twenty a minute in groups,
 * without saying how many are left: a chat has an allowance for writes at the floor's speed, and slows down once it is used up.
 */

import type { Pace } from "@nexus-stream/adapter";

/** The least time between two edits that people do not notice as a stutter of the platform. */
const FLOOR_MS = 500;
/** 30 calls a second, all chats together. */
const ACCOUNT_INTERVAL_MS = 34;

interface Rule {
	burst: number;
	refillMs: number;
}

const PRIVATE: Rule = { burst: 8, refillMs: 1100 };
/** A burst and a minute of single writes stay below 20. */
const GROUP: Rule = { burst: 4, refillMs: 4000 };
/** Previews are not messages; nothing counts them. */
export const PREVIEW_INTERVAL_MS = 250;

export interface TelegramAllowance {
	readonly level: number;
	readonly at: number;
}

const ruleOf = (direct: boolean): Rule => (direct ? PRIVATE : GROUP);

function levelAt(allowance: TelegramAllowance | undefined, direct: boolean, now: number): number {
	const { burst, refillMs } = ruleOf(direct);
	if (!allowance) return burst;
	// A clock that was set back refills nothing, and takes nothing away.
	return Math.min(burst, allowance.level + Math.max(0, now - allowance.at) / refillMs);
}

/** A message was created or edited. Finals wait for nothing: what they take too much is paid back by what follows. */
export const spend = (allowance: TelegramAllowance | undefined, direct: boolean, now: number): TelegramAllowance => ({
	level: Math.max(-ruleOf(direct).burst, levelAt(allowance, direct, now) - 1),
	at: now,
});

/** Typing is shown only while this leaves enough for what is being written. */
export const isScarce = (allowance: TelegramAllowance | undefined, direct: boolean, now: number): boolean =>
	levelAt(allowance, direct, now) < 2;

/** The platform said it was too fast. */
export const exhaust = (now: number): TelegramAllowance => ({ level: 0, at: now });

export const isRested = (allowance: TelegramAllowance, now: number): boolean => now - allowance.at > 60_000;

export function paceOf(allowance: TelegramAllowance | undefined, direct: boolean, now: number): Pace {
	const left = levelAt(allowance, direct, now);
	const targetIntervalMs = left > 1 ? FLOOR_MS : ruleOf(direct).refillMs * Math.max(1, 1 - left);
	return { targetIntervalMs, accountIntervalMs: ACCOUNT_INTERVAL_MS };
}
