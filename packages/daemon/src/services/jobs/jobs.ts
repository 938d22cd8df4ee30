/** Jobs: model calls that wait for their turn and survive the daemon. A restart resumes queued jobs, and retries running ones or settles them as crashed. */

import { NexusError, newId, toNexusError } from "@nexus-stream/protocol";
import { within } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { follow } from "../../bus/bus.ts";
import type { Write } from "../../std/write.ts";
import { type DurableLog, DurableWork, type DurableWorkDeps, stopping } from "../kit/durable-work.ts";
import { FairQueue, positionsOf } from "../kit/fair-queue.ts";
import type { Principal } from "../kit/principal.ts";
import type { AdmittedScenario, StoredScenario } from "../scenarios/port.ts";
import { type AttemptDeps, attempt, cutText, textSoFar } from "./attempt.ts";
import { LiveJob } from "./live-job.ts";
import { JOB_LIMITS, type Job, type JobLimits, type Jobs, type SubmitOptions } from "./port.ts";
import { JobReads, noJob } from "./reads.ts";
import { type JobRows, jobWrites } from "./rows.ts";
import {
	attemptsOf,
	ended,
	mayRetry,
	newJob,
	newRow,
	recordOf,
	retrying,
	retryPauseMs,
	running,
	storedJob,
	storedScenario,
	summary,
} from "./snapshot.ts";

export interface JobsDeps extends DurableWorkDeps, Omit<AttemptDeps, "limits"> {
	rows: DurableWorkDeps["rows"] & { jobs: JobRows };
	limits?: Partial<JobLimits>;
}

export const createJobs = (deps: JobsDeps): Jobs => new JobService(deps);

class JobService implements Jobs {
	readonly #deps: JobsDeps;
	readonly #limits: JobLimits;
	readonly #work: DurableWork;
	readonly #queue: FairQueue;
	readonly #reads: JobReads;
	readonly #live = new Map<string, LiveJob>();
	/** Nothing is started any more; then nothing is written. */
	#phase: "open" | "stopping" | "closed" = "open";
	/** How long to wait for a provider after its signal was aborted. */
	#graceMs: number;

	constructor(deps: JobsDeps) {
		const { rows, clock } = deps;
		this.#deps = deps;
		this.#limits = withDefaults(JOB_LIMITS, deps.limits);
		const { runningMax, runningPerAppMax, queuedMax, queuedPerAppMax, cancelGraceMs } = this.#limits;
		this.#graceMs = cancelGraceMs;
		const appOf = async (id: string) => (await rows.jobs.head(id))?.appId;
		this.#work = new DurableWork({ kind: "job", noun: "job", domain: "jobs", appOf }, deps);
		this.#queue = new FairQueue({
			clock,
			limits: { runningMax, runningPerAppMax, waitingMax: queuedMax, waitingPerAppMax: queuedPerAppMax },
			start: (id) => this.#start(this.#live.get(id)!),
		});
		this.#reads = new JobReads(rows.jobs, this.#queue, (job) => textSoFar(this.#attemptDeps, job));
	}

	get #attemptDeps(): AttemptDeps {
		return { ...this.#deps, limits: this.#limits };
	}

	get counts() {
		const { waiting: queued, running: begun } = this.#queue.counts;
		return { queued, running: begun };
	}

	find(id: string, principal: Principal) {
		return this.#reads.find(id, principal);
	}

	list(query: Parameters<Jobs["list"]>[0], principal: Principal) {
		return this.#reads.list(query, principal);
	}

	cursor(id: string, after: number | undefined, principal: Principal) {
		return this.#work.cursor(id, after, principal);
	}

	async submit(admitted: AdmittedScenario, options: SubmitOptions = {}): Promise<Job> {
		if (this.#phase !== "open") throw stopping();
		const scenario = storedScenario(admitted);
		const attempts = attemptsOf(options, this.#limits);
		const { appId } = scenario;
		const job = newJob(newId("job", this.#now()), scenario, attempts, this.#now());
		const request = { appId, key: options.idempotencyKey, body: { job: scenario, ...attempts }, result: job.id };
		const { id, log } = await this.#work.create(request, (commit) =>
			this.#queue.arriving(job.id, appId, "jobs", () =>
				commit({
					record: recordOf({ type: "submitted", at: job.createdAt, job }),
					writes: [newRow(job, scenario), this.#audited(job, admitted.caller)],
					// A workflow has the time that it takes.
					patienceMs: job.workflowId === undefined ? undefined : Number.POSITIVE_INFINITY,
				}),
			),
		);
		if (!log) return this.#reads.get(id);
		const live = this.#take(job, log);
		await this.#enqueue(live);
		// That it runs is not on record yet.
		return live.job.state === "running" ? job : live.job;
	}

	#take(job: Job, log: DurableLog): LiveJob {
		const live = new LiveJob(job, log, { ...this.#deps, progressMs: this.#limits.progressMs });
		this.#live.set(job.id, live);
		return live;
	}

	/** Starts it, or records that it waits, and behind how many. */
	async #enqueue(live: LiveJob, readyAt = 0): Promise<void> {
		const { id, appId, state } = live.job;
		if (live.canceled) return this.#end(live, live.canceled);
		this.#queue.step({ type: "wait", id, appId, readyAt });
		if (state !== "submitted" || this.#queue.state.running.has(id)) return;
		const queuePosition = positionsOf(this.#queue.state).get(id) ?? 0;
		await live.change("queued", { ...live.job, state: "queued", queuePosition, updatedAt: this.#now() });
	}

	#start(live: LiveJob): void {
		const begun = this.#run(live).finally(() => {
			if (live.attempt === begun) live.attempt = undefined;
		});
		live.attempt = begun;
	}

	/** One attempt, from its first record to its last. Never rejects. */
	async #run(live: LiveJob): Promise<void> {
		const stop = new AbortController();
		live.stop = stop;
		try {
			await live.change("running", running(live.job, this.#now()));
			if (live.canceled) stop.abort(live.canceled);
			const error = await this.#attempt(live, stop).catch((cause: unknown) => toNexusError(cause));
			live.quiet();
			if (this.#phase === "closed") return;
			if (error && !live.canceled && mayRetry(live.job, error)) await this.#retry(live, error);
			else {
				if (error?.reason === "STOPPING" && live.job.text === undefined) await this.#salvage(live);
				await this.#end(live, error);
			}
		} catch (cause) {
			this.#deps.log.error({ jobId: live.job.id, err: cause }, "a job could not be recorded");
			live.quiet();
			await this.#giveUp(live, toNexusError(cause));
		}
	}

	/** The store refused a record: the job ends as soon as it takes one again, or the next daemon finds it as it is on record. */
	async #giveUp(live: LiveJob, error: NexusError): Promise<void> {
		try {
			await this.#end(live, error);
		} catch (cause) {
			this.#forget(live);
			live.settled.reject(toNexusError(cause));
		}
	}

	async #attempt(live: LiveJob, stop: AbortController): Promise<undefined> {
		const { id } = live.job;
		const scenario = (await this.#deps.rows.jobs.scenario(id)) as StoredScenario | undefined;
		if (!scenario) throw new NexusError("data_loss", `there is no request of ${id}`);
		await attempt(this.#attemptDeps, {
			scenario,
			stop,
			graceMs: () => this.#graceMs,
			found: (findings) => live.progress(stop, findings),
			begins: (runId) => [jobWrites.change({ id, state: "running", job: { ...summary(live.job), runId } })],
		});
	}

	/** After the daemon's own stop the next one begins it, without a pause. */
	async #retry(live: LiveJob, error: NexusError): Promise<void> {
		const pauseMs = retryPauseMs(live.job, this.#limits.backoffMsMax);
		await live.change("retrying", retrying(live.job, error, false, this.#now()));
		await this.#enqueue(live, this.#now() + pauseMs);
	}

	async #end(live: LiveJob, error: NexusError | undefined): Promise<void> {
		const isCanceled = live.canceled !== undefined;
		const job = ended(live.job, error, isCanceled, this.#now());
		await live.end(job, this.#audited(job, live.canceledBy));
		this.#forget(live);
		live.settled.resolve(job);
	}

	#forget(live: LiveJob): void {
		this.#live.delete(live.job.id);
		this.#queue.step({ type: "leave", id: live.job.id });
	}

	#audited({ id, kind, attempt, ...job }: Job, caller?: string): Write {
		return this.#work.audited(job.state, { ...job, caller, payload: { job_id: id, kind, attempt } });
	}

	#now(): number {
		return this.#deps.clock.now();
	}

	/** Also while the daemon stops (P8.6): what waits is then ended as well as what runs. */
	async cancel(id: string, reason: string, principal: Principal): Promise<Job> {
		await this.#reads.row(id, principal);
		const live = this.#live.get(id);
		if (!live) {
			const { finishedAt } = await this.#reads.row(id, principal);
			if (finishedAt !== undefined) return this.settled(id);
			throw new NexusError("unavailable", `${id} is not run by this daemon: try again once it was taken over`);
		}
		live.canceled ??= new NexusError("aborted", reason === "" ? "it was cancelled" : `it was cancelled: ${reason}`);
		live.canceledBy ??= principal.address;
		if (live.stop) live.stop.abort(live.canceled);
		else if (this.#queue.state.waiting.some((job) => job.id === id)) {
			this.#queue.step({ type: "leave", id });
			await this.#end(live, live.canceled);
			return live.job;
		}
		return live.settled.promise;
	}

	async settled(id: string): Promise<Job> {
		const live = this.#live.get(id);
		if (live) return live.settled.promise;
		const { bus, rows } = this.#deps;
		const row = await rows.jobs.get(id);
		if (!row) throw noJob(id);
		if (row.finishedAt !== undefined) return storedJob(row);
		// Another daemon's.
		for await (const _ of follow(await bus.cursor({ log: id }, 0)));
		return this.settled(id);
	}

	/** Counts those that were running: they are settled, or begun again where their submitters allowed that. */
	recover(): Promise<number> {
		return this.#work.recover(async (id, reopen) => {
			const log = await reopen();
			const row = await this.#deps.rows.jobs.head(id);
			if (!row) throw new NexusError("data_loss", `there is no row of ${id}`);
			const live = this.#take(row.job as Job, log);
			await this.#resume(live).catch((cause: unknown) => this.#giveUp(live, toNexusError(cause)));
			return row.state === "running";
		});
	}

	async #resume(live: LiveJob): Promise<void> {
		const { job } = live;
		if (job.state !== "running") return this.#enqueue(live);
		if (job.attempt >= job.attemptsMax) {
			await this.#salvage(live);
			return this.#end(live, crashed());
		}
		await live.change("retrying", retrying(job, crashed(), true, this.#now()));
		return this.#enqueue(live);
	}

	/** Takes the text from the run's log, which may have more of it than the job's last record. */
	async #salvage(live: LiveJob): Promise<void> {
		try {
			live.job = { ...live.job, ...(await cutText(this.#attemptDeps, live.job)) };
		} catch (cause) {
			this.#deps.log.warn({ jobId: live.job.id, err: cause }, "what there was of a job's text could not be kept");
		}
	}

	async close(deadlineMs: number, graceMs = Infinity): Promise<void> {
		this.#phase = "stopping";
		this.#queue.close();
		const { clock } = this.#deps;
		const attempts = () => Promise.all([...this.#live.values()].flatMap(({ attempt }) => attempt ?? []));
		if (!(await within(clock, deadlineMs, attempts()))) {
			const lastMs = Math.min(graceMs, this.#limits.cancelGraceMs + RECORD_MS_MAX);
			// The rest is for the last records, also of those whose provider heeds nothing.
			this.#graceMs = Math.min(this.#limits.cancelGraceMs, Math.max(lastMs / 2, lastMs - RECORD_MS_MAX));
			for (const { stop } of this.#live.values()) stop?.abort(stopping());
			await within(clock, lastMs, attempts());
		}
		this.#phase = "closed";
		this.#work.close();
		for (const live of this.#live.values()) {
			live.quiet();
			live.settled.reject(stopping());
		}
	}
}

/** How long the last records may take once every attempt has ended. */
const RECORD_MS_MAX = 2000;

const crashed = () => new NexusError("crashed", "the daemon died while it ran");
