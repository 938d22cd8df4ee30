/** A workflow under way as a value, and questions about it. */

import type { Plan, PlannedNode } from "../plan.ts";
import type { WorkflowErrorJson, WorkflowState } from "../port.ts";

export interface NodeRun {
	readonly state: WorkflowState;
	/** The one under way or the last one; 0 before the first. */
	readonly attempt: number;
	/** It is being performed. */
	readonly active?: true;
	readonly afterCrash?: true;
	/** The daemon began to stop during the attempt: running again at the next start does not count as a crash. */
	readonly stopping?: true;
	/** When the next attempt may begin. */
	readonly dueAt?: number;
	/** When the attempt has to be over. */
	readonly deadlineAt?: number;
	/** For a branch: the value of its condition. */
	readonly taken?: boolean;
	readonly runId?: string;
	readonly jobId?: string;
	readonly error?: WorkflowErrorJson;
	readonly progress?: number;
	readonly startedAt?: number;
	readonly finishedAt?: number;
}

export interface WorkflowRun {
	readonly state: WorkflowState;
	readonly error?: WorkflowErrorJson;
	readonly createdAt: number;
	readonly startedAt?: number;
	readonly finishedAt?: number;
	readonly nodes: ReadonlyMap<string, NodeRun>;
}

export const newRun = (plan: Plan, now: number): WorkflowRun => ({
	state: "accepted",
	createdAt: now,
	nodes: new Map(plan.nodes.map(({ id }) => [id, { state: "accepted", attempt: 0 }])),
});

const TERMINAL: ReadonlySet<WorkflowState> = new Set(["completed", "failed", "canceled", "skipped"] as const);
export const isOver = ({ state }: { state: WorkflowState }): boolean => TERMINAL.has(state);

/** When `tick` has something to do; undefined: not by time alone. */
export function nextTickAt(run: WorkflowRun, nodesRunningMax: number): number | undefined {
	if (isOver(run)) return undefined;
	const hasRoom = activeCount(run) < nodesRunningMax;
	const times = [...run.nodes.values()].flatMap(({ state, active, dueAt, deadlineAt }) => {
		if (active) return deadlineAt ?? [];
		return hasRoom && state === "queued" ? (dueAt ?? []) : [];
	});
	return times.length === 0 ? undefined : Math.min(...times);
}

/** Nodes that came to their own end, in percent; 100 only when all did. */
export function percentOf(run: WorkflowRun): number {
	const over = [...run.nodes.values()].filter((node) => isOver(node) && node.state !== "canceled").length;
	return Math.floor((over * 100) / run.nodes.size);
}

export const activeCount = ({ nodes }: WorkflowRun): number =>
	[...nodes.values()].filter(({ active }) => active).length;

/** The completed dependencies whose way leads to a node. */
export const doneBefore = (plan: Plan, run: WorkflowRun, { id, dependsOn }: PlannedNode): string[] =>
	dependsOn.filter((before) => pathState(plan, run, before, id) === "done");

/** The way from a node to one that waits for it: gone for good, or not decided yet. A branch closes the way to those it does not lead to. */
export function pathState(plan: Plan, run: WorkflowRun, from: string, to: string): "open" | "done" | "gone" {
	const node = run.nodes.get(from)!;
	if (!isOver(node)) return "open";
	if (node.state !== "completed") return "gone";
	const { targets } = plan.node(from);
	if (!targets) return "done";
	const [chosen, other] = node.taken ? [targets.true, targets.false] : [targets.false, targets.true];
	return other.includes(to) && !chosen.includes(to) ? "gone" : "done";
}

/** The nodes whose failure or absence a merge has made up for: every way from such a node ends in one that completed without it. */
export function madeUpFor(plan: Plan, nodes: WorkflowRun["nodes"]): ReadonlySet<string> {
	const found = new Set<string>();
	for (const { id } of plan.nodes.toReversed()) {
		const after = plan.dependants(id);
		const isFine = (next: string) => nodes.get(next)!.state === "completed" || found.has(next);
		if (nodes.get(id)!.state !== "completed" && after.length > 0 && after.every(isFine)) found.add(id);
	}
	return found;
}
