/** Workflows: graphs of model calls, transformations and agent runs that survive the daemon. */

import { NexusError, type Reason } from "@nexus-stream/protocol";
import type { z } from "zod";
import type { Cursor } from "../../bus/bus.ts";
import type { Principal } from "../kit/principal.ts";
import type { definitionShape, WorkflowNodeKind } from "./nodes/kinds.ts";

export interface NewWorkflow {
	/** Empty: the caller's own. */
	appId: string;
	userId: string;
	/** As it arrived: it is checked whole. */
	definition: unknown;
	idempotencyKey?: string | undefined;
	/** Request metadata, by its name in lower case: a user token, and no credentials. */
	metadata?(name: string): string | undefined;
}

export interface Workflows {
	/** Resolves once it is durable. Rejects with `invalid` (WORKFLOW_INVALID), naming the node and what to do. */
	submit(workflow: NewWorkflow, principal: Principal): Promise<WorkflowJson>;
	/** With its outputs. Undefined also for one of another application. */
	find(id: string, principal: Principal): Promise<WorkflowViewJson | undefined>;
	/** Newest first, without outputs. */
	list(
		query: { appId?: string; states?: readonly WorkflowState[]; limit: number; before?: string },
		principal: Principal,
	): Promise<WorkflowJson[]>;
	/** Cancelling what has ended changes nothing. */
	cancel(id: string, reason: string, principal: Principal): Promise<WorkflowJson>;
	/**
	 * Its events, each a record of `WorkflowEventJson`. `after` undefined: the newest one, then what follows. Of a workflow that has ended
	 * the terminal event comes again, whatever `after` is (Z5).
	 */
	cursor(id: string, after: number | undefined, principal: Principal): Promise<Cursor>;
	/** Resumes the workflows that a dead daemon left, once jobs and runs are settled. */
	recover(): Promise<number>;
	readonly counts: { waiting: number; running: number };
	/** Starts no further node, and gives those under way until the deadline. The next start resumes the rest. */
	close(deadlineMs: number): Promise<void>;
}

export interface AgentOutcome {
	status: "completed" | "failed" | "aborted";
	text: string;
	/** Present unless it completed. */
	error?: { code: string; message: string; reason?: Reason };
}

export interface AgentTurn {
	/** Its run's id, once it has begun: it may have to wait for its session. Rejects when it becomes no run. */
	begun: Promise<string>;
	outcome: Promise<AgentOutcome>;
	/** Takes the message back while it waits; ends its run otherwise. */
	stop(): Promise<void>;
}

/** Turns of sessions, as a workflow needs them. */
export interface AgentTurns {
	/** Resolves once the message is on record. The same key gives the same turn. */
	start(turn: { session: string; text: string; idempotencyKey: string }): Promise<AgentTurn>;
	/** Outcome of a run that began before; undefined when the run is unknown. */
	outcomeOf(runId: string): Promise<AgentOutcome | undefined>;
	abort(runId: string): Promise<void>;
}

/** State of a workflow or of a node; only a node can be `skipped`. */
export type WorkflowState = "accepted" | "queued" | "running" | "completed" | "failed" | "canceled" | "skipped";

type Definition = z.input<typeof definitionShape>;

export type WorkflowNodeJson = Omit<Definition["nodes"][number], "kind"> & { kind: WorkflowNodeKind };
export type WorkflowEdgeJson = NonNullable<Definition["edges"]>[number];
export type WorkflowDefinitionJson = Omit<Definition, "nodes"> & { nodes: WorkflowNodeJson[] };

export interface WorkflowErrorJson {
	code: string;
	message: string;
	reason?: string;
}

export interface WorkflowNodeStatusJson {
	node_id: string;
	kind: WorkflowNodeKind;
	state: WorkflowState;
	/** The nodes that it waits for: `depends_on`, its edges, and the branches that lead to it. */
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
	/** Outputs of the leaf nodes, by node id. Not in events and lists. */
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

export const WORKFLOW_LIMITS = {
	/** Size of the definition as JSON text. */
	definitionBytesMax: 128 * 1024,
	nodesMax: 128,
	edgesMax: 512,
	/** All outputs of a workflow together, as they weigh in a message: an answer with all of them has to fit one. */
	outputsBytesMax: 400 * 1024,
	/** Length of an error message: every later event repeats it. */
	errorCharsMax: 2000,
	/** Nodes of one workflow at a time. */
	nodesRunningMax: 8,
	/** Workflows at a time, of all applications and of one; further ones wait. */
	workflowsRunningMax: 64,
	workflowsRunningPerAppMax: 32,
	/** Workflows that wait, of all applications and of one; further ones are refused. */
	workflowsWaitingMax: 1000,
	workflowsWaitingPerAppMax: 250,
	attemptsMax: 10,
	/** The longest back-off, however many attempts there were. */
	backoffMsMax: 5 * 60_000,
	/** Upper limit of one node's timeout. */
	timeoutMsMax: 60 * 60_000,
	/** Time that a script may take when its node names none, and at most. */
	scriptMs: 5000,
	scriptMsMax: 60_000,
	scriptMemoryBytesMax: 32 * 1024 * 1024,
	/** Scripts at a time, of all workflows. */
	scriptsRunningMax: 2,
	/** A thread for scripts ends when it was not needed for so long. */
	scriptIdleMs: 30_000,
};

export type WorkflowLimits = typeof WORKFLOW_LIMITS;

export const outputsTooLarge = ({ outputsBytesMax }: Pick<WorkflowLimits, "outputsBytesMax">): NexusError =>
	new NexusError(
		"too_large",
		`the outputs of a workflow may have ${outputsBytesMax} bytes together; keep large ones in artifacts`,
	);
