/** Workflows and jobs as lists, as a value, and their states in words. */

import {
	ScenarioJobState as JobState,
	type ScenarioJob,
	ScenarioType,
} from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { ReasonCode } from "@nexus-stream/client/gen/nexus/runtime/v1/common_pb";
import { type Workflow, WorkflowState } from "@nexus-stream/client/gen/nexus/runtime/v1/workflow_pb";
import type { Words } from "../adapters/channels.ts";

export interface WorkflowsView {
	readonly phase: "loading" | "ready" | "failed";
	/** Why what is shown may be old. */
	readonly failure?: string;
	readonly workflows: readonly Workflow[];
	readonly jobs: readonly ScenarioJob[];
	/** Jobs of this daemon, also those that are not listed. */
	readonly queued: number;
	readonly running: number;
	/** Jobs and workflows that are being canceled. */
	readonly canceling: ReadonlySet<string>;
	readonly notice?: string;
}

export const NEW_WORKFLOWS: WorkflowsView = {
	phase: "loading",
	workflows: [],
	jobs: [],
	queued: 0,
	running: 0,
	canceling: new Set(),
};

const UNKNOWN: Words = { tone: "quiet", text: "Unknown" };

const WORDS: Readonly<Partial<Record<WorkflowState, Words>>> = {
	[WorkflowState.ACCEPTED]: { tone: "quiet", text: "Waiting" },
	[WorkflowState.QUEUED]: { tone: "quiet", text: "Queued" },
	[WorkflowState.RUNNING]: { tone: "live", text: "Running" },
	[WorkflowState.COMPLETED]: { tone: "good", text: "Done" },
	[WorkflowState.FAILED]: { tone: "bad", text: "Failed" },
	[WorkflowState.CANCELED]: { tone: "quiet", text: "Canceled" },
	[WorkflowState.SKIPPED]: { tone: "quiet", text: "Skipped" },
};

const JOB_WORDS: Readonly<Partial<Record<JobState, Words>>> = {
	[JobState.SUBMITTED]: { tone: "quiet", text: "Queued" },
	[JobState.QUEUED]: { tone: "quiet", text: "Queued" },
	[JobState.RUNNING]: { tone: "live", text: "Running" },
	[JobState.COMPLETED]: { tone: "good", text: "Done" },
	[JobState.FAILED]: { tone: "bad", text: "Failed" },
	[JobState.CANCELED]: { tone: "quiet", text: "Canceled" },
	[JobState.TIMEOUT]: { tone: "bad", text: "Timed out" },
};

const INTERRUPTED: Words = { tone: "bad", text: "Interrupted" };

/** Of a workflow, or of one of its nodes. */
export const stateWords = ({ state, reasonCode }: Pick<Workflow, "state" | "reasonCode">): Words =>
	state === WorkflowState.FAILED && reasonCode === ReasonCode.CRASHED ? INTERRUPTED : (WORDS[state] ?? UNKNOWN);

const OVER: ReadonlySet<WorkflowState> = new Set([
	WorkflowState.COMPLETED,
	WorkflowState.FAILED,
	WorkflowState.CANCELED,
	WorkflowState.SKIPPED,
]);

export const isOver = ({ state }: Pick<Workflow, "state">): boolean => OVER.has(state);

const JOBS_OVER: ReadonlySet<JobState> = new Set([
	JobState.COMPLETED,
	JobState.FAILED,
	JobState.CANCELED,
	JobState.TIMEOUT,
]);

export const isJobOver = ({ state }: Pick<ScenarioJob, "state">): boolean => JOBS_OVER.has(state);

export const jobWords = ({ state, reasonCode }: Pick<ScenarioJob, "state" | "reasonCode">): Words =>
	state === JobState.FAILED && reasonCode === ReasonCode.CRASHED ? INTERRUPTED : (JOB_WORDS[state] ?? UNKNOWN);

/** Adds queue position, progress and attempt to a job's state. */
export function jobDetail(job: ScenarioJob): string {
	const { state, queuePosition, progressPercent, attempt, retryMaxAttempts } = job;
	const parts = [
		state === JobState.QUEUED && queuePosition > 0 && `${queuePosition} before it`,
		state === JobState.RUNNING && progressPercent > 0 && `${progressPercent} %`,
		attempt > 1 && `attempt ${attempt} of ${retryMaxAttempts}`,
		job.afterCrash && "after a crash",
	];
	return parts.filter(Boolean).join(" · ");
}

export const KIND_WORDS: Readonly<Partial<Record<ScenarioType, string>>> = {
	[ScenarioType.TEXT_GENERATE]: "Text",
	[ScenarioType.SPEECH_SYNTHESIZE]: "Speech",
	[ScenarioType.IMAGE_GENERATE]: "Image",
	[ScenarioType.TEXT_EMBED]: "Embedding",
	[ScenarioType.SPEECH_TRANSCRIBE]: "Transcription",
};

const BUSY_EVERY_MS = 500;
const EVERY_MS = 3000;

/** Milliseconds until the lists are read again. */
export const pollDelay = ({ workflows, queued, running }: WorkflowsView): number =>
	queued + running > 0 || workflows.some((workflow) => !isOver(workflow)) ? BUSY_EVERY_MS : EVERY_MS;

const UNITS = ["bytes", "KiB", "MiB", "GiB"];

export function sizeText(bytes: number): string {
	const step = Math.min(UNITS.length - 1, bytes < 1 ? 0 : Math.floor(Math.log2(bytes) / 10));
	const value = bytes / 1024 ** step;
	return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[step]}`;
}

/** Where an artifact is downloaded. */
export const artifactPath = (artifactId: string): string => `/v1/artifacts/${encodeURIComponent(artifactId)}`;
