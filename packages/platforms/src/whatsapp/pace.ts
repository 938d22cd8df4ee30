/**
 * How fast a person may be written to: about one message in six seconds. A burst is lent, and has to be paid back: a chat has an allowance, and
 * slows down once it is used up.
 */

import type { Pace } from "@nexus-stream/adapter";
import { backoffMs } from "@nexus-stream/protocol/retry";

/** Messages that follow closer may arrive in another order. */
const FLOOR_MS = 1000;
const REFILL_MS = 6000;
/** Less than the 45 that WhatsApp lends. */
const BURST = 20;
/** 80 messages a second, all chats together. */
const ACCOUNT_INTERVAL_MS = 13;
const REFUSED_MAX_MS = 96_000;

export interface WhatsAppAllowance {
	readonly level: number;
	readonly at: number;
	/** Refusals since the last message that was taken. */
	readonly refusals: number;
}

export const FULL: WhatsAppAllowance = { level: BURST, at: 0, refusals: 0 };

/** A clock that was set back refills nothing, and takes nothing away. */
const levelAt = ({ level, at }: WhatsAppAllowance, now: number): number =>
	Math.min(BURST, level + Math.max(0, now - at) / REFILL_MS);

/** A message was taken. */
export const spend = (allowance: WhatsAppAllowance, now: number): WhatsAppAllowance => ({
	level: Math.max(0, levelAt(allowance, now) - 1),
	at: now,
	refusals: 0,
});

/** The platform said it was too fast. */
export const refuse = (allowance: WhatsAppAllowance, now: number): WhatsAppAllowance => ({
	level: 0,
	at: now,
	refusals: allowance.refusals + 1,
});

/** How long to wait after so many refusals; the platform does not say. */
export const waitMs = ({ refusals }: WhatsAppAllowance): number =>
	backoffMs({ firstMs: REFILL_MS, maxMs: REFUSED_MAX_MS }, refusals - 1);

export const isRested = (allowance: WhatsAppAllowance, now: number): boolean => levelAt(allowance, now) >= BURST;

export const paceOf = (allowance: WhatsAppAllowance, now: number): Pace => ({
	targetIntervalMs: levelAt(allowance, now) > 1 ? FLOOR_MS : REFILL_MS,
	accountIntervalMs: ACCOUNT_INTERVAL_MS,
});
