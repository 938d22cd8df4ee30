/** The JSON of workflows: their definitions as they are checked, and the records of their logs. */

export type WorkflowNodeKind =
	| "AI_GENERATE"
	| "AI_STREAM"
	| "AI_EMBED"
	| "AI_IMAGE"
	| "AI_TTS"
	| "AI_STT"
	| "TRANSFORM_EXTRACT"
	| "TRANSFORM_TEMPLATE"
	| "TRANSFORM_SCRIPT"
	| "CONTROL_BRANCH"
	| "CONTROL_MERGE"
	| "CONTROL_NOOP"
	| "AGENT_RUN";

/** Of a workflow and of its nodes; `skipped` is a node's only. */
export type WorkflowState = "accepted" | "queued" | "running" | "completed" | "failed" | "canceled" | "skipped";

export interface WorkflowNodeJson {
	id: string;
	kind: WorkflowNodeKind;
	depends_on?: string[];
	/** What its kind needs: docs/workflows.md. */
	config?: Record<string, unknown>;
	/** Attempts in all, also after a crash. Default: 1. */
	retry_max_attempts?: number;
	/** Before the second attempt; twice as long before each further one. */
	retry_backoff_ms?: number;
	timeout_ms?: number;
}

export interface WorkflowEdgeJson {
	from_node: string;
	/** A field of its output; left out: all of it. */
	from_output?: string;
	to_node: string;
	/** What it is called there; left out: as the node it comes from. */
	to_input?: string;
}

export interface WorkflowDefinitionJson {
	name?: string;
	nodes: WorkflowNodeJson[];
	edges?: WorkflowEdgeJson[];
	/** Nodes see it as `input`. */
	input?: Record<string, unknown>;
}

export interface WorkflowErrorJson {
	code: string;
	message: string;
	reason?: string;
}

export interface WorkflowNodeStatusJson {
	node_id: string;
	kind: WorkflowNodeKind;
	state: WorkflowState;
	/** What it waits for: `depends_on`, its edges, and the branches that lead to it. */
	depends_on: string[];
	attempt: number;
	/** The attempt before, or this very one, was cut off when the daemon died. */
	after_crash?: true;
	/** The run whose text can be read while it comes. */
	run_id?: string;
	job_id?: string;
	error?: WorkflowErrorJson;
	progress_percent?: number;
	/** Milliseconds since the epoch. */
	started_at?: number;
	finished_at?: number;
	/** Not in events and lists. */
	output?: Record<string, unknown>;
}

export interface WorkflowJson {
	workflow_id: string;
	app_id: string;
	user_id: string;
	name: string;
	state: WorkflowState;
	error?: WorkflowErrorJson;
	progress_percent: number;
	nodes: WorkflowNodeStatusJson[];
	/** What the nodes gave that nobody depends on, by their ids. Not in events and lists. */
	output?: Record<string, unknown>;
	created_at: number;
	started_at?: number;
	finished_at?: number;
}

export type WorkflowEventType =
	| "accepted"
	| "started"
	| "node_started"
	| "node_progress"
	| "node_completed"
	| "node_failed"
	| "node_skipped"
	| "node_external_submitted"
	| "node_external_running"
	| "node_external_completed"
	| "node_external_failed"
	| "completed"
	| "failed"
	| "canceled";

/** A record of a workflow's log. Its snapshot replaces what an earlier event said. */
export interface WorkflowEventJson {
	type: WorkflowEventType;
	at: number;
	/** The node that it is about, if any. */
	node_id?: string;
	workflow: WorkflowJson;
}

export interface WorkflowViewJson {
	workflow: WorkflowJson;
	definition: WorkflowDefinitionJson;
}
