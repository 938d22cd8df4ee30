/** How a provider is, and when to look again: pure, with the time as an argument. */

import type { ProviderHealth } from "./port.ts";

export interface HealthTimes {
	/** Between two looks at a provider that is well. */
	probeMs: number;
	/** After the first failure; it doubles with each further one. */
	backOffMs: number;
	backOffMsMax: number;
	/** So many failures in a row are more than a hiccup. */
	failuresMax: number;
}

export const HEALTH_TIMES: HealthTimes = { probeMs: 60_000, backOffMs: 5_000, backOffMsMax: 600_000, failuresMax: 3 };

export type HealthOutcome =
	| { ok: true }
	/** A wrong request says nothing about its provider, so it does not count as an outcome. */
	| { ok: false; fault: "unauthorized" | "unavailable"; reason: string };

export const newHealth = (name: string, now: number): ProviderHealth => ({
	name,
	state: "unknown",
	consecutiveFailures: 0,
	changedAt: now,
});

export function afterOutcome(
	health: ProviderHealth,
	outcome: HealthOutcome,
	now: number,
	{ failuresMax }: HealthTimes = HEALTH_TIMES,
): ProviderHealth {
	const consecutiveFailures = outcome.ok ? 0 : health.consecutiveFailures + 1;
	const state = stateAfter(outcome, consecutiveFailures, failuresMax);
	return {
		name: health.name,
		state,
		reason: outcome.ok ? undefined : outcome.reason,
		consecutiveFailures,
		changedAt: state === health.state ? health.changedAt : now,
		checkedAt: now,
	};
}

function stateAfter(outcome: HealthOutcome, failures: number, failuresMax: number): ProviderHealth["state"] {
	if (outcome.ok) return "healthy";
	// The provider will refuse the next try, too.
	if (outcome.fault === "unauthorized") return "unauthorized";
	return failures < failuresMax ? "degraded" : "unavailable";
}

/** When it should be looked at next, if anybody wants to know. */
export function nextProbeAt(health: ProviderHealth, times: HealthTimes = HEALTH_TIMES): number {
	if (health.checkedAt === undefined) return health.changedAt;
	const { consecutiveFailures: failures } = health;
	if (failures === 0) return health.checkedAt + times.probeMs;
	// The owner has to change a wrong key first; until then every probe is one more refusal.
	if (health.state === "unauthorized") return health.checkedAt + times.backOffMsMax;
	return health.checkedAt + Math.min(times.backOffMsMax, times.backOffMs * 2 ** Math.min(failures - 1, 30));
}

/** Readers get these changes; another probe with the same result is not one. */
export const isNews = (before: ProviderHealth, after: ProviderHealth): boolean =>
	before.state !== after.state ||
	before.reason !== after.reason ||
	before.consecutiveFailures !== after.consecutiveFailures;
