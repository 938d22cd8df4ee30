/** Workflows: graphs of model calls, transformations and agent runs that survive the daemon. */

import type { Reason } from "@nexus-stream/protocol";
import type { Cursor } from "../../bus/bus.ts";
import type { Principal } from "../kit/principal.ts";
import type { WorkflowJson, WorkflowState, WorkflowViewJson } from "./json.ts";

export interface NewWorkflow {
	/** Empty: the caller's own. */
	appId: string;
	userId: string;
	/** As it arrived: it is checked whole. */
	definition: unknown;
	idempotencyKey?: string | undefined;
	/** What came beside the body, by its name in lower case: a user token, and no credentials. */
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
	/** Goes on with what a dead daemon left, once jobs and runs are settled. */
	recover(): Promise<number>;
	readonly counts: { waiting: number; running: number };
	/** Starts no further node, and gives those under way until the deadline. What is left goes on at the next start. */
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
	/** Of a run that began before; undefined when nobody knows it. */
	outcomeOf(runId: string): Promise<AgentOutcome | undefined>;
	abort(runId: string): Promise<void>;
}
