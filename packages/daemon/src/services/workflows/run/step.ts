/** Every decision of a workflow, as one pure step: what happened, and when, becomes the next state, what to tell, and what to do. */

import { backoffMs as retryPauseMs } from "@nexus-stream/protocol/retry";
import { defined } from "../../../std/defined.ts";
import type { Plan, PlannedNode } from "../plan.ts";
import type { WorkflowErrorJson, WorkflowEventType, WorkflowLimits } from "../port.ts";
import { activeCount, isOver, madeUpFor, type NodeRun, pathState, type WorkflowRun } from "./run-state.ts";

/** Reports of a node's attempt; those of an attempt that is over are ignored. */
export type NodeReport =
	| { type: "submitted"; jobId: string }
	| { type: "running"; runId?: string; jobId?: string }
	| { type: "progress"; percent: number }
	/** `taken` is of a branch. */
	| { type: "completed"; taken?: boolean }
	| { type: "failed"; error: WorkflowErrorJson; retryable: boolean };

export type WorkflowInput =
	| { type: "begin" }
	/** An earlier daemon left it. */
	| { type: "recover" }
	/** The daemon stops in good order. */
	| { type: "stopping" }
	| { type: "node"; node: string; attempt: number; report: NodeReport }
	| { type: "tick" }
	| { type: "cancel"; reason: string };

export type NodeCommand =
	/** `again`: this very attempt may have begun before the daemon died. What acts outside is then looked up, not done twice. */
	{ type: "perform"; node: string; attempt: number; again?: true } | { type: "stop"; node: string; attempt: number };

/** An event with the workflow as it was at that moment. */
export interface WorkflowEvent {
	type: WorkflowEventType;
	node?: string;
	run: WorkflowRun;
}

export interface WorkflowStep {
	run: WorkflowRun;
	events: WorkflowEvent[];
	commands: NodeCommand[];
}

export type StepLimits = Pick<WorkflowLimits, "nodesRunningMax" | "backoffMsMax">;

export function step(
	plan: Plan,
	run: WorkflowRun,
	input: WorkflowInput,
	now: number,
	limits: StepLimits,
): WorkflowStep {
	const transition = new Transition(plan, run, now, limits);
	if (isOver(run)) return transition.step;
	switch (input.type) {
		case "begin":
			transition.begin();
			break;
		case "recover":
			transition.recover();
			break;
		case "stopping":
			transition.noteStop();
			break;
		case "node":
			transition.report(input.node, input.attempt, input.report);
			break;
		case "tick":
			transition.endOverdue();
			break;
		case "cancel":
			transition.cancel(input.reason);
			break;
		default:
			return input satisfies never;
	}
	transition.goOn();
	return transition.step;
}

/** The state while a step is taken. */
class Transition {
	readonly #plan: Plan;
	readonly #now: number;
	readonly #limits: StepLimits;
	#run: WorkflowRun;
	readonly #events: WorkflowEvent[] = [];
	readonly #commands: NodeCommand[] = [];

	constructor(plan: Plan, run: WorkflowRun, now: number, limits: StepLimits) {
		this.#plan = plan;
		this.#run = run;
		this.#now = now;
		this.#limits = limits;
	}

	get step(): WorkflowStep {
		return { run: this.#run, events: this.#events, commands: this.#commands };
	}

	begin(): void {
		this.#run = { ...this.#run, state: "running", startedAt: this.#now };
		this.#tell("started");
	}

	recover(): void {
		if (this.#run.state !== "running") return;
		for (const { id, external } of this.#plan.nodes) {
			const node = this.#node(id);
			if (!node.active) continue;
			// The time that the deadline was measured from is lost: the attempt has its whole time again.
			const { deadlineAt: _, stopping, ...rest } = node;
			const afterCrash = stopping ? rest.afterCrash : true;
			this.#set(id, external ? rest : { ...rest, afterCrash, deadlineAt: this.#deadline(id) });
			this.#commands.push({ type: "perform", node: id, attempt: node.attempt, again: true });
		}
	}

	/** On record before the attempts are cut off: afterwards there may be no time left to write. */
	noteStop(): void {
		for (const { id, external } of this.#plan.nodes) {
			const node = this.#node(id);
			if (node.active && !external) this.#set(id, { ...node, stopping: true });
		}
	}

	report(id: string, attempt: number, report: NodeReport): void {
		const node = this.#node(id);
		if (!node.active || node.attempt !== attempt) return;
		switch (report.type) {
			case "submitted":
				if (node.jobId === report.jobId) return;
				this.#set(id, { ...node, jobId: report.jobId });
				this.#tell("node_external_submitted", id);
				return;
			case "running":
				this.#running(id, report);
				return;
			case "progress":
				if (node.progress === report.percent) return;
				this.#set(id, { ...node, progress: report.percent });
				this.#tell("node_progress", id);
				return;
			case "completed":
				this.#complete(id, report.taken);
				return;
			case "failed":
				this.#fail(id, report.error, report.retryable);
				return;
			default:
				report satisfies never;
		}
	}

	endOverdue(): void {
		for (const [id, { active, attempt, deadlineAt }] of this.#run.nodes) {
			if (!active || deadlineAt === undefined || deadlineAt > this.#now) continue;
			this.#commands.push({ type: "stop", node: id, attempt });
			const message = "it took longer than timeout_ms allows";
			this.#fail(id, { code: "timeout", message, reason: "TIMEOUT" }, true);
		}
	}

	cancel(reason: string): void {
		for (const [id, node] of this.#run.nodes) {
			if (isOver(node)) continue;
			if (node.active) this.#commands.push({ type: "stop", node: id, attempt: node.attempt });
			this.#set(id, { ...ended(node), state: "canceled", finishedAt: this.#now });
		}
		const error = { code: "aborted", message: reason || "canceled", reason: "ABORTED" };
		this.#run = { ...this.#run, state: "canceled", error, finishedAt: this.#now };
		this.#tell("canceled");
	}

	/** Queues or skips the nodes whose dependencies are decided, starts those that have room, and finishes when all are over. */
	goOn(): void {
		if (this.#run.state !== "running") return;
		// In the order of the plan: who is skipped is known before those are looked at who wait for it.
		for (const planned of this.#plan.nodes) if (this.#node(planned.id).state === "accepted") this.#admit(planned);
		let room = this.#limits.nodesRunningMax - activeCount(this.#run);
		for (const planned of this.#plan.nodes) {
			const { state, active, dueAt = 0 } = this.#node(planned.id);
			if (room <= 0) break;
			if (state !== "queued" || active || dueAt > this.#now) continue;
			this.#start(planned);
			room--;
		}
		if ([...this.#run.nodes.values()].every(isOver)) this.#finish();
	}

	#admit({ id, dependsOn, needs = dependsOn.length }: PlannedNode): void {
		const paths = dependsOn.map((before) => pathState(this.#plan, this.#run, before, id));
		const open = paths.filter((path) => path === "open").length;
		const done = paths.filter((path) => path === "done").length;
		const node = this.#node(id);
		if (done >= needs) this.#set(id, { ...node, state: "queued" });
		else if (done + open < needs) {
			this.#set(id, { ...node, state: "skipped", finishedAt: this.#now });
			this.#tell("node_skipped", id);
		}
	}

	#start({ id, external }: PlannedNode): void {
		const { dueAt: _due, runId: _run, jobId: _job, progress: _progress, error, ...node } = this.#node(id);
		const attempt = node.attempt + 1;
		const afterCrash = error?.code === "crashed" ? true : node.afterCrash;
		this.#set(id, { ...node, attempt, active: true, afterCrash });
		// An external node is running only when its job or run has begun.
		if (!external) this.#running(id, {});
		this.#commands.push({ type: "perform", node: id, attempt });
	}

	#running(id: string, { runId, jobId }: { runId?: string; jobId?: string }): void {
		const node = this.#node(id);
		if (node.state === "running" && (runId === undefined || node.runId === runId)) return;
		this.#set(id, {
			...node,
			...defined({ runId, jobId }),
			state: "running",
			startedAt: this.#now,
			deadlineAt: this.#deadline(id),
		});
		this.#tell("node_started", id);
		if (jobId !== undefined) this.#tell("node_external_running", id);
	}

	/** A script's thread keeps its time: what the thread takes to start, or others before it, is not the script's. */
	#deadline(id: string): number | undefined {
		const { timeoutMs, kind } = this.#plan.node(id);
		return timeoutMs > 0 && kind !== "TRANSFORM_SCRIPT" ? this.#now + timeoutMs : undefined;
	}

	#complete(id: string, taken: boolean | undefined): void {
		const { error: _, ...node } = ended(this.#node(id));
		this.#set(id, { ...node, state: "completed", finishedAt: this.#now, taken });
		if (node.jobId !== undefined) this.#tell("node_external_completed", id);
		this.#tell("node_completed", id);
	}

	#fail(id: string, error: WorkflowErrorJson, retryable: boolean): void {
		const { attemptsMax, backoffMs } = this.#plan.node(id);
		const node = ended(this.#node(id));
		if (retryable && node.attempt < attemptsMax) {
			const pauseMs = retryPauseMs({ firstMs: backoffMs, maxMs: this.#limits.backoffMsMax }, node.attempt - 1);
			this.#set(id, { ...node, state: "queued", error, dueAt: this.#now + pauseMs });
			this.#tell(node.jobId === undefined ? "node_progress" : "node_external_failed", id);
			return;
		}
		this.#set(id, { ...node, state: "failed", error, finishedAt: this.#now });
		if (node.jobId !== undefined) this.#tell("node_external_failed", id);
		this.#tell("node_failed", id);
	}

	#finish(): void {
		const { nodes } = this.#run;
		const fine = madeUpFor(this.#plan, nodes);
		const failed = this.#plan.nodes.find(({ id }) => nodes.get(id)!.state === "failed" && !fine.has(id));
		if (!failed) this.#run = { ...this.#run, state: "completed", finishedAt: this.#now };
		else {
			const { message, ...error } = nodes.get(failed.id)!.error!;
			const told = { ...error, message: `node ${failed.id} failed: ${message}` };
			this.#run = { ...this.#run, state: "failed", error: told, finishedAt: this.#now };
		}
		this.#tell(failed ? "failed" : "completed");
	}

	#node(id: string): NodeRun {
		return this.#run.nodes.get(id)!;
	}

	#set(id: string, node: NodeRun): void {
		this.#run = { ...this.#run, nodes: new Map(this.#run.nodes).set(id, node) };
	}

	#tell(type: WorkflowEventType, node?: string): void {
		this.#events.push({ type, run: this.#run, node });
	}
}

/** Without what only an attempt under way has. */
function ended({
	active: _active,
	stopping: _stopping,
	deadlineAt: _deadline,
	dueAt: _due,
	...node
}: NodeRun): NodeRun {
	return node;
}
