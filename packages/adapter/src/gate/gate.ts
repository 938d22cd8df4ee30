/** The rate gate of one account: every platform call waits here for its turn. The rules are in gate-step.ts; this owns the timer and the calls. */

import type { Clock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { PlatformError } from "../platform/platform-error.ts";
import type { Pace } from "../platform/session.ts";
import { EMPTY_GATE, GATE_LIMITS, type GateInput, type GateLimits, type Rank, stepGate } from "./gate-step.ts";

export interface GateJob {
	lane: string;
	rank: Rank;
	paced: boolean;
	pace(): Pace;
	/** Called at its turn, and again at its next turn when it failed in a way that passes. */
	run(): Promise<void>;
	/** It succeeded (undefined) or was given up. */
	settled(error: PlatformError | undefined): void;
}

export interface GateTicket {
	raise(rank: Rank, paced: boolean): void;
	/** A job that is running runs to its end but is no longer tried again. */
	cancel(): void;
}

export interface RateGate {
	request(job: GateJob): GateTicket;
	/** Resolves when no call is running. */
	quiet(): Promise<void>;
}

export interface GateOptions {
	clock: Clock;
	random(): number;
	onRateLimited(retryAfterMs: number): void;
	/** Resolves when the results can be reported; a slow listener slows the calls, not the memory. */
	ready(): Promise<void>;
	limits?: Partial<GateLimits>;
}

export function createGate(options: GateOptions): RateGate {
	const limits = withDefaults(GATE_LIMITS, options.limits);
	const { clock } = options;
	const jobs = new Map<number, GateJob>();
	const errors = new Map<number, PlatformError>();
	const quietWaiters: (() => void)[] = [];
	let state = EMPTY_GATE;
	let nextId = 1;
	let running = 0;
	let wake: { at: number; cancel(): void } | undefined;

	/** An early tick does no harm, a missed one would: only a nearer time replaces the timer. */
	function wakeAt(at: number): void {
		if (wake && wake.at <= at) return;
		wake?.cancel();
		const cancel = clock.after(Math.max(0, at - clock.now()), () => {
			wake = undefined;
			apply({ type: "tick" });
		});
		wake = { at, cancel };
	}

	function apply(input: GateInput): void {
		const step = stepGate(state, input, clock.now(), limits);
		state = step.state;
		for (const effect of step.effects) {
			switch (effect.type) {
				case "start":
					running++;
					void start(effect.id);
					break;
				case "give_up":
					settle(effect.id, errors.get(effect.id));
					break;
				case "rate_limited":
					options.onRateLimited(effect.retryAfterMs);
					break;
				case "wake":
					wakeAt(effect.at);
					break;
				default:
					effect satisfies never;
			}
		}
	}

	function settle(id: number, error: PlatformError | undefined): void {
		const job = jobs.get(id);
		jobs.delete(id);
		errors.delete(id);
		job?.settled(error);
	}

	async function start(id: number): Promise<void> {
		let error: PlatformError | undefined;
		try {
			await options.ready();
			await jobs.get(id)?.run();
		} catch (cause) {
			error = cause instanceof PlatformError ? cause : new PlatformError("invalid", String(cause), { cause });
		}
		running--;
		if (error) {
			errors.set(id, error);
			const { fault, retryAfterMs } = error;
			const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
			apply({ type: "failed", id, fault, random: options.random(), ...wait });
		} else {
			apply({ type: "succeeded", id });
			settle(id, undefined);
		}
		if (running === 0) for (const resolve of quietWaiters.splice(0)) resolve();
	}

	return {
		request(job) {
			const id = nextId++;
			const pace = job.pace();
			jobs.set(id, job);
			const intervals = { targetIntervalMs: pace.targetIntervalMs, accountIntervalMs: pace.accountIntervalMs ?? 0 };
			apply({ type: "add", job: { id, lane: job.lane, rank: job.rank, paced: job.paced, ...intervals } });
			return {
				raise: (rank, paced) => apply({ type: "raise", id, rank, paced }),
				cancel() {
					jobs.delete(id);
					errors.delete(id);
					if (!state.jobs.get(id)?.running) apply({ type: "remove", id });
				},
			};
		},
		quiet: () => (running === 0 ? Promise.resolve() : new Promise((resolve) => quietWaiters.push(resolve))),
	};
}
