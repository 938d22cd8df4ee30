/** Keeps the lists of workflows and jobs up to date, and cancels what a person wants canceled. */

import type { Runtime } from "@nexus-stream/client/runtime";
import { toNexusError } from "@nexus-stream/protocol";
import { loadRuntime } from "../app/runtime.ts";
import { startPolling } from "../ui/poll.ts";

import { pollDelay, type WorkflowsView } from "./workflows.ts";

const ROWS_MAX = 50;
const AGAIN_MS = 3000;

export interface WorkflowsFeed {
	cancelWorkflow(workflowId: string): void;
	cancelJob(jobId: string): void;
	close(): void;
}

export interface WorkflowsFeedOptions {
	/** What an earlier visit saw: shown until it is read again. */
	before: WorkflowsView;
	onChange(workflows: WorkflowsView): void;
	onSignedOut(): void;
}

export function openWorkflows({ before, onChange, onSignedOut }: WorkflowsFeedOptions): WorkflowsFeed {
	let view = before;
	let closed = false;

	function change(part: Partial<WorkflowsView>, without?: "failure" | "notice"): void {
		view = { ...view, ...part };
		if (without !== undefined) {
			const { [without]: _, ...rest } = view;
			view = rest as WorkflowsView;
		}
		if (!closed) onChange(view);
	}

	function wordsOf(cause: unknown): string {
		const error = toNexusError(cause);
		if (error.code === "unauthenticated" && !closed) onSignedOut();
		return error.message;
	}

	async function look(): Promise<number> {
		try {
			const runtime = await loadRuntime();
			const [{ workflows }, { jobs, queued, running }] = await Promise.all([
				runtime.workflows.listWorkflows({ pageSize: ROWS_MAX }),
				runtime.ai.listScenarioJobs({ pageSize: ROWS_MAX }),
			]);
			change({ phase: "ready", workflows, jobs, queued, running }, "failure");
			return pollDelay(view);
		} catch (cause) {
			change({ failure: wordsOf(cause), ...(view.phase === "loading" && { phase: "failed" as const }) });
			return AGAIN_MS;
		}
	}

	async function cancel(id: string, work: (runtime: Runtime) => Promise<unknown>): Promise<void> {
		if (view.canceling.has(id)) return;
		change({ canceling: new Set([...view.canceling, id]) }, "notice");
		try {
			await work(await loadRuntime());
		} catch (cause) {
			change({ notice: wordsOf(cause) });
		}
		change({ canceling: new Set([...view.canceling].filter((other) => other !== id)) });
		poller.now();
	}

	const poller = startPolling(look);
	return {
		cancelWorkflow: (id) => void cancel(id, ({ workflows }) => workflows.cancelWorkflow({ workflowId: id })),
		cancelJob: (id) => void cancel(id, ({ ai }) => ai.cancelScenarioJob({ jobId: id })),
		close() {
			closed = true;
			poller.stop();
		},
	};
}
