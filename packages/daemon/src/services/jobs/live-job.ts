/** A job that this daemon writes: its snapshot, and its records one after another, each in one commit with its row. */

import type { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Write } from "../../std/write.ts";
import type { DurableLog } from "../kit/durable-work.ts";
import type { Findings } from "./attempt.ts";
import type { Job, JobEvent } from "./port.ts";
import { jobWrites } from "./rows.ts";
import { progressed, recordOf, resultOf, summary } from "./snapshot.ts";

export interface LiveJobDeps {
	clock: Clock;
	log: Log;
	progressMs: number;
}

export class LiveJob {
	/** The job without its request, which is read when it runs: many jobs may wait. */
	job: Job;
	/** Stops the running attempt. */
	stop: AbortController | undefined;
	/** The attempt, until all of it is recorded. */
	attempt: Promise<void> | undefined;
	/** The reason for the cancellation, once it was requested. */
	canceled: NexusError | undefined;
	/** For the audit log. */
	canceledBy: string | undefined;
	readonly settled = Promise.withResolvers<Job>();
	readonly #deps: LiveJobDeps;
	readonly #log: DurableLog;
	/** When the newest record was made. */
	#progressAt = 0;
	#untell = () => {};

	constructor(job: Job, log: DurableLog, deps: LiveJobDeps) {
		this.job = job;
		this.#log = log;
		this.#deps = deps;
		// Not everybody waits for it.
		this.settled.promise.catch(() => {});
	}

	/** Resolves once it is durable. In the order of calls. */
	change(type: JobEvent["type"], job: Job): Promise<void> {
		this.job = job;
		this.#progressAt = this.#deps.clock.now();
		const told = summary(job);
		const { id, state } = told;
		const record = recordOf({ type, at: told.updatedAt, job: told });
		return this.#log.change([record], [jobWrites.change({ id, state, job: told })]);
	}

	/** Takes an attempt's results. Recorded at most once in an interval; the newest snapshot counts. */
	progress(stop: AbortController, findings: Findings): void {
		// An attempt that was given up tells nothing any more.
		if (this.stop !== stop) return;
		const { clock, progressMs } = this.#deps;
		this.job = progressed(this.job, findings, clock.now());
		this.#untell();
		if (findings.runId !== undefined) this.#tell();
		else this.#untell = clock.after(Math.max(0, this.#progressAt + progressMs - clock.now()), () => this.#tell());
	}

	#tell(): void {
		const { log } = this.#deps;
		this.change("progress", this.job).catch((cause: unknown) => {
			log.warn({ jobId: this.job.id, err: cause }, "a job's progress could not be recorded");
		});
	}

	/** From here on its attempt changes nothing. */
	quiet(): void {
		this.#untell();
		this.stop = undefined;
	}

	/** The last record. */
	end(job: Job, audited: Write): Promise<void> {
		const { id, state, finishedAt } = job;
		this.job = job;
		const change = jobWrites.change({ id, state, job: summary(job), result: resultOf(job), finishedAt });
		// A terminal state is its event's name.
		return this.#log.save([recordOf({ type: state, at: job.updatedAt, job })], [change, audited], true);
	}
}
