/** Workflows and jobs as lists, as a value, and their states in words. */

import type { JobJson, WorkflowErrorJson, WorkflowJson, WorkflowState } from "@nexus-stream/protocol";
import type { Words } from "../adapters/channels.ts";

export interface WorkflowsView {
	readonly phase: "loading" | "ready" | "failed";
	/** Why what is shown may be old. */
	readonly failure?: string;
	readonly workflows: readonly WorkflowJson[];
	readonly jobs: readonly JobJson[];
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

const WORDS: Readonly<Record<WorkflowState, Words>> = {
	accepted: { tone: "quiet", text: "Waiting" },
	queued: { tone: "quiet", text: "Queued" },
	running: { tone: "live", text: "Running" },
	completed: { tone: "good", text: "Done" },
	failed: { tone: "bad", text: "Failed" },
	canceled: { tone: "quiet", text: "Canceled" },
	skipped: { tone: "quiet", text: "Skipped" },
};

const INTERRUPTED: Words = { tone: "bad", text: "Interrupted" };

/** Of a workflow, or of one of its nodes. */
export const stateWords = ({ state, error }: { state: WorkflowState; error?: WorkflowErrorJson }): Words =>
	state === "failed" && error?.code === "crashed" ? INTERRUPTED : WORDS[state];

const OVER: ReadonlySet<string> = new Set(["completed", "failed", "canceled", "skipped", "timeout"]);

export const isOver = ({ state }: { state: WorkflowState | JobJson["state"] }): boolean => OVER.has(state);

export function jobWords(job: JobJson): Words {
	if (job.state === "submitted") return WORDS.queued;
	if (job.state === "timeout") return { tone: "bad", text: "Timed out" };
	return stateWords({ state: job.state, error: job.error });
}

/** What there is to add to a job's state. */
export function jobDetail(job: JobJson): string {
	const { state, queue_position: before, progress_percent: percent, attempt, attempts_max: most } = job;
	const parts = [
		state === "queued" && before > 0 && `${before} before it`,
		state === "running" && percent > 0 && `${percent} %`,
		attempt > 1 && `attempt ${attempt} of ${most}`,
		job.after_crash && "after a crash",
	];
	return parts.filter(Boolean).join(" · ");
}

export const KIND_WORDS: Readonly<Record<JobJson["kind"], string>> = {
	text: "Text",
	speech: "Speech",
	image: "Image",
	embed: "Embedding",
	transcribe: "Transcription",
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
