/** The page of workflows and jobs: its state, its load and its actions; and their states in words. */

import type { JobJson, WorkflowErrorJson, WorkflowJson, WorkflowState } from "@nexus-stream/protocol";
import { api } from "../app/api.ts";
import type { ListView } from "../ui/list-page.tsx";
import { createPage, type Page, type PageContext, type PageState } from "../ui/page.ts";
import type { Words } from "../ui/status.tsx";

export interface WorkflowsView extends ListView {
	readonly workflows: readonly WorkflowJson[];
	readonly jobs: readonly JobJson[];
	/** Counts of all jobs of this daemon, including jobs that are not listed. */
	readonly queued: number;
	readonly running: number;
	/** Ids of jobs and workflows whose cancellation is in flight. */
	readonly canceling: ReadonlySet<string>;
}

export const NEW_WORKFLOWS: WorkflowsView = {
	isLoaded: false,
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

/** The state of a workflow or of one of its nodes. */
export const stateWords = ({ state, error }: { state: WorkflowState; error?: WorkflowErrorJson }): Words =>
	state === "failed" && error?.code === "crashed" ? INTERRUPTED : WORDS[state];

const OVER: ReadonlySet<string> = new Set(["completed", "failed", "canceled", "skipped", "timeout"]);

export const isOver = ({ state }: { state: WorkflowState | JobJson["state"] }): boolean => OVER.has(state);

export function jobWords(job: JobJson): Words {
	if (job.state === "submitted") return WORDS.queued;
	if (job.state === "timeout") return { tone: "bad", text: "Timed out" };
	return stateWords({ state: job.state, error: job.error });
}

/** Details of a job's state. */
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

/** The download address of an artifact. */
export const artifactPath = (artifactId: string): string => `/v1/artifacts/${encodeURIComponent(artifactId)}`;

const ROWS_MAX = 50;

export interface WorkflowsActions {
	cancelWorkflow(workflowId: string): void;
	cancelJob(jobId: string): void;
}

export type WorkflowsPage = Page<WorkflowsView, WorkflowsActions>;

/** `before`: the lists of an earlier visit, shown until they are read again. */
export const openWorkflows = (context: PageContext, before = NEW_WORKFLOWS): WorkflowsPage =>
	createPage({
		initial: before,
		context,
		connect: (page) => ({
			load: () => load(page),
			retryMs: () => EVERY_MS,
			actions: {
				cancelWorkflow: (id) => void cancel(page, id, () => api.cancelWorkflow(id)),
				cancelJob: (id) => void cancel(page, id, () => api.cancelJob(id)),
			},
		}),
	});

async function load(page: PageState<WorkflowsView>): Promise<number> {
	const [{ workflows }, { jobs, queued, running }] = await Promise.all([
		api.workflows({ limit: ROWS_MAX }),
		api.jobs({ limit: ROWS_MAX }),
	]);
	page.change({ failure: undefined, isLoaded: true, workflows, jobs, queued, running });
	return pollDelay(page.newest);
}

async function cancel(page: PageState<WorkflowsView>, id: string, request: () => Promise<unknown>): Promise<void> {
	if (page.newest.canceling.has(id)) return;
	page.change({ canceling: new Set([...page.newest.canceling, id]), notice: undefined });
	try {
		await request();
	} catch (cause) {
		page.change({ notice: { tone: "bad", text: page.messageOf(cause) } });
	}
	page.change({ canceling: new Set([...page.newest.canceling].filter((other) => other !== id)) });
	page.reload();
}
