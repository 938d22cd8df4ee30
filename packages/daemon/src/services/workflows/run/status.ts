/** A workflow as clients see it and as it is stored. */

import type { Plan, PlannedNode } from "../plan.ts";
import type { WorkflowErrorJson, WorkflowJson, WorkflowNodeStatusJson, WorkflowState } from "../port.ts";
import type { StoredNode, StoredWorkflow, WorkflowProgress } from "../rows.ts";
import { type NodeRun, percentOf, type WorkflowRun } from "./run-state.ts";

/** Fields that never change. */
export type WorkflowHead = Pick<StoredWorkflow, "id" | "appId" | "userId" | "name">;

/** A workflow's fields that may change, and the nodes that did, without the fields that never change. */
export interface WorkflowChange {
	workflow: Pick<WorkflowJson, "state" | "progress_percent" | "error" | "started_at" | "finished_at">;
	nodes: readonly Omit<WorkflowNodeStatusJson, "kind" | "depends_on">[];
}

/** The node's fields that never change, for callers that have no plan. */
export type NodeShape = Pick<PlannedNode, "id" | "kind" | "dependsOn">;

export const workflowJson = (
	head: WorkflowHead,
	{ nodes }: { nodes: readonly NodeShape[] },
	run: WorkflowRun,
): WorkflowJson => ({
	workflow_id: head.id,
	app_id: head.appId,
	user_id: head.userId,
	name: head.name,
	...changing(run),
	nodes: nodes.map((node) => nodeJson(node, run.nodes.get(node.id)!)),
	created_at: run.createdAt,
});

const changing = (run: WorkflowRun): WorkflowChange["workflow"] => ({
	state: run.state,
	error: run.error,
	progress_percent: percentOf(run),
	started_at: run.startedAt,
	finished_at: run.finishedAt,
});

const nodeJson = ({ id, kind, dependsOn }: NodeShape, run: NodeRun): WorkflowNodeStatusJson => ({
	...nodeChange(id, run),
	kind,
	depends_on: [...dependsOn],
});

const nodeChange = (id: string, run: NodeRun): WorkflowChange["nodes"][number] => ({
	node_id: id,
	state: run.state,
	attempt: run.attempt,
	after_crash: run.afterCrash || undefined,
	run_id: run.runId,
	job_id: run.jobId,
	error: run.error,
	progress_percent: run.progress,
	started_at: run.startedAt,
	finished_at: run.finishedAt,
});

/** With what its nodes gave. */
export function withOutputs(json: WorkflowJson, plan: Plan, outputs: ReadonlyMap<string, NodeOutput>): WorkflowJson {
	const last = plan.nodes.filter(({ id }) => plan.dependants(id).length === 0 && outputs.has(id));
	const nodes = json.nodes.map((node) => {
		const output = outputs.get(node.node_id);
		return output ? { ...node, output } : node;
	});
	return { ...json, nodes, output: Object.fromEntries(last.map(({ id }) => [id, outputs.get(id)])) };
}

export type NodeOutput = Record<string, unknown>;

/** The change from `before`, the state in the previous event. */
export const changeOf = (run: WorkflowRun, before: WorkflowRun): WorkflowChange => ({
	workflow: changing(run),
	nodes: [...run.nodes].flatMap(([id, node]) => (before.nodes.get(id) === node ? [] : [nodeChange(id, node)])),
});

export const progressOf = ({ nodes: _, createdAt: __, ...progress }: WorkflowRun): WorkflowProgress => progress;

export const storedNode = (nodeId: string, run: NodeRun, output?: NodeOutput): StoredNode => ({
	nodeId,
	state: run.state,
	status: run,
	output,
});

export const newStoredNode = ({ id, kind, dependsOn }: PlannedNode, run: NodeRun): StoredNode => ({
	...storedNode(id, run),
	shape: { id, kind, dependsOn } satisfies NodeShape,
});

/** Restores a workflow from its rows, as of the last commit. */
export function restored(stored: Omit<StoredWorkflow, "definition">, nodes: readonly StoredNode[]) {
	const run: WorkflowRun = {
		state: stored.state as WorkflowState,
		error: stored.error as WorkflowErrorJson | undefined,
		createdAt: stored.createdAt,
		startedAt: stored.startedAt,
		finishedAt: stored.finishedAt,
		nodes: new Map(nodes.map(({ nodeId, status }) => [nodeId, status as NodeRun])),
	};
	const outputs = new Map(
		nodes.flatMap(({ nodeId, output }) => (output === undefined ? [] : [[nodeId, output as NodeOutput] as const])),
	);
	return { run, outputs };
}
