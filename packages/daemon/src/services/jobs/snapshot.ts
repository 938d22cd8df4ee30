/** A job as it is shown and recorded, and the records of its log. */

import { type ErrorCode, NexusError, type Reason, reasonOf } from "@nexus-stream/protocol";
import { backoffMs } from "@nexus-stream/protocol/retry";
import type { Write } from "../../std/write.ts";
import type { AdmittedScenario, StoredScenario } from "../scenarios/port.ts";
import type { Findings } from "./attempt.ts";
import { BACKOFF_MS, type Job, type JobEvent, type JobLimits, type JobState, type SubmitOptions } from "./port.ts";
import { jobWrites } from "./rows.ts";

const TERMINAL: ReadonlySet<JobState> = new Set(["completed", "failed", "canceled", "timeout"]);
export const isTerminal = ({ state }: Pick<Job, "state">): boolean => TERMINAL.has(state);

/** Throws `precondition` for a request with its own key, which is never stored. */
export function storedScenario(admitted: AdmittedScenario): StoredScenario {
	const { appId, userId, spec, model, timeoutMs, source } = admitted;
	if ("inline" in source)
		throw new NexusError(
			"precondition",
			"a job may wait: create a connector instead of sending a key with the request",
		);
	const { id, appId: owner } = source.connector;
	return { appId, userId, spec, model, timeoutMs, connector: { id, appId: owner } };
}

export type Attempts = Pick<Job, "attemptsMax" | "backoffMs"> & Pick<SubmitOptions, "workflow">;

export function attemptsOf(options: SubmitOptions, limits: JobLimits): Attempts {
	const { attemptsMax = 1, backoffMs: pauseMs = BACKOFF_MS, workflow } = options;
	if (!Number.isInteger(attemptsMax) || attemptsMax < 0 || attemptsMax > limits.attemptsMax)
		throw new NexusError("invalid", `retry_max_attempts is from 0 to ${limits.attemptsMax}`);
	if (!Number.isInteger(pauseMs) || pauseMs < 0 || pauseMs > limits.backoffMsMax)
		throw new NexusError("invalid", `retry_backoff_ms is from 0 to ${limits.backoffMsMax}`);
	return { attemptsMax: Math.max(1, attemptsMax), backoffMs: pauseMs || BACKOFF_MS, workflow };
}

export const newJob = (
	id: string,
	{ appId, userId, spec, model, connector }: StoredScenario,
	{ workflow, ...attempts }: Attempts,
	now: number,
): Job => ({
	id,
	appId,
	userId,
	kind: spec.kind,
	connectorId: connector.id,
	model,
	state: "submitted",
	progress: -1,
	attempt: 1,
	...attempts,
	afterCrash: false,
	queuePosition: 0,
	createdAt: now,
	updatedAt: now,
	artifacts: [],
	demo: false,
	...workflow,
});

export const newRow = (job: Job, scenario: StoredScenario): Write => {
	const { id, appId, state, createdAt } = job;
	return jobWrites.submit({ id, appId, state, createdAt, job }, scenario);
};

export const recordOf = (event: JobEvent): string => JSON.stringify(event);
export const jobEventOf = (record: string): JobEvent => JSON.parse(record) as JobEvent;

/** A new attempt knows nothing of what the one before found. */
function begun({ runId: _, text: _text, embeddings: _embeddings, usage: _usage, error: _error, ...job }: Job): Job {
	return { ...job, artifacts: [], progress: -1 };
}

export const running = (job: Job, now: number): Job => ({
	...begun(job),
	state: "running",
	queuePosition: 0,
	startedAt: now,
	updatedAt: now,
});

const PASSING: readonly ErrorCode[] = ["engine_failed", "timeout", "unavailable", "busy"];

/** The daemon's own rules refuse it: they would refuse it again. */
const LASTING: readonly Reason[] = ["AI_ENDPOINT_FORBIDDEN", "QUOTA_EXCEEDED"];

/** Another attempt follows where the submitter allowed it, after a failure that may pass, or after the daemon's own stop. */
export const mayRetry = ({ attempt, attemptsMax }: Job, { code, reason = "UNSPECIFIED" }: NexusError): boolean =>
	attempt < attemptsMax && (reason === "STOPPING" || (PASSING.includes(code) && !LASTING.includes(reason)));

/** The pause before the attempt after this one: it doubles. */
export const retryPauseMs = ({ attempt, backoffMs: firstMs }: Job, maxMs: number): number =>
	backoffMs({ firstMs, maxMs }, attempt - 1);

export const retrying = (job: Job, error: NexusError, afterCrash: boolean, now: number): Job => ({
	...begun(job),
	state: "queued",
	attempt: job.attempt + 1,
	afterCrash,
	error: errorOf(error),
	updatedAt: now,
});

export const progressed = (job: Job, findings: Findings, now: number): Job => ({ ...job, ...findings, updatedAt: now });

const stateAfter = (error: NexusError, isCanceled: boolean): JobState => {
	if (isCanceled) return "canceled";
	return error.code === "timeout" ? "timeout" : "failed";
};

export function ended(job: Job, error: NexusError | undefined, isCanceled: boolean, now: number): Job {
	const over = { ...job, queuePosition: 0, updatedAt: now, finishedAt: now };
	if (error === undefined) {
		const { error: _, ...rest } = over;
		return { ...rest, state: "completed", progress: 100 };
	}
	return { ...over, state: stateAfter(error, isCanceled), error: errorOf(error) };
}

const MESSAGE_CHARS_MAX = 1000;

const errorOf = ({ code, message, reason }: NexusError): NonNullable<Job["error"]> => ({
	code,
	message: message.slice(0, MESSAGE_CHARS_MAX),
	reason: reason ?? reasonOf(code),
});

/** Without its result, which may be large: as lists show it, and as it is recorded until it has ended. */
export function summary({ text: _, embeddings: _embeddings, ...job }: Job): Job {
	return job;
}

export const resultOf = ({ text, embeddings }: Job): Pick<Job, "text" | "embeddings"> => ({
	...(text !== undefined && { text }),
	...(embeddings && { embeddings }),
});

export const storedJob = ({ job, result }: { job: unknown; result?: unknown }): Job => ({
	...(job as Job),
	...(result as Pick<Job, "text" | "embeddings"> | undefined),
});
