/** Decides which call may go next: the rate gate of one account as a pure step. Finals first, a chat's calls one after another, refusals obeyed. */

import { backoffMs } from "@nexus-stream/protocol/retry";
import type { Pace } from "../platform/session.ts";
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

export interface JobRequest extends Pace {
	id: number;
	/** Jobs of one lane never overlap. */
	lane: string;
	rank: Rank;
	/** Waits for the intervals of its target. The account's interval holds for every job. */
	paced: boolean;
}

interface PendingJob extends JobRequest {
	running: boolean;
	notBefore: number;
	failures: number;
	failingSince: number | undefined;
}

export interface GateState {
	/** In order of arrival. */
	readonly jobs: ReadonlyMap<number, PendingJob>;
	/** When a lane's interval is over. */
	readonly lanes: ReadonlyMap<string, number>;
	readonly accountFreeAt: number;
	readonly blockedUntil: number;
	readonly refusals: number;
}

export const EMPTY_GATE: GateState = {
	jobs: new Map(),
	lanes: new Map(),
	accountFreeAt: 0,
	blockedUntil: 0,
	refusals: 0,
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
		case "add":
			jobs.set(input.job.id, { ...input.job, running: false, notBefore: 0, failures: 0, failingSince: undefined });
			break;
		case "raise": {
			const job = jobs.get(input.id);
			if (job) jobs.set(job.id, raised(job, input.rank, input.paced));
			break;
		}
		case "remove":
			jobs.delete(input.id);
			break;
		case "succeeded":
			jobs.delete(input.id);
			return { state: { ...state, jobs, refusals: 0 }, effects: [] };
		case "failed":
			return fail(state, input, now, limits);
		case "tick":
			break;
		default:
			return input satisfies never;
	}
	return { state: { ...state, jobs }, effects: [] };
}

function raised(job: PendingJob, rank: Rank, paced: boolean): PendingJob {
	const higher = RANKS.indexOf(rank) < RANKS.indexOf(job.rank) ? rank : job.rank;
	return { ...job, rank: higher, paced: job.paced && paced };
}

function fail(
	state: GateState,
	{ id, fault, retryAfterMs, random }: Extract<GateInput, { type: "failed" }>,
	now: number,
	limits: GateLimits,
): GateStep {
	const job = state.jobs.get(id);
	if (!job) return { state, effects: [] };
	const backoff = (failures: number) => backoffMs({ firstMs: limits.backoffMs, maxMs: limits.backoffMaxMs }, failures);
	const since = job.failingSince ?? now;
	const jobs = new Map(state.jobs);
	const effects: GateEffect[] = [];
	const retry = (waitMs: number, changes: Partial<PendingJob>) => {
		if (now + waitMs - since > limits.patienceMs[job.rank]) giveUp();
		else jobs.set(id, { ...job, running: false, failingSince: since, ...changes });
	};
	const giveUp = () => {
		jobs.delete(id);
		effects.push({ type: "give_up", id });
	};
	if (fault === "rate_limited") {
		// Calls that left together are refused together: that is one refusal, not many in a row.
		const known = now < state.blockedUntil;
		const waitMs = retryAfterMs ?? (known ? state.blockedUntil - now : backoff(state.refusals));
		const blockedUntil = Math.max(state.blockedUntil, now + waitMs);
		effects.push({ type: "rate_limited", retryAfterMs: waitMs });
		retry(waitMs, {});
		return { state: { ...state, jobs, blockedUntil, refusals: state.refusals + (known ? 0 : 1) }, effects };
	}
	const waitMs = retryAfterMs ?? backoff(job.failures) * (0.5 + random / 2);
	if (fault === "unavailable") retry(waitMs, { notBefore: now + waitMs, failures: job.failures + 1 });
	else giveUp();
	return { state: { ...state, jobs }, effects };
}

/** Starts what may start, in order of rank and then of arrival. */
function dispatch(state: GateState, effects: GateEffect[], now: number, limits: GateLimits): GateStep {
	const waiting = [...state.jobs.values()].filter((job) => !job.running);
	if (waiting.length === 0) return { state: tidy(state, now), effects };
	const busy = new Set([...state.jobs.values()].filter((job) => job.running).map((job) => job.lane));
	let running = state.jobs.size - waiting.length;
	waiting.sort((a, b) => RANKS.indexOf(a.rank) - RANKS.indexOf(b.rank));
	const jobs = new Map(state.jobs);
	const lanes = new Map(state.lanes);
	let { accountFreeAt } = state;
	const readyAt = ({ notBefore, paced, lane }: PendingJob) =>
		Math.max(notBefore, state.blockedUntil, accountFreeAt, paced ? (lanes.get(lane) ?? 0) : 0);
	for (const job of waiting) {
		if (running >= limits.callsMax || busy.has(job.lane) || readyAt(job) > now) continue;
		jobs.set(job.id, { ...job, running: true });
		lanes.set(job.lane, now + job.targetIntervalMs);
		accountFreeAt = now + (job.accountIntervalMs ?? 0);
		busy.add(job.lane);
		running++;
		effects.push({ type: "start", id: job.id });
	}
	// Only a job whose time is the obstacle needs a timer; the others are looked at when a running one ends.
	const timed = [...jobs.values()].filter((job) => !job.running && !busy.has(job.lane));
	const at = Math.min(...timed.map(readyAt));
	if (timed.length > 0 && at > now) effects.push({ type: "wake", at });
	return { state: tidy({ ...state, jobs, lanes, accountFreeAt }, now), effects };
}

const LANES_KEPT = 64;

/** Forgets lanes whose interval is over. */
function tidy(state: GateState, now: number): GateState {
	if (state.lanes.size <= LANES_KEPT) return state;
	return { ...state, lanes: new Map([...state.lanes].filter(([, freeAt]) => freeAt > now)) };
}
