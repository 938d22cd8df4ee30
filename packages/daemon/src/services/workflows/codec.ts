/** Workflows as messages, and back: the one place that knows both spellings. */

import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
	type SubscribeWorkflowEventsResponseSchema,
	type WorkflowDefinition,
	type WorkflowDefinitionSchema,
	WorkflowEventType,
	WorkflowNodeKind,
	type WorkflowNodeStatusSchema,
	type WorkflowSchema,
	WorkflowState,
} from "@nexus-stream/client/gen/nexus/runtime/v1/workflow_pb";
import type { Batch } from "../../bus/bus.ts";
import { inCapitals, reasonFields, stateNamed, timeOf } from "../kit/codec.ts";
import type {
	WorkflowDefinitionJson,
	WorkflowEventJson,
	WorkflowJson,
	WorkflowNodeStatusJson,
	WorkflowState as WorkflowStateName,
} from "./port.ts";

/** As it is checked. Connect's JSON takes names that it does not know for none: the name of a kind has its prefix there. */
export const definitionJson = ({ name, nodes, edges, input = {} }: WorkflowDefinition) => ({
	name,
	nodes: nodes.map((node) => ({
		id: node.nodeId,
		kind: kindNameOf(node.kind),
		depends_on: node.dependsOn,
		config: node.config ?? {},
		retry_max_attempts: node.retryMaxAttempts,
		retry_backoff_ms: node.retryBackoffMs,
		timeout_ms: node.timeoutMs,
	})),
	edges: edges.map(({ fromNode, fromOutput, toNode, toInput }) => ({
		from_node: fromNode,
		from_output: fromOutput,
		to_node: toNode,
		to_input: toInput,
	})),
	input,
});

function kindNameOf(kind: WorkflowNodeKind): string {
	if (kind === WorkflowNodeKind.UNSPECIFIED) return "";
	return Object.entries(WorkflowNodeKind).find(([, value]) => value === kind)?.[0] ?? String(kind);
}

export const definitionMessage = ({
	name,
	nodes,
	edges = [],
	input = {},
}: WorkflowDefinitionJson): MessageInitShape<typeof WorkflowDefinitionSchema> => ({
	name,
	nodes: nodes.map((node) => ({
		nodeId: node.id,
		kind: WorkflowNodeKind[node.kind],
		dependsOn: node.depends_on,
		config: (node.config ?? {}) as JsonObject,
		retryMaxAttempts: node.retry_max_attempts,
		retryBackoffMs: node.retry_backoff_ms,
		timeoutMs: node.timeout_ms,
	})),
	edges: edges.map((edge) => ({
		fromNode: edge.from_node,
		fromOutput: edge.from_output,
		toNode: edge.to_node,
		toInput: edge.to_input,
	})),
	input: input as JsonObject,
});

export const workflowStateOf = (state: number): WorkflowStateName =>
	stateNamed<WorkflowStateName>(WorkflowState, state);

export const workflowMessage = (workflow: WorkflowJson): MessageInitShape<typeof WorkflowSchema> => ({
	workflowId: workflow.workflow_id,
	appId: workflow.app_id,
	subjectUserId: workflow.user_id,
	name: workflow.name,
	state: WorkflowState[inCapitals(workflow.state)],
	...reasonFields(workflow.error),
	nodes: workflow.nodes.map(nodeMessage),
	output: workflow.output as JsonObject | undefined,
	progressPercent: workflow.progress_percent,
	createdAt: timestampFromMs(workflow.created_at),
	startedAt: timeOf(workflow.started_at),
	finishedAt: timeOf(workflow.finished_at),
});

const nodeMessage = (node: WorkflowNodeStatusJson): MessageInitShape<typeof WorkflowNodeStatusSchema> => ({
	nodeId: node.node_id,
	dependsOn: node.depends_on,
	kind: WorkflowNodeKind[node.kind],
	state: WorkflowState[inCapitals(node.state)],
	...reasonFields(node.error),
	attempt: node.attempt,
	afterCrash: node.after_crash,
	runId: node.run_id,
	jobId: node.job_id,
	output: node.output as JsonObject | undefined,
	progressPercent: node.state === "completed" ? 100 : (node.progress_percent ?? 0),
	startedAt: timeOf(node.started_at),
	finishedAt: timeOf(node.finished_at),
});

export const eventMessages = ({
	first,
	records,
}: Batch): MessageInitShape<typeof SubscribeWorkflowEventsResponseSchema>[] =>
	records.map((record, n) => {
		const { type, at, node_id: nodeId = "", workflow } = JSON.parse(record) as WorkflowEventJson;
		return {
			sequence: BigInt(first + n),
			eventType: WorkflowEventType[inCapitals(type)],
			nodeId,
			workflow: workflowMessage(workflow),
			at: timestampFromMs(at),
		};
	});
