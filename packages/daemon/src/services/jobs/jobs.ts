/** Jobs: each is a row and a log that change in one commit. A restart resumes queued jobs, and retries running ones or settles them as crashed. */

import { NexusError, newId, reasonOfFailure, toNexusError } from "@nexus-stream/protocol";
import { type Clock, within } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Log } from "@nexus-stream/protocol/log";
import { ADMIT_MS_MAX, type Bus, follow } from "../../bus/bus.ts";
import type { Write } from "../../std/write.ts";
import type { Audit } from "../audit/port.ts";
import { once } from "../kit/once.ts";
import type { Principal } from "../kit/principal.ts";
import type { Quota } from "../kit/quota.ts";
import type { IdempotencyRows } from "../kit/rows.ts";
import type { AdmittedScenario } from "../scenarios/port.ts";
import { type AttemptDeps, type Findings, keepCutText, perform, textSoFar } from "./attempt.ts";
import { bounded } from "./bounded.ts";
import { BACKOFF_MS, JOB_LIMITS, type JobLimits } from "./limits.ts";
import { LiveJob, type LiveJobDeps } from "./live-job.ts";
import type { Job, Jobs, SubmitOptions } from "./port.ts";
import { type Readmit, readmission } from "./readmit.ts";
import { type JobReads, jobReads, noJob } from "./reads.ts";
import { mayRetry, retryPauseMs } from "./retry.ts";
import type { JobRows } from "./rows.ts";
import { jobWrites } from "./rows.ts";
import { EMPTY_SCHEDULE, positionsOf, type ScheduleInput, stepSchedule } from "./schedule.ts";
import {
	type Attempts,
	ended,
	type JobScenario,
	newJob,
	recordOf,
	retrying,
	running,
	storedJob,
	summary,
} from "./snapshot.ts";

export interface JobsDeps extends Omit<AttemptDeps, "limits"> {
	bus: Bus;
	rows: { jobs: JobRows; idempotency: IdempotencyRows };
	connectors: Parameters<typeof readmission>[0];
	clock: Clock;
	log: Log;
	limits?: Partial<JobLimits>;
	/** Audit entries that commit with a submission and with an end. */
	audit?: Audit;
	/** Left out: applications store what they like. */
	quota?: Pick<Quota, "holding">;
}

export const createJobs = (deps: JobsDeps): Jobs => new JobService(deps);

class JobService implements Jobs {
	readonly find: JobReads["find"];
	readonly list: JobReads["list"];
	readonly cursor: JobReads["cursor"];
	readonly #deps: JobsDeps;
	readonly #limits: JobLimits;
	readonly #reads: JobReads;
	readonly #readmit: Readmit;
	readonly #live = new Map<string, LiveJob>();
	readonly #liveDeps: LiveJobDeps;
	#schedule = EMPTY_SCHEDULE;
	#untick = () => {};
	/** The applications of those that are not durable yet. */
	readonly #arriving = new Map<string, string>();
	/** Nothing is started any more; then nothing is written. */
	#phase: "open" | "stopping" | "closed" = "open";
	/** How long to wait for a provider after its signal was aborted. */
	#graceMs: number;

	constructor(deps: JobsDeps) {
		this.#deps = deps;
		this.#limits = withDefaults(JOB_LIMITS, deps.limits);
		this.#graceMs = this.#limits.cancelGraceMs;
		this.#readmit = readmission(deps.connectors);
		this.#reads = jobReads({ ...deps, textOf: (job) => textSoFar(this.#attemptDeps, job) }, () => this.#schedule);
		const { bus, clock, log } = deps;
		const { progressMs } = this.#limits;
		this.#liveDeps = { bus, clock, log, progressMs, closed: () => this.#phase === "closed" };
		({ find: this.find, list: this.list, cursor: this.cursor } = this.#reads);
	}

	get #attemptDeps(): AttemptDeps {
		return { ...this.#deps, limits: this.#limits };
	}

	get counts() {
		return { queued: this.#schedule.waiting.length, running: this.#schedule.running.size };
	}

	async submit(admitted: AdmittedScenario, options: SubmitOptions = {}): Promise<Job> {
		if (this.#phase !== "open") throw stopping();
		const scenario = scenarioOf(admitted);
		const attempts = attemptsOf(options, this.#limits);
		const { appId } = scenario;
		const id = newId("job", this.#now());
		const request = { appId, key: options.idempotencyKey, body: { job: scenario, ...attempts }, result: id };
		const made = await once(this.#deps, request, async (claim) => {
			this.#admit(appId);
			this.#arriving.set(id, appId);
			try {
				const job = newJob(id, admitted, scenario.connector.id, attempts, this.#now());
				const create = () => this.#create(job, scenario, [...claim, ...this.#auditWrites(job, admitted.caller)]);
				const { quota } = this.#deps;
				await (quota ? quota.holding(appId, Buffer.byteLength(JSON.stringify(scenario)), create) : create());
			} finally {
				this.#arriving.delete(id);
			}
		});
		const live = made.isFirst ? this.#live.get(id) : undefined;
		if (live) await this.#queue(live);
		const job = await this.find(made.id, { owner: true, address: "", isPrivate: true });
		if (!job) throw noJob(made.id);
		return job;
	}

	#admit(appId: string): void {
		const { queuedMax, queuedPerAppMax } = this.#limits;
		const apps = [...this.#arriving.values(), ...this.#schedule.waiting.map((job) => job.appId)];
		if (apps.length >= queuedMax) throw full(`${queuedMax} jobs wait already`);
		if (apps.filter((app) => app === appId).length >= queuedPerAppMax)
			throw full(`${queuedPerAppMax} jobs of ${appId} wait already`);
	}

	async #create(job: Job, scenario: JobScenario, writes: readonly Write[]): Promise<void> {
		const { id, appId, state, createdAt } = job;
		const row = jobWrites.submit({ id, appId, state, createdAt, job }, scenario);
		const first = recordOf({ type: "submitted", at: createdAt, job });
		const writer = await this.#deps.bus.create({ log: id, kind: "job", countedFor: appId }, [first], {
			with: [row, ...writes],
			// A workflow has the time that it takes.
			patienceMs: job.workflowId === undefined ? ADMIT_MS_MAX : undefined,
		});
		this.#live.set(id, new LiveJob(job, writer, this.#liveDeps));
	}

	/** Starts it, or has it say that it waits, and behind how many. */
	async #queue(live: LiveJob, readyAt = 0): Promise<void> {
		const { id, appId, state } = live.job;
		if (live.canceled) return this.#end(live, live.canceled);
		this.#step({ type: "wait", id, appId, readyAt });
		if (state !== "submitted" || this.#schedule.running.has(id)) return;
		const queuePosition = positionsOf(this.#schedule).get(id) ?? 0;
		await live.change("queued", { ...live.job, state: "queued", queuePosition, updatedAt: this.#now() });
	}

	#step(input: ScheduleInput): void {
		// Queued jobs stay queued for the next daemon.
		const limits = this.#phase === "open" ? this.#limits : { runningMax: 0, runningPerAppMax: 0 };
		const { schedule, starts, tickAt } = stepSchedule(this.#schedule, input, this.#now(), limits);
		this.#schedule = schedule;
		this.#untick();
		if (tickAt !== undefined && this.#phase === "open")
			this.#untick = this.#deps.clock.after(tickAt - this.#now(), () => this.#step({ type: "tick" }));
		for (const id of starts) {
			const live = this.#live.get(id)!;
			const attempt = this.#run(live).finally(() => {
				if (live.attempt === attempt) live.attempt = undefined;
			});
			live.attempt = attempt;
		}
	}

	/** One attempt, from its first record to its last. Never rejects. */
	async #run(live: LiveJob): Promise<void> {
		const stop = new AbortController();
		live.stop = stop;
		try {
			await live.change("running", running(live.job, this.#now()));
			if (live.canceled) stop.abort(live.canceled);
			const error = await this.#attempt(live, stop).then(
				() => undefined,
				(cause: unknown) => toNexusError(cause),
			);
			live.quiet();
			if (this.#phase === "closed") return;
			if (error && !live.canceled && this.#mayRetry(live.job, error)) await this.#retry(live, error);
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

	/** An attempt that the daemon's own stop cut off is made again wherever the submitter allows another. */
	#mayRetry(job: Job, error: NexusError): boolean {
		return mayRetry(job, error) || (error.reason === "STOPPING" && job.attempt < job.attemptsMax);
	}

	async #attempt(live: LiveJob, stop: AbortController): Promise<void> {
		const { cancelGraceMs } = this.#limits;
		const { id } = live.job;
		const scenario = (await this.#deps.rows.jobs.scenario(id)) as JobScenario | undefined;
		if (!scenario) throw new NexusError("data_loss", `there is no request of ${id}`);
		const { timeoutMs, spec } = scenario;
		// A run has the same limit itself, and its log should be what says so.
		const limitMs = spec.kind === "text" || spec.kind === "speech" ? timeoutMs + cancelGraceMs : timeoutMs;
		const work = async () => {
			const admitted = await this.#readmit(scenario);
			stop.signal.throwIfAborted();
			await perform(this.#attemptDeps, {
				admitted,
				signal: stop.signal,
				found: (findings) => live.progress(stop, findings),
				begins: (runId) => [jobWrites.change({ id, state: "running", job: { ...summary(live.job), runId } })],
			});
		};
		await bounded(work(), { clock: this.#deps.clock, limitMs, graceMs: () => this.#graceMs, stop });
	}

	/** After the daemon's own stop the next one begins it, without a pause. */
	async #retry(live: LiveJob, error: NexusError): Promise<void> {
		const pauseMs = retryPauseMs(live.job, this.#limits.backoffMsMax);
		await live.change("retrying", retrying(live.job, error, false, this.#now()));
		await this.#queue(live, this.#now() + pauseMs);
	}

	async #end(live: LiveJob, error: NexusError | undefined): Promise<void> {
		const isCanceled = live.canceled !== undefined;
		const job = ended(live.job, error, isCanceled, this.#now());
		await live.end(job, this.#auditWrites(job, live.canceledBy));
		this.#forget(live);
		live.settled.resolve(job);
	}

	#forget(live: LiveJob): void {
		this.#live.delete(live.job.id);
		this.#step({ type: "leave", id: live.job.id });
	}

	#auditWrites({ id, appId, userId, kind, state, error, attempt }: Job, caller?: string): Write[] {
		const { audit } = this.#deps;
		if (!audit) return [];
		return [
			audit({
				domain: "jobs",
				operation: state,
				appId,
				userId: userId || undefined,
				reason: error && reasonOfFailure(error),
				caller,
				payload: { job_id: id, kind, attempt },
			}),
		];
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
		else if (this.#schedule.waiting.some((job) => job.id === id)) {
			this.#step({ type: "leave", id });
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

	async recover(): Promise<number> {
		const { bus, log } = this.#deps;
		const left = await bus.list({ kind: "job", orphaned: true });
		let settled = 0;
		for (const { log: id } of left.toReversed()) {
			try {
				if (await this.#takeOver(id)) settled++;
			} catch (cause) {
				log.error({ jobId: id, err: cause }, "a job of the last process could not be taken over");
			}
		}
		return settled;
	}

	/** True when it was running: then it is settled, or begun again where its submitter allowed that. */
	async #takeOver(id: string): Promise<boolean> {
		const { bus, rows } = this.#deps;
		const writer = await bus.reopen(id);
		const row = await rows.jobs.head(id);
		if (!row) throw new NexusError("data_loss", `there is no row of ${id}`);
		const job = row.job as Job;
		const live = new LiveJob(job, writer, this.#liveDeps);
		this.#live.set(id, live);
		await this.#resume(live).catch((cause: unknown) => this.#giveUp(live, toNexusError(cause)));
		return job.state === "running";
	}

	async #resume(live: LiveJob): Promise<void> {
		const { job } = live;
		if (job.state !== "running") return this.#queue(live);
		if (job.attempt >= job.attemptsMax) {
			await this.#salvage(live);
			return this.#end(live, crashed());
		}
		await live.change("retrying", retrying(job, crashed(), true, this.#now()));
		return this.#queue(live);
	}

	/** Takes the text from the run's log, which may have more of it than the job's last record. */
	async #salvage(live: LiveJob): Promise<void> {
		const { log } = this.#deps;
		const found = (findings: Findings) => {
			live.job = { ...live.job, ...findings };
		};
		try {
			await keepCutText(this.#attemptDeps, live.job, found);
		} catch (cause) {
			log.warn({ jobId: live.job.id, err: cause }, "what there was of a job's text could not be kept");
		}
	}

	async close(deadlineMs: number, graceMs = Infinity): Promise<void> {
		this.#phase = "stopping";
		this.#untick();
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
		for (const live of this.#live.values()) {
			live.quiet();
			live.settled.reject(stopping());
		}
	}
}

function scenarioOf({ appId, userId, spec, model, timeoutMs, source }: AdmittedScenario): JobScenario {
	if ("inline" in source)
		throw new NexusError(
			"precondition",
			"a job may wait: create a connector instead of sending a key with the request",
		);
	const { id, appId: owner } = source.connector;
	return { appId, userId, spec, model, timeoutMs, connector: { id, appId: owner } };
}

function attemptsOf({ attemptsMax = 1, backoffMs = BACKOFF_MS, workflow }: SubmitOptions, limits: JobLimits): Attempts {
	if (!Number.isInteger(attemptsMax) || attemptsMax < 0 || attemptsMax > limits.attemptsMax)
		throw new NexusError("invalid", `retry_max_attempts is from 0 to ${limits.attemptsMax}`);
	if (!Number.isInteger(backoffMs) || backoffMs < 0 || backoffMs > limits.backoffMsMax)
		throw new NexusError("invalid", `retry_backoff_ms is from 0 to ${limits.backoffMsMax}`);
	return { attemptsMax: Math.max(1, attemptsMax), backoffMs: backoffMs || BACKOFF_MS, workflow };
}

/** How long the last records may take once every attempt has ended. */
const RECORD_MS_MAX = 2000;

const full = (what: string) => new NexusError("busy", `${what}: try later`);
const stopping = () => new NexusError("unavailable", "the daemon is stopping", { reason: "STOPPING" });
const crashed = () => new NexusError("crashed", "the daemon died while it ran");
