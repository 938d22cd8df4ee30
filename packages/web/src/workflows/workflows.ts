/** The page of workflows and jobs: its state, its load and its actions; and their states in words. */

import {
	ScenarioJobState as JobState,
	type ScenarioJob,
	ScenarioType,
} from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { ReasonCode } from "@nexus-stream/client/gen/nexus/runtime/v1/common_pb";
import { type Workflow, WorkflowState } from "@nexus-stream/client/gen/nexus/runtime/v1/workflow_pb";
import type { Runtime } from "@nexus-stream/client/runtime";
import { loadRuntime, nameOf } from "../app/runtime.ts";
import type { ListView } from "../ui/list-page.tsx";
import { createPage, type PageContext, type PageState } from "../ui/page.ts";
import type { Words } from "../ui/status.tsx";

export interface WorkflowsView extends ListView {
	readonly workflows: readonly Workflow[];
	readonly jobs: readonly ScenarioJob[];
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

/** The states of workflows, their nodes and jobs, by name. */
const WORDS: Readonly<Record<string, Words>> = {
	accepted: { tone: "quiet", text: "Waiting" },
	submitted: { tone: "quiet", text: "Queued" },
	queued: { tone: "quiet", text: "Queued" },
	running: { tone: "live", text: "Running" },
	completed: { tone: "good", text: "Done" },
	failed: { tone: "bad", text: "Failed" },
	timeout: { tone: "bad", text: "Timed out" },
	canceled: { tone: "quiet", text: "Canceled" },
	skipped: { tone: "quiet", text: "Skipped" },
};

const wordsOf = (state: string, reasonCode: ReasonCode): Words =>
	state === "failed" && reasonCode === ReasonCode.CRASHED
		? { tone: "bad", text: "Interrupted" }
		: (WORDS[state] ?? { tone: "quiet", text: "Unknown" });

/** The state of a workflow or of one of its nodes. */
export const stateWords = ({ state, reasonCode }: Pick<Workflow, "state" | "reasonCode">): Words =>
	wordsOf(nameOf(WorkflowState, state), reasonCode);

export const jobWords = ({ state, reasonCode }: Pick<ScenarioJob, "state" | "reasonCode">): Words =>
	wordsOf(nameOf(JobState, state), reasonCode);

const OVER: ReadonlySet<string> = new Set(["completed", "failed", "timeout", "canceled", "skipped"]);

export const isOver = ({ state }: Pick<Workflow, "state">): boolean => OVER.has(nameOf(WorkflowState, state));

export const isJobOver = ({ state }: Pick<ScenarioJob, "state">): boolean => OVER.has(nameOf(JobState, state));

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

/** The download address of an artifact. */
export const artifactPath = (artifactId: string): string => `/v1/artifacts/${encodeURIComponent(artifactId)}`;

const ROWS_MAX = 50;

export type WorkflowsPage = ReturnType<typeof openWorkflows>;

/** `before`: the lists of an earlier visit, shown until they are read again. */
export const openWorkflows = (context: PageContext, before = NEW_WORKFLOWS) =>
	createPage({
		initial: before,
		context,
		connect: (page) => ({
			load: () => load(page),
			retryMs: () => EVERY_MS,
			actions: {
				cancelWorkflow: (workflowId: string) =>
					void cancel(page, workflowId, ({ workflows }) => workflows.cancelWorkflow({ workflowId })),
				cancelJob: (jobId: string) => void cancel(page, jobId, ({ ai }) => ai.cancelScenarioJob({ jobId })),
			},
		}),
	});

async function load(page: PageState<WorkflowsView>): Promise<number> {
	const runtime = await loadRuntime();
	const [{ workflows }, { jobs, queued, running }] = await Promise.all([
		runtime.workflows.listWorkflows({ pageSize: ROWS_MAX }),
		runtime.ai.listScenarioJobs({ pageSize: ROWS_MAX }),
	]);
	page.change({ failure: undefined, isLoaded: true, workflows, jobs, queued, running });
	return pollDelay(page.newest);
}

async function cancel(
	page: PageState<WorkflowsView>,
	id: string,
	request: (runtime: Runtime) => Promise<unknown>,
): Promise<void> {
	if (page.newest.canceling.has(id)) return;
	page.change({ canceling: new Set([...page.newest.canceling, id]), notice: undefined });
	await page.act(async () => {
		await request(await loadRuntime());
		return undefined;
	});
	page.change({ canceling: new Set([...page.newest.canceling].filter((other) => other !== id)) });
}
