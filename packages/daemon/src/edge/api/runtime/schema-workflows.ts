/** The shapes of the API about workflows. */

import type * as wire from "@nexus-stream/protocol";
import { z } from "zod";
import { beforeId, component, count, type Fields, limit, offset, time } from "../schema.ts";

const id = z.string().min(1).max(128);
const json = z.record(z.string(), z.unknown());
const state = z.enum(["accepted", "queued", "running", "completed", "failed", "canceled", "skipped"]);
const kind = z.enum([
	"AI_GENERATE",
	"AI_STREAM",
	"AI_EMBED",
	"AI_IMAGE",
	"AI_TTS",
	"AI_STT",
	"TRANSFORM_EXTRACT",
	"TRANSFORM_TEMPLATE",
	"TRANSFORM_SCRIPT",
	"CONTROL_BRANCH",
	"CONTROL_MERGE",
	"CONTROL_NOOP",
	"AGENT_RUN",
]);

export const workflowParams = z.object({ workflow: id });
export const workflowsQuery = z.object({
	app_id: id.optional(),
	state: state.optional(),
	limit,
	before: beforeId("wf", "the id of a workflow").describe("A workflow id: only older ones."),
});
export const workflowAfterQuery = z.object({
	after: offset
		.optional()
		.describe(
			"Continue strictly after this offset; absent = the newest event, then what follows; the larger of it and Last-Event-ID counts.",
		),
});

const definition = component(
	"WorkflowDefinition",
	z.object({
		name: z.string().exactOptional(),
		nodes: z.array(
			z.object({
				id: z.string(),
				kind,
				depends_on: z.array(z.string()).exactOptional(),
				config: json.exactOptional().describe("What its kind needs: docs/workflows.md."),
				retry_max_attempts: count.exactOptional().describe("Attempts in all, also after a crash."),
				retry_backoff_ms: count.exactOptional(),
				timeout_ms: count.exactOptional(),
			} satisfies Fields<wire.WorkflowNodeJson>),
		),
		edges: z
			.array(
				z.object({
					from_node: z.string(),
					from_output: z.string().exactOptional(),
					to_node: z.string(),
					to_input: z.string().exactOptional(),
				} satisfies Fields<wire.WorkflowEdgeJson>),
			)
			.exactOptional(),
		input: json.exactOptional().describe("Nodes see it as `input`."),
	} satisfies Fields<wire.WorkflowDefinitionJson>),
);

export const WorkflowSubmission = component(
	"WorkflowRequest",
	z.object({
		// Checked as a whole by whoever runs it: that one names the node and what to do.
		definition: json.describe("A WorkflowDefinition."),
		app_id: id.exactOptional().describe("The application that it is for; default: the caller's own."),
		user_id: id.exactOptional(),
		idempotency_key: z.string().min(1).max(256).exactOptional(),
	}),
);
export const WorkflowCancellation = component(
	"WorkflowCancelRequest",
	z.object({ reason: z.string().max(1000).exactOptional() }),
);

const error = z.object({
	code: z.string(),
	message: z.string(),
	reason: z.string().exactOptional(),
} satisfies Fields<wire.WorkflowErrorJson>);

const node = z.object({
	node_id: z.string(),
	kind,
	state,
	depends_on: z.array(z.string()).describe("What it waits for, edges and branches included."),
	attempt: count,
	after_crash: z.literal(true).exactOptional(),
	run_id: z.string().exactOptional().describe("The run whose text can be read while it comes."),
	job_id: z.string().exactOptional(),
	error: error.exactOptional(),
	progress_percent: count.exactOptional(),
	started_at: time.exactOptional(),
	finished_at: time.exactOptional(),
	output: json.exactOptional(),
} satisfies Fields<wire.WorkflowNodeStatusJson>);

export const WorkflowView = component(
	"Workflow",
	z.object({
		workflow_id: z.string(),
		app_id: z.string(),
		user_id: z.string(),
		name: z.string(),
		state,
		error: error.exactOptional(),
		progress_percent: count,
		nodes: z.array(node),
		output: json.exactOptional().describe("What the nodes gave that nobody depends on, by their ids."),
		created_at: time,
		started_at: time.exactOptional(),
		finished_at: time.exactOptional(),
	} satisfies Fields<wire.WorkflowJson>),
);
export const WorkflowWhole = component(
	"WorkflowWhole",
	z.object({ workflow: WorkflowView, definition } satisfies Fields<wire.WorkflowViewJson>),
);
export const WorkflowList = component(
	"WorkflowList",
	z.object({ workflows: z.array(WorkflowView) } satisfies Fields<wire.WorkflowListJson>),
);
