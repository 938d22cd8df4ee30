/** A job as it is shown and recorded, and the records of its log. */

import { type NexusError, reasonOf } from "@nexus-stream/protocol";
import type { AdmittedScenario, ScenarioSpec } from "../scenarios/port.ts";
import type { Findings } from "./attempt.ts";
import type { Job, JobEvent, JobState } from "./port.ts";

/** Stored form of an admitted scenario. The connector is looked up again when the job runs; its key is never stored here. */
export interface JobScenario {
	appId: string;
	userId: string;
	spec: ScenarioSpec;
	model: string;
	timeoutMs: number;
	connector: { id: string; appId?: string };
}

const TERMINAL: ReadonlySet<JobState> = new Set(["completed", "failed", "canceled", "timeout"]);
export const isTerminal = ({ state }: Pick<Job, "state">): boolean => TERMINAL.has(state);

export interface Attempts {
	attemptsMax: number;
	backoffMs: number;
	workflow?: { workflowId: string; nodeId: string };
}

export const newJob = (
	id: string,
	{ appId, userId, spec, model }: AdmittedScenario,
	connectorId: string,
	{ attemptsMax, backoffMs, workflow }: Attempts,
	now: number,
): Job => ({
	id,
	appId,
	userId,
	kind: spec.kind,
	connectorId,
	model,
	state: "submitted",
	progress: -1,
	attempt: 1,
	attemptsMax,
	backoffMs,
	afterCrash: false,
	queuePosition: 0,
	createdAt: now,
	updatedAt: now,
	artifacts: [],
	demo: false,
	...workflow,
});

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

/** Waits for its next attempt. */
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

/** As it is on record. */
export const storedJob = ({ job, result }: { job: unknown; result?: unknown }): Job => ({
	...(job as Job),
	...(result as Pick<Job, "text" | "embeddings"> | undefined),
});
