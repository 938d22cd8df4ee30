/** The rate gate of one account: every platform call waits here for its turn. The rules are in gate-step.ts; this owns the timer and the calls. */

import type { Clock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { PlatformError } from "../platform/platform-error.ts";
import {
	EMPTY_GATE,
	GATE_LIMITS,
	type GateInput,
	type GateLimits,
	type JobRequest,
	type Rank,
	stepGate,
} from "./gate-step.ts";

export interface GateJob extends Omit<JobRequest, "id"> {
	/** Called at its turn, and again at its next turn when it failed in a way that passes. */
	run(): Promise<void>;
	/** It succeeded (undefined) or was given up. */
	settled(error: PlatformError | undefined): void;
}

export interface GateTicket {
	raise(rank: Rank, paced: boolean): void;
	/** A running job finishes its attempt, but is not retried. */
	cancel(): void;
}

export interface GateOptions {
	clock: Clock;
	random(): number;
	onRateLimited(retryAfterMs: number): void;
	/** Resolves when the results can be reported; a slow listener slows the calls, not the memory. */
	ready(): Promise<void>;
	limits?: Partial<GateLimits>;
}

export class RateGate {
	readonly #options: GateOptions;
	readonly #limits: GateLimits;
	readonly #jobs = new Map<number, Pick<GateJob, "run" | "settled">>();
	readonly #quietWaiters: (() => void)[] = [];
	#state = EMPTY_GATE;
	#nextId = 1;
	#running = 0;
	#wake: { at: number; cancel(): void } | undefined;

	constructor(options: GateOptions) {
		this.#options = options;
		this.#limits = withDefaults(GATE_LIMITS, options.limits);
	}

	request({ run, settled, ...job }: GateJob): GateTicket {
		const id = this.#nextId++;
		this.#jobs.set(id, { run, settled });
		this.#apply({ type: "add", job: { ...job, id } });
		return {
			raise: (rank, paced) => this.#apply({ type: "raise", id, rank, paced }),
			cancel: () => {
				this.#jobs.delete(id);
				if (!this.#state.jobs.get(id)?.running) this.#apply({ type: "remove", id });
			},
		};
	}

	/** Resolves when no call is running. */
	quiet(): Promise<void> {
		return this.#running === 0 ? Promise.resolve() : new Promise((resolve) => this.#quietWaiters.push(resolve));
	}

	/** An early tick does no harm, a missed one would: only an earlier time replaces the timer. */
	#wakeAt(at: number): void {
		if (this.#wake && this.#wake.at <= at) return;
		this.#wake?.cancel();
		const { clock } = this.#options;
		const cancel = clock.after(Math.max(0, at - clock.now()), () => {
			this.#wake = undefined;
			this.#apply({ type: "tick" });
		});
		this.#wake = { at, cancel };
	}

	/** `error`: why the input's job failed. */
	#apply(input: GateInput, error?: PlatformError): void {
		const step = stepGate(this.#state, input, this.#options.clock.now(), this.#limits);
		this.#state = step.state;
		for (const effect of step.effects) {
			if (effect.type === "start") void this.#start(effect.id);
			else if (effect.type === "give_up") this.#settle(effect.id, error);
			else if (effect.type === "rate_limited") this.#options.onRateLimited(effect.retryAfterMs);
			else this.#wakeAt(effect.at);
		}
	}

	#settle(id: number, error?: PlatformError): void {
		const job = this.#jobs.get(id);
		this.#jobs.delete(id);
		job?.settled(error);
	}

	async #start(id: number): Promise<void> {
		this.#running++;
		const error = await this.#run(id);
		this.#running--;
		if (error) {
			const { fault, retryAfterMs } = error;
			this.#apply({ type: "failed", id, fault, random: this.#options.random(), retryAfterMs }, error);
		} else {
			this.#apply({ type: "succeeded", id });
			this.#settle(id);
		}
		if (this.#running === 0) for (const resolve of this.#quietWaiters.splice(0)) resolve();
	}

	async #run(id: number): Promise<PlatformError | undefined> {
		try {
			await this.#options.ready();
			await this.#jobs.get(id)?.run();
			return undefined;
		} catch (cause) {
			return cause instanceof PlatformError ? cause : new PlatformError("invalid", String(cause), { cause });
		}
	}
}
