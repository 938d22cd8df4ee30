/** When a process is started again, as a pure step: exponential back-off, then a circuit breaker that tries once in a while. */

import { backoffMs, jittered } from "@nexus-stream/protocol/retry";

export interface RestartRules {
	/** Wait before the first restart; doubles with every failure. */
	backoffMs: number;
	backoffMsMax: number;
	/** A process that lived this long was healthy: its end resets the count. */
	healthyMs: number;
	/** Failures in a row that open the circuit. */
	failuresMax: number;
	/** How long the circuit stays open; doubles with every try that fails, unless the platform could not be reached. */
	circuitMs: number;
	circuitMsMax: number;
}

export const RESTART_RULES: RestartRules = {
	backoffMs: 250,
	backoffMsMax: 30_000,
	healthyMs: 10_000,
	failuresMax: 6,
	circuitMs: 60_000,
	circuitMsMax: 600_000,
};

export type ProcessPhase =
	| { at: "stopped" }
	| { at: "starting" }
	| { at: "running"; since: number }
	| { at: "backing_off"; until: number }
	| { at: "open_circuit"; until: number };

export interface Supervision {
	readonly phase: ProcessPhase;
	/** The process has a user. */
	readonly wanted: boolean;
	/** In a row. */
	readonly failures: number;
	/** Times the circuit opened since the process was last healthy. */
	readonly trips: number;
	/** Failures since the daemon started. */
	readonly restarts: number;
}

export type SupervisionInput =
	| { type: "want" }
	| { type: "unwant" }
	| { type: "spawned" }
	/** `clean`: it had nothing left to do. `unreachable`: it could not reach its platform. */
	| { type: "exited"; clean: boolean; unreachable?: boolean }
	| { type: "tick" };

export type SupervisionEffect = { type: "spawn" } | { type: "wake"; at: number };

export interface SupervisionStep {
	state: Supervision;
	effects: SupervisionEffect[];
}

export const UNSTARTED: Supervision = { phase: { at: "stopped" }, wanted: false, failures: 0, trips: 0, restarts: 0 };

/** `random` is in [0, 1): accounts that failed together do not come back together. */
export function stepSupervision(
	state: Supervision,
	input: SupervisionInput,
	now: number,
	rules: RestartRules,
	random: number,
): SupervisionStep {
	const only = (next: Supervision): SupervisionStep => ({ state: next, effects: [] });
	const { phase } = state;
	switch (input.type) {
		case "want":
			return phase.at === "stopped" ? spawn({ ...state, wanted: true }) : only({ ...state, wanted: true });
		case "unwant":
			return only({ ...state, wanted: false, phase: isWaiting(phase) ? { at: "stopped" } : phase });
		case "spawned":
			return only({ ...state, phase: { at: "running", since: now } });
		case "exited":
			return exited(state, input, now, rules, random);
		case "tick":
			if (!isWaiting(phase)) return only(state);
			// A timer may fire a moment early.
			if (now < phase.until) return { state, effects: [{ type: "wake", at: phase.until }] };
			return state.wanted ? spawn(state) : only({ ...state, phase: { at: "stopped" } });
		default:
			return input satisfies never;
	}
}

const isWaiting = (phase: ProcessPhase): phase is Extract<ProcessPhase, { until: number }> =>
	phase.at === "backing_off" || phase.at === "open_circuit";

const spawn = (state: Supervision): SupervisionStep => ({
	state: { ...state, phase: { at: "starting" } },
	effects: [{ type: "spawn" }],
});

function exited(
	state: Supervision,
	{ clean, unreachable = false }: { clean: boolean; unreachable?: boolean },
	now: number,
	rules: RestartRules,
	random: number,
): SupervisionStep {
	const { phase } = state;
	const healthy = phase.at === "running" && now - phase.since >= rules.healthyMs;
	const before = healthy || clean ? { ...state, failures: 0, trips: 0 } : state;
	if (clean) return { state: { ...before, phase: { at: "stopped" } }, effects: [] };
	const failures = before.failures + 1;
	const next = { ...before, failures, restarts: state.restarts + 1 };
	if (!state.wanted) return { state: { ...next, phase: { at: "stopped" } }, effects: [] };
	if (failures < rules.failuresMax) {
		const wait = backoffMs({ firstMs: rules.backoffMs, maxMs: rules.backoffMsMax }, failures - 1);
		const until = now + Math.round(jittered(wait, random));
		return { state: { ...next, phase: { at: "backing_off", until } }, effects: [{ type: "wake", at: until }] };
	}
	// An unreachable platform is not the process's fault: its waits do not grow, so that it is back soon after the network.
	const trips = unreachable ? 0 : before.trips;
	const until = now + backoffMs({ firstMs: rules.circuitMs, maxMs: rules.circuitMsMax }, trips);
	const open = { ...next, trips: trips + 1, phase: { at: "open_circuit" as const, until } };
	return { state: open, effects: [{ type: "wake", at: until }] };
}
