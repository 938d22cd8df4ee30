/** Jobs: model calls that are submitted, wait their turn, survive the daemon, and can be watched. */

import type { Cursor } from "../../bus/bus.ts";
import type { ArtifactInfo } from "../artifacts/port.ts";
import type { ScenarioKind } from "../connectors/port.ts";
import type { Principal } from "../kit/principal.ts";
import type { AdmittedScenario } from "../scenarios/port.ts";

export type JobState = "submitted" | "queued" | "running" | "completed" | "failed" | "canceled" | "timeout";

export interface Job {
	id: string;
	appId: string;
	userId: string;
	kind: ScenarioKind;
	connectorId: string;
	model: string;
	state: JobState;
	error?: { code: string; message: string; reason?: string };
	/** -1: not known. */
	progress: number;
	attempt: number;
	attemptsMax: number;
	backoffMs: number;
	afterCrash: boolean;
	queuePosition: number;
	createdAt: number;
	startedAt?: number;
	updatedAt: number;
	finishedAt?: number;
	usage?: { input: number; output: number };
	/** The scenario run of a text or of speech. */
	runId?: string;
	text?: string;
	artifacts: readonly ArtifactInfo[];
	embeddings?: readonly (readonly number[])[];
	workflowId?: string;
	nodeId?: string;
	demo: boolean;
}

/** A record of a job's log: what happened, and the job as it was then. */
export interface JobEvent {
	type: "submitted" | "queued" | "running" | "progress" | "retrying" | "completed" | "failed" | "canceled" | "timeout";
	at: number;
	job: Job;
}

export interface SubmitOptions {
	idempotencyKey?: string;
	attemptsMax?: number;
	backoffMs?: number;
	workflow?: { workflowId: string; nodeId: string };
}

export interface Jobs {
	submit(admitted: AdmittedScenario, options?: SubmitOptions): Promise<Job>;
	find(id: string, principal: Principal): Promise<Job | undefined>;
	/** Cancelling what has ended changes nothing. */
	cancel(id: string, reason: string, principal: Principal): Promise<Job>;
	list(
		query: { appId?: string; states?: readonly JobState[]; limit: number; before?: string },
		principal: Principal,
	): Promise<{ jobs: Job[]; queued: number; running: number }>;
	/** `after` undefined: the newest record, then what follows. */
	cursor(id: string, after: number | undefined, principal: Principal): Promise<Cursor>;
	/** Resolves with the job once it is terminal. */
	settled(id: string): Promise<Job>;
	/** Resumes or settles the jobs that a dead daemon left. */
	recover(): Promise<number>;
	readonly counts: { queued: number; running: number };
	/** Stops the jobs that have not ended at the deadline, and waits for them no longer than `graceMs` (I12). */
	close(deadlineMs: number, graceMs?: number): Promise<void>;
}

export const JOB_LIMITS = {
	/** Jobs that run at a time, of all applications and of one. */
	runningMax: 8,
	runningPerAppMax: 4,
	/** Jobs that wait, of all applications and of one; further ones are refused. */
	queuedMax: 1000,
	queuedPerAppMax: 250,
	/** Attempts that a submitter may ask for. */
	attemptsMax: 10,
	/** The longest pause between two of them. */
	backoffMsMax: 5 * 60_000,
	/** A provider that does not heed a cancellation is waited for so long. */
	cancelGraceMs: 5000,
	/** Progress is recorded at most so often. */
	progressMs: 1000,
	/** A larger text or larger embeddings become an artifact. */
	inlineBytesMax: 256 * 1024,
	/** Size of a recording to transcribe. */
	audioBytesMax: 25 * 1024 * 1024,
};

export type JobLimits = typeof JOB_LIMITS;

/** The first pause between two attempts when the submitter names none. */
export const BACKOFF_MS = 1000;
