/** Workflows: how each stands, and what its finished nodes gave. */

import { type Reading, writesOf } from "../../std/write.ts";

/** Fields that may change while it runs. */
export interface WorkflowProgress {
	state: string;
	error?: unknown;
	startedAt?: number;
	finishedAt?: number;
}

export interface StoredWorkflow extends WorkflowProgress {
	id: string;
	appId: string;
	userId: string;
	/** The owner submitted it, not an application by its token. */
	owner: boolean;
	name: string;
	/** As it was submitted; a JSON value. */
	definition: unknown;
	createdAt: number;
}

export interface StoredNode {
	nodeId: string;
	state: string;
	/** The node's fields that never change, for lists; a JSON value. Stored when the workflow is created; older rows have none. */
	shape?: unknown;
	/** A JSON value. */
	status: unknown;
	/** Present once it has completed. */
	output?: unknown;
}

export interface WorkflowQuery {
	appId?: string;
	states?: readonly string[];
	limit: number;
	/** Only those that were made before this one. */
	before?: string;
}

export interface WorkflowRows {
	get(id: string): Reading<StoredWorkflow | undefined>;
	/** In the order of their creation. */
	nodes(id: string): Reading<StoredNode[]>;
	/** The same without what they gave, which may be large. */
	statuses(id: string): Reading<Omit<StoredNode, "output">[]>;
	/** Newest first, without their definitions, which may be large. */
	list(query: WorkflowQuery): Reading<Omit<StoredWorkflow, "definition">[]>;
	/** Whether any finished before a time, of all or of one application. */
	isOlder(before: number, appId?: string): Reading<boolean>;
	/** The size of all workflows of an application, with definitions and outputs. */
	bytes(appId: string): Reading<number>;
}

export interface WorkflowOps {
	create(workflow: StoredWorkflow, nodes: readonly StoredNode[]): void;
	/** Refused for a workflow or a node that has ended: what is settled stays. */
	advance(id: string, progress: WorkflowProgress, nodes: readonly StoredNode[]): void;
	/** Forgets some that finished before a time, at most so many; of all or of one application. */
	forget(before: number, rowsMax: number, appId?: string): void;
}

export const workflowWrites = writesOf<WorkflowOps>("workflows", ["create", "advance", "forget"]);
