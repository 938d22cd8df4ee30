/** Keeps the health of all providers in memory, and probes them while they are in use or have subscribers. */

import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { backoffMs } from "@nexus-stream/protocol/retry";
import type { CallOutcome, ProviderHealth, ProviderHealthFeed } from "./port.ts";
import { type Fault, ProviderFailure } from "./wire.ts";

export const HEALTH_TIMES = {
	/** Between two looks at a provider that is well. */
	probeMs: 60_000,
	/** After the first failure; it doubles with each further one. */
	backOffMs: 5_000,
	backOffMsMax: 600_000,
	/** How long after its last use a provider is probed without subscribers. */
	inUseMs: 300_000,
} as const;

/** So many failures in a row are more than a hiccup. */
const FAILURES_MAX = 3;

export type HealthOutcome =
	| { ok: true }
	/** A wrong request says nothing about its provider, so it does not count as an outcome. */
	| { ok: false; fault: Fault; reason: string };

export interface WatchDeps {
	clock: Clock;
	/** Never rejects: how a look at it went; undefined when that says nothing. */
	probe(name: string, signal: AbortSignal): Promise<HealthOutcome | undefined>;
}

interface Watched {
	health: ProviderHealth;
	isProbed: boolean;
	usedAt: number;
	cancel?: (() => void) | undefined;
	isProbing: boolean;
}

export class HealthWatch implements ProviderHealthFeed {
	readonly #clock: Clock;
	readonly #probe: WatchDeps["probe"];
	readonly #all = new Map<string, Watched>();
	readonly #listeners = new Set<(health: ProviderHealth) => void>();
	readonly #reported = new WeakSet<Error>();
	readonly #stopped = new AbortController();

	constructor({ clock, probe }: WatchDeps) {
		this.#clock = clock;
		this.#probe = probe;
	}

	list(): ProviderHealth[] {
		return [...this.#all.values()].map(({ health }) => health);
	}

	subscribe(listener: (health: ProviderHealth) => void): () => void {
		// The same function may subscribe twice.
		const own = (health: ProviderHealth) => listener(health);
		this.#listeners.add(own);
		if (this.#listeners.size === 1) this.#planAll();
		return () => {
			if (this.#listeners.delete(own) && this.#listeners.size === 0) this.#planAll();
		};
	}

	/** Adds a provider, whose state stays as it is until the next probe or call; `isProbed`: it can be probed. */
	know(name: string, isProbed: boolean): void {
		let watched = this.#all.get(name);
		if (watched) watched.isProbed = isProbed;
		else {
			const health = newHealth(name, this.#clock.now());
			watched = { health, isProbed, usedAt: Number.NEGATIVE_INFINITY, isProbing: false };
			this.#all.set(name, watched);
			this.#tell(health);
		}
		this.#plan(watched);
	}

	forget(name: string): void {
		const watched = this.#all.get(name);
		if (!watched) return;
		watched.cancel?.();
		this.#all.delete(name);
		this.#tell({ ...newHealth(name, this.#clock.now()), state: "removed" });
	}

	/** Its address or key has changed: what was known counts no more. */
	reset(name: string): void {
		const watched = this.#all.get(name);
		if (!watched) return;
		watched.health = newHealth(name, this.#clock.now());
		this.#tell(watched.health);
		this.#plan(watched);
	}

	/** The outcome of a call. An error counts once, also when the provider and its caller both report it. */
	report(name: string, outcome: CallOutcome): void {
		if (!outcome.ok) {
			if (this.#reported.has(outcome.error)) return;
			this.#reported.add(outcome.error);
		}
		const counted = outcome.ok ? outcome : outcomeOf(outcome.error);
		const watched = this.#all.get(name);
		if (!watched || !counted) return;
		this.#take(watched, counted);
		this.#plan(watched);
	}

	/** A caller uses it: it is probed for a while. */
	used(name: string): void {
		const watched = this.#all.get(name);
		if (!watched) return;
		watched.usedAt = this.#clock.now();
		if (watched.cancel === undefined) this.#plan(watched);
	}

	close(): void {
		this.#stopped.abort();
		for (const watched of this.#all.values()) watched.cancel?.();
		this.#listeners.clear();
	}

	#tell(health: ProviderHealth): void {
		for (const listener of this.#listeners) listener(health);
	}

	#isWanted({ isProbed, usedAt }: Watched): boolean {
		const isInUse = this.#listeners.size > 0 || this.#clock.now() - usedAt < HEALTH_TIMES.inUseMs;
		return isProbed && isInUse && !this.#stopped.signal.aborted;
	}

	#planAll(): void {
		for (const watched of this.#all.values()) this.#plan(watched);
	}

	#plan(watched: Watched): void {
		watched.cancel?.();
		watched.cancel = undefined;
		if (watched.isProbing || !this.#isWanted(watched)) return;
		// Calls report how they went: only silence after the last one is a reason to probe.
		const earliest = this.#listeners.size > 0 ? 0 : watched.usedAt + HEALTH_TIMES.probeMs;
		const ms = Math.max(0, Math.max(nextProbeAt(watched.health), earliest) - this.#clock.now());
		watched.cancel = this.#clock.after(ms, () => void this.#look(watched));
	}

	async #look(watched: Watched): Promise<void> {
		const { name } = watched.health;
		watched.cancel = undefined;
		if (!this.#isWanted(watched)) return;
		watched.isProbing = true;
		const outcome = await this.#probe(name, this.#stopped.signal);
		watched.isProbing = false;
		// It may have been removed meanwhile.
		if (this.#all.get(name) !== watched || this.#stopped.signal.aborted) return;
		if (outcome) this.#take(watched, outcome);
		else watched.health = { ...watched.health, checkedAt: this.#clock.now() };
		this.#plan(watched);
	}

	#take(watched: Watched, outcome: HealthOutcome): void {
		const before = watched.health;
		watched.health = afterOutcome(before, outcome, this.#clock.now());
		if (isNews(before, watched.health)) this.#tell(watched.health);
	}
}

/** The health outcome that an error stands for; undefined: the error says nothing about the provider. */
export function outcomeOf(error: Error): HealthOutcome | undefined {
	const failed = (fault: Fault): HealthOutcome => ({ ok: false, fault, reason: error.message });
	if (error instanceof ProviderFailure) return error.fault && failed(error.fault);
	switch (error instanceof NexusError ? error.reason : undefined) {
		case "AI_CONNECTOR_CREDENTIAL_MISSING":
			return failed("unauthorized");
		case "AI_PROVIDER_FAILED":
		case "AI_PROVIDER_TIMEOUT":
		case "AI_ENDPOINT_FORBIDDEN":
		case "AI_ENDPOINT_UNRESOLVED":
			return failed("unavailable");
		default:
			return undefined;
	}
}

export const newHealth = (name: string, now: number): ProviderHealth => ({
	name,
	state: "unknown",
	consecutiveFailures: 0,
	changedAt: now,
});

export function afterOutcome(health: ProviderHealth, outcome: HealthOutcome, now: number): ProviderHealth {
	const consecutiveFailures = outcome.ok ? 0 : health.consecutiveFailures + 1;
	const state = stateAfter(outcome, consecutiveFailures);
	return {
		name: health.name,
		state,
		reason: outcome.ok ? undefined : outcome.reason,
		consecutiveFailures,
		changedAt: state === health.state ? health.changedAt : now,
		checkedAt: now,
	};
}

function stateAfter(outcome: HealthOutcome, failures: number): ProviderHealth["state"] {
	if (outcome.ok) return "healthy";
	// The provider will refuse the next try, too.
	if (outcome.fault === "unauthorized") return "unauthorized";
	return failures < FAILURES_MAX ? "degraded" : "unavailable";
}

/** When it should be looked at next, if anybody wants to know. */
export function nextProbeAt({ state, consecutiveFailures: failures, changedAt, checkedAt }: ProviderHealth): number {
	const { probeMs, backOffMs: firstMs, backOffMsMax: maxMs } = HEALTH_TIMES;
	if (checkedAt === undefined) return changedAt;
	if (failures === 0) return checkedAt + probeMs;
	// The owner has to change a wrong key first; until then every probe is one more refusal.
	return checkedAt + (state === "unauthorized" ? maxMs : backoffMs({ firstMs, maxMs }, failures - 1));
}

/** Readers get these changes; another probe with the same result is not one. */
const isNews = (before: ProviderHealth, after: ProviderHealth): boolean =>
	before.state !== after.state ||
	before.reason !== after.reason ||
	before.consecutiveFailures !== after.consecutiveFailures;
