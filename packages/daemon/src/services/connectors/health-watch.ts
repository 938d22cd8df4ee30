/** Keeps the health of all providers in memory, and probes them while they are in use or have subscribers. */

import type { Clock } from "@nexus-stream/protocol/clock";
import {
	afterOutcome,
	HEALTH_TIMES,
	type HealthOutcome,
	type HealthTimes,
	isNews,
	newHealth,
	nextProbeAt,
} from "./health.ts";
import type { ProviderHealth, ProviderHealthFeed } from "./port.ts";

export interface HealthWatch extends ProviderHealthFeed {
	/** Adds a provider, whose state stays as it is until the next probe or call; `isProbed`: it can be probed. */
	know(name: string, isProbed: boolean): void;
	forget(name: string): void;
	/** Its address or key has changed: what was known counts no more. */
	reset(name: string): void;
	outcome(name: string, outcome: HealthOutcome): void;
	/** A caller uses it: it is probed for a while. */
	used(name: string): void;
	close(): void;
}

export interface WatchDeps {
	clock: Clock;
	/** Never rejects: how a look at it went; undefined when that says nothing. */
	probe(name: string, signal: AbortSignal): Promise<HealthOutcome | undefined>;
	times?: HealthTimes;
	/** How long after its last use a provider is probed without subscribers. */
	inUseMs?: number;
}

interface Watched {
	health: ProviderHealth;
	isProbed: boolean;
	usedAt: number;
	cancel?: (() => void) | undefined;
	isProbing: boolean;
}

const IN_USE_MS = 300_000;

export function watchHealth({ clock, probe, times = HEALTH_TIMES, inUseMs = IN_USE_MS }: WatchDeps): HealthWatch {
	const all = new Map<string, Watched>();
	const listeners = new Set<(health: ProviderHealth) => void>();
	const stopped = new AbortController();

	const tell = (health: ProviderHealth) => {
		for (const listener of listeners) listener(health);
	};
	const isWanted = ({ isProbed, usedAt }: Watched) =>
		isProbed && !stopped.signal.aborted && (listeners.size > 0 || clock.now() - usedAt < inUseMs);
	const plan = (name: string, watched: Watched) => {
		watched.cancel?.();
		watched.cancel = undefined;
		if (watched.isProbing || !isWanted(watched)) return;
		// Calls report how they went: only silence after the last one is a reason to probe.
		const earliest = listeners.size > 0 ? 0 : watched.usedAt + times.probeMs;
		const ms = Math.max(0, Math.max(nextProbeAt(watched.health, times), earliest) - clock.now());
		watched.cancel = clock.after(ms, () => void look(name, watched));
	};
	const look = async (name: string, watched: Watched) => {
		watched.cancel = undefined;
		if (!isWanted(watched)) return;
		watched.isProbing = true;
		const outcome = await probe(name, stopped.signal);
		watched.isProbing = false;
		// It may have been removed meanwhile.
		if (all.get(name) !== watched || stopped.signal.aborted) return;
		if (outcome) take(watched, outcome);
		else watched.health = { ...watched.health, checkedAt: clock.now() };
		plan(name, watched);
	};
	const take = (watched: Watched, outcome: HealthOutcome) => {
		const before = watched.health;
		watched.health = afterOutcome(before, outcome, clock.now(), times);
		if (isNews(before, watched.health)) tell(watched.health);
	};
	const planAll = () => {
		for (const [name, watched] of all) plan(name, watched);
	};

	const watch: HealthWatch = {
		list: () => [...all.values()].map(({ health }) => health),
		subscribe(listener) {
			// The same function may subscribe twice.
			const own = (health: ProviderHealth) => listener(health);
			listeners.add(own);
			if (listeners.size === 1) planAll();
			return () => {
				if (listeners.delete(own) && listeners.size === 0) planAll();
			};
		},
		know(name, isProbed) {
			const known = all.get(name);
			if (known) {
				known.isProbed = isProbed;
				plan(name, known);
				return;
			}
			const health = newHealth(name, clock.now());
			const watched = { health, isProbed, usedAt: Number.NEGATIVE_INFINITY, isProbing: false };
			all.set(name, watched);
			tell(health);
			plan(name, watched);
		},
		forget(name) {
			const watched = all.get(name);
			if (!watched) return;
			watched.cancel?.();
			all.delete(name);
			tell({ ...newHealth(name, clock.now()), state: "removed" });
		},
		reset(name) {
			const watched = all.get(name);
			if (!watched) return;
			watched.health = newHealth(name, clock.now());
			tell(watched.health);
			plan(name, watched);
		},
		outcome(name, outcome) {
			const watched = all.get(name);
			if (!watched) return;
			take(watched, outcome);
			plan(name, watched);
		},
		used(name) {
			const watched = all.get(name);
			if (!watched) return;
			watched.usedAt = clock.now();
			if (watched.cancel === undefined) plan(name, watched);
		},
		close() {
			stopped.abort();
			for (const watched of all.values()) watched.cancel?.();
			listeners.clear();
		},
	};
	return watch;
}
