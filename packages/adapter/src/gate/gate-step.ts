/** Decides which call may go next: the rate gate of one account as a pure step. Finals first, a chat's calls one after another, refusals obeyed. */

import { backoffMs } from "@nexus-stream/protocol/retry";
import type { PlatformFault } from "../port.ts";

/** In order of precedence. */
export const RANKS = ["final", "create", "edit", "preview", "typing"] as const;
export type Rank = (typeof RANKS)[number];

export interface GateLimits {
	/** Calls of the account at the same time; a target never has more than one. */
	callsMax: number;
	/** First wait after a failure; it doubles with every further one. */
	backoffMs: number;
	backoffMaxMs: number;
	/** How long a job is tried again after its first failure. */
	patienceMs: Readonly<Record<Rank, number>>;
}

export const GATE_LIMITS: GateLimits = {
	callsMax: 16,
	backoffMs: 500,
	backoffMaxMs: 30_000,
	patienceMs: { final: 900_000, create: 900_000, edit: 60_000, preview: 3_000, typing: 0 },
};

export interface JobRequest {
	id: number;
	/** Jobs of one lane never overlap. */
	lane: string;
	rank: Rank;
	/** Waits for the intervals of its target. The account's interval holds for every job. */
	paced: boolean;
	targetIntervalMs: number;
	accountIntervalMs: number;
}

interface PendingJob extends JobRequest {
	order: number;
	running: boolean;
	notBefore: number;
	failures: number;
	failingSince: number | undefined;
}

export interface GateState {
	readonly jobs: ReadonlyMap<number, PendingJob>;
	/** When a lane's interval is over. */
	readonly lanes: ReadonlyMap<string, number>;
	readonly accountFreeAt: number;
	readonly blockedUntil: number;
	readonly refusals: number;
	readonly order: number;
}

export const EMPTY_GATE: GateState = {
	jobs: new Map(),
	lanes: new Map(),
	accountFreeAt: 0,
	blockedUntil: 0,
	refusals: 0,
	order: 0,
};

export type GateInput =
	| { type: "add"; job: JobRequest }
	/** Ranks only rise, and pacing only falls away. */
	| { type: "raise"; id: number; rank: Rank; paced: boolean }
	| { type: "remove"; id: number }
	| { type: "succeeded"; id: number }
	/** `random` in [0, 1) spreads the retries of many jobs. */
	| { type: "failed"; id: number; fault: PlatformFault; retryAfterMs?: number; random: number }
	| { type: "tick" };

export type GateEffect =
	| { type: "start"; id: number }
	| { type: "give_up"; id: number }
	| { type: "rate_limited"; retryAfterMs: number }
	/** Tick again then. */
	| { type: "wake"; at: number };

export interface GateStep {
	state: GateState;
	effects: GateEffect[];
}

export function stepGate(state: GateState, input: GateInput, now: number, limits: GateLimits = GATE_LIMITS): GateStep {
	const took = take(state, input, now, limits);
	return dispatch(took.state, took.effects, now, limits);
}

function take(state: GateState, input: GateInput, now: number, limits: GateLimits): GateStep {
	const jobs = new Map(state.jobs);
	switch (input.type) {
		case "add": {
			const fresh = { order: state.order, running: false, notBefore: 0, failures: 0, failingSince: undefined };
			jobs.set(input.job.id, { ...input.job, ...fresh });
			return { state: { ...state, jobs, order: state.order + 1 }, effects: [] };
		}
		case "raise": {
			const job = jobs.get(input.id);
			if (job) jobs.set(job.id, raised(job, input.rank, input.paced));
			return { state: { ...state, jobs }, effects: [] };
		}
		case "remove":
			jobs.delete(input.id);
			return { state: { ...state, jobs }, effects: [] };
		case "succeeded":
			jobs.delete(input.id);
			return { state: { ...state, jobs, refusals: 0 }, effects: [] };
		case "failed":
			return fail(state, input, now, limits);
		case "tick":
			return { state, effects: [] };
		default:
			return input satisfies never;
	}
}

function raised(job: PendingJob, rank: Rank, paced: boolean): PendingJob {
	const higher = RANKS.indexOf(rank) < RANKS.indexOf(job.rank) ? rank : job.rank;
	return { ...job, rank: higher, paced: job.paced && paced };
}

function fail(
	state: GateState,
	input: Extract<GateInput, { type: "failed" }>,
	now: number,
	limits: GateLimits,
): GateStep {
	const job = state.jobs.get(input.id);
	const jobs = new Map(state.jobs);
	const giveUp = (next: Partial<GateState>, effects: GateEffect[]): GateStep => {
		jobs.delete(input.id);
		return { state: { ...state, ...next, jobs }, effects: [...effects, { type: "give_up", id: input.id }] };
	};
	const backoff = (failures: number) => backoffMs({ firstMs: limits.backoffMs, maxMs: limits.backoffMaxMs }, failures);
	if (input.fault === "rate_limited") {
		// Calls that left together are refused together: that is one refusal, not many in a row.
		const known = now < state.blockedUntil;
		const retryAfterMs = input.retryAfterMs ?? (known ? state.blockedUntil - now : backoff(state.refusals));
		const blocked = {
			blockedUntil: Math.max(state.blockedUntil, now + retryAfterMs),
			refusals: known ? state.refusals : state.refusals + 1,
		};
		const told: GateEffect[] = [{ type: "rate_limited", retryAfterMs }];
		const since = job?.failingSince ?? now;
		if (!job || now + retryAfterMs - since > limits.patienceMs[job.rank]) return giveUp(blocked, told);
		jobs.set(job.id, { ...job, running: false, failingSince: since });
		return { state: { ...state, ...blocked, jobs }, effects: told };
	}
	if (input.fault !== "unavailable" || !job) return giveUp({}, []);
	const waitMs = input.retryAfterMs ?? backoff(job.failures) * (0.5 + input.random / 2);
	const since = job.failingSince ?? now;
	if (now + waitMs - since > limits.patienceMs[job.rank]) return giveUp({}, []);
	jobs.set(job.id, {
		...job,
		running: false,
		notBefore: now + waitMs,
		failures: job.failures + 1,
		failingSince: since,
	});
	return { state: { ...state, jobs }, effects: [] };
}

/** Starts what may start, in order of rank and then of arrival. */
function dispatch(state: GateState, effects: GateEffect[], now: number, limits: GateLimits): GateStep {
	const waiting = [...state.jobs.values()].filter((job) => !job.running);
	if (waiting.length === 0) return { state: tidy(state, now), effects };
	const busy = new Set([...state.jobs.values()].filter((job) => job.running).map((job) => job.lane));
	let running = state.jobs.size - waiting.length;
	waiting.sort((a, b) => RANKS.indexOf(a.rank) - RANKS.indexOf(b.rank) || a.order - b.order);
	const jobs = new Map(state.jobs);
	const lanes = new Map(state.lanes);
	let accountFreeAt = state.accountFreeAt;
	for (const job of waiting) {
		if (running >= limits.callsMax || busy.has(job.lane)) continue;
		if (readyAt(job, lanes, state.blockedUntil, accountFreeAt) > now) continue;
		jobs.set(job.id, { ...job, running: true });
		lanes.set(job.lane, now + job.targetIntervalMs);
		accountFreeAt = now + job.accountIntervalMs;
		busy.add(job.lane);
		running++;
		effects.push({ type: "start", id: job.id });
	}
	// Only a job whose time is the obstacle needs a timer; the others are looked at when a running one ends.
	let at = Number.POSITIVE_INFINITY;
	for (const job of jobs.values())
		if (!job.running && !busy.has(job.lane)) at = Math.min(at, readyAt(job, lanes, state.blockedUntil, accountFreeAt));
	if (at !== Number.POSITIVE_INFINITY && at > now) effects.push({ type: "wake", at });
	return { state: tidy({ ...state, jobs, lanes, accountFreeAt }, now), effects };
}

const readyAt = (
	job: PendingJob,
	lanes: ReadonlyMap<string, number>,
	blockedUntil: number,
	accountFreeAt: number,
): number => Math.max(job.notBefore, blockedUntil, accountFreeAt, job.paced ? (lanes.get(job.lane) ?? 0) : 0);

const LANES_KEPT = 64;

/** Forgets lanes whose interval is over. */
function tidy(state: GateState, now: number): GateState {
	if (state.lanes.size <= LANES_KEPT) return state;
	return { ...state, lanes: new Map([...state.lanes].filter(([, freeAt]) => freeAt > now)) };
}
