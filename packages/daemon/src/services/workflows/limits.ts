/** Limits of workflows. */

import { NexusError } from "@nexus-stream/protocol";

export interface WorkflowLimits {
	/** Size of the definition as JSON text. */
	definitionBytesMax: number;
	nodesMax: number;
	edgesMax: number;
	/** All outputs of a workflow together, as they weigh in a message: an answer with all of them has to fit one. */
	outputsBytesMax: number;
	/** Length of an error message: every later event repeats it. */
	errorCharsMax: number;
	/** Nodes of one workflow at a time. */
	nodesRunningMax: number;
	/** Workflows at a time, of all applications and of one; further ones wait. */
	workflowsRunningMax: number;
	workflowsRunningPerAppMax: number;
	/** Workflows that wait, of all applications and of one; further ones are refused. */
	workflowsWaitingMax: number;
	workflowsWaitingPerAppMax: number;
	attemptsMax: number;
	/** The longest back-off, however many attempts there were. */
	backoffMsMax: number;
	/** Upper limit of one node's timeout. */
	timeoutMsMax: number;
	/** Time that a script may take when its node names none, and at most. */
	scriptMs: number;
	scriptMsMax: number;
	scriptMemoryBytesMax: number;
	/** Scripts at a time, of all workflows. */
	scriptsRunningMax: number;
	/** A thread for scripts ends when it was not needed for so long. */
	scriptIdleMs: number;
	/** How often a commit that the store refused is retried. */
	commitRetryMs: number;
}

export const WORKFLOW_LIMITS: WorkflowLimits = {
	definitionBytesMax: 128 * 1024,
	nodesMax: 128,
	edgesMax: 512,
	outputsBytesMax: 400 * 1024,
	errorCharsMax: 2000,
	nodesRunningMax: 8,
	workflowsRunningMax: 64,
	workflowsRunningPerAppMax: 32,
	workflowsWaitingMax: 1000,
	workflowsWaitingPerAppMax: 250,
	attemptsMax: 10,
	backoffMsMax: 5 * 60_000,
	timeoutMsMax: 60 * 60_000,
	scriptMs: 5000,
	scriptMsMax: 60_000,
	scriptMemoryBytesMax: 32 * 1024 * 1024,
	scriptsRunningMax: 2,
	scriptIdleMs: 30_000,
	commitRetryMs: 5000,
};

export const outputsTooLarge = ({ outputsBytesMax }: Pick<WorkflowLimits, "outputsBytesMax">): NexusError =>
	new NexusError(
		"too_large",
		`the outputs of a workflow may have ${outputsBytesMax} bytes together; keep large ones in artifacts`,
	);
