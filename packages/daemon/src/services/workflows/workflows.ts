/** The workflow service: accepts workflows, runs them, and resumes those that a dead daemon left. */

import { compileFunction } from "node:vm";
import { NexusError, newId, wordsOf } from "@nexus-stream/protocol";
import { within } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Cursor } from "../../bus/bus.ts";
import { loadOnce } from "../../std/load-once.ts";
import type { Write } from "../../std/write.ts";
import type { ConnectorInfo, Connectors } from "../connectors/port.ts";
import { DurableWork, type DurableWorkDeps, stopping } from "../kit/durable-work.ts";
import { FairQueue } from "../kit/fair-queue.ts";
import { appOf, type Principal, requireOwner } from "../kit/principal.ts";
import { metadataOf, userOf, type VerifyUserToken } from "../scenarios/metadata.ts";
import { pathsIn } from "./nodes/expressions.ts";
import type { PerformDeps } from "./nodes/perform.ts";
import type { Scripts } from "./nodes/script.ts";
import { invalid, type Plan, planOf } from "./plan.ts";
import {
	type AgentTurns,
	type NewWorkflow,
	WORKFLOW_LIMITS,
	type WorkflowJson,
	type WorkflowLimits,
	type Workflows,
} from "./port.ts";
import { WorkflowReads } from "./reads.ts";
import { type StoredWorkflow, type WorkflowRows, workflowWrites } from "./rows.ts";
import { eventCursor, recordOf } from "./run/events.ts";
import { type Begun, type ExecutionDeps, WorkflowExecution } from "./run/execution.ts";
import { isOver, newRun, type WorkflowRun } from "./run/run-state.ts";
import { newStoredNode, progressOf, type WorkflowHead, workflowJson } from "./run/status.ts";

export interface WorkflowsDeps extends DurableWorkDeps {
	rows: DurableWorkDeps["rows"] & { workflows: WorkflowRows };
	scenarios: PerformDeps["scenarios"];
	jobs: PerformDeps["jobs"];
	agents: AgentTurns;
	connectors: Pick<Connectors, "find">;
	verifyUser: VerifyUserToken;
	limits?: Partial<WorkflowLimits>;
}

export const createWorkflows = (deps: WorkflowsDeps): Workflows => new WorkflowService(deps);

class WorkflowService implements Workflows {
	readonly #deps: WorkflowsDeps;
	readonly #limits: WorkflowLimits;
	readonly #work: DurableWork;
	readonly #queue: FairQueue;
	readonly #reads: WorkflowReads;
	readonly #execution: ExecutionDeps;
	/** Workflows that run or wait here. */
	readonly #live = new Map<string, WorkflowExecution>();
	#scripts: Scripts | undefined;
	#isClosing = false;

	constructor(deps: WorkflowsDeps) {
		this.#deps = deps;
		this.#limits = withDefaults(WORKFLOW_LIMITS, deps.limits);
		const { rows, clock, log, scenarios, jobs, agents } = deps;
		const limits = this.#limits;
		const workflowApp = async (id: string) => (await rows.workflows.get(id))?.appId;
		this.#work = new DurableWork({ kind: "workflow", noun: "workflow", domain: "workflows", appOf: workflowApp }, deps);
		this.#queue = new FairQueue({
			clock,
			limits: {
				runningMax: limits.workflowsRunningMax,
				runningPerAppMax: limits.workflowsRunningPerAppMax,
				waitingMax: limits.workflowsWaitingMax,
				waitingPerAppMax: limits.workflowsWaitingPerAppMax,
			},
			start: (id) => this.#live.get(id)!.give({ type: "begin" }),
		});
		this.#reads = new WorkflowReads(rows.workflows, limits, (id) => this.#live.get(id));
		const scripts = loadOnce(async () => {
			const { createScripts } = await import("./nodes/script.ts");
			this.#scripts = createScripts(limits, clock);
			return this.#scripts;
		});
		this.#execution = {
			clock,
			log,
			limits,
			perform: { scenarios, jobs, agents, scripts },
			ended: (head, run, canceledBy) => this.#audited(head, run.state, run, canceledBy),
		};
	}

	get counts() {
		return this.#queue.counts;
	}

	async submit(workflow: NewWorkflow, principal: Principal): Promise<WorkflowJson> {
		const { definition, idempotencyKey: key } = workflow;
		const userId = await submitterOf(workflow, this.#deps.verifyUser);
		const appId = appOf(principal, workflow.appId);
		const plan = planOf(definition, this.#limits);
		checkScripts(plan);
		if (plan.nodes.some(({ kind }) => kind === "AGENT_RUN")) requireOwner(principal);
		if (this.#isClosing) throw stopping();
		const head = { id: newId("wf", this.#deps.bus.now()), appId, userId, name: plan.name };
		const request = { appId, key, body: { definition, userId }, result: head.id };
		let run = newRun(plan, this.#deps.clock.now());
		const { id, log } = await this.#work.create(request, async (commit) => {
			await checkConnectors(plan, (connector) => this.#deps.connectors.find(connector, principal), appId);
			return this.#queue.arriving(head.id, appId, "workflows", () => {
				if (!this.#queue.hasRoom(appId)) run = { ...run, state: "queued" };
				return commit(this.#beginning(head, plan, run, principal, definition));
			});
		});
		if (!log) return this.#reads.get(id, principal);
		this.#take({ head, plan, run, principal, outputs: new Map(), log });
		return workflowJson(head, plan, run);
	}

	#beginning(head: WorkflowHead, plan: Plan, run: WorkflowRun, { owner, address }: Principal, definition: unknown) {
		const { createdAt } = run;
		const stored: StoredWorkflow = { ...head, ...progressOf(run), owner, definition, createdAt };
		const nodes = plan.nodes.map((node) => newStoredNode(node, run.nodes.get(node.id)!));
		return {
			record: recordOf(head, plan, { type: "accepted", run }, { now: createdAt, offset: 1 }),
			writes: [workflowWrites.create(stored, nodes), this.#audited(head, "submitted", run, address)],
		};
	}

	#audited({ id, ...head }: WorkflowHead, operation: string, { nodes, error }: WorkflowRun, caller?: string): Write {
		return this.#work.audited(operation, { ...head, error, caller, payload: { workflow_id: id, nodes: nodes.size } });
	}

	/** Begins it, resumes it, or lets it wait for its turn. */
	#take(begun: Begun): void {
		const { id, appId } = begun.head;
		// It came while the daemon stopped: it is on record, and the next one begins it.
		if (this.#isClosing) {
			this.#queue.step({ type: "leave", id });
			return;
		}
		const execution = new WorkflowExecution(this.#execution, begun);
		this.#live.set(id, execution);
		void execution.over.then(() => {
			this.#live.delete(id);
			this.#queue.step({ type: "leave", id });
		});
		if (begun.run.state === "running") {
			this.#queue.step({ type: "run", id, appId });
			execution.give({ type: "recover" });
		} else this.#queue.step({ type: "wait", id, appId, readyAt: 0 });
	}

	find(id: string, principal: Principal) {
		return this.#reads.find(id, principal);
	}

	list(query: Parameters<Workflows["list"]>[0], principal: Principal): Promise<WorkflowJson[]> {
		return this.#reads.list(query, principal);
	}

	async cancel(id: string, reason: string, principal: Principal): Promise<WorkflowJson> {
		await this.#reads.get(id, principal);
		const execution = this.#live.get(id);
		execution?.cancel(reason, principal.address);
		await execution?.over;
		const workflow = await this.#reads.get(id, principal);
		if (isOver(workflow)) return workflow;
		throw new NexusError("unavailable", `${id} is not run by this daemon: try again once it was taken over`);
	}

	cursor(id: string, after: number | undefined, principal: Principal): Promise<Cursor> {
		const { bus } = this.#deps;
		const open = (from: number) => eventCursor((place) => bus.cursor({ log: id }, place), from);
		return this.#work.cursor(id, after, principal, open);
	}

	recover(): Promise<number> {
		return this.#work.recover(async (id, reopen) => {
			const stored = await this.#deps.rows.workflows.get(id);
			if (!stored) return false;
			const { plan, run, outputs } = await this.#reads.restore(stored);
			const log = await reopen();
			this.#take({ head: headOf(stored), principal: principalOf(stored), plan, run, outputs, log });
			return true;
		});
	}

	async close(deadlineMs: number): Promise<void> {
		this.#isClosing = true;
		this.#queue.close();
		this.#work.close();
		const all = [...this.#live.values()];
		await within(this.#deps.clock, deadlineMs, Promise.all(all.map((execution) => execution.close())));
		for (const execution of all) execution.leave();
		this.#scripts?.close();
	}
}

const headOf = ({ id, appId, userId, name }: StoredWorkflow): WorkflowHead => ({ id, appId, userId, name });

/** The submitter, as far as it matters to the workflow's work. */
const principalOf = ({ owner, appId, userId }: StoredWorkflow): Principal => ({
	owner,
	appId: owner ? undefined : appId,
	userId: userId || undefined,
	address: "workflow",
	isPrivate: true,
});

/** Credentials of a request are refused: its nodes run later, perhaps after a restart (Z26). */
export async function submitterOf({ userId, metadata }: NewWorkflow, verifyUser: VerifyUserToken): Promise<string> {
	const { userToken, keySource = "managed", ...credentials } = metadataOf(metadata ?? (() => undefined));
	if (keySource !== "managed" || Object.keys(credentials).length > 0)
		throw new NexusError(
			"precondition",
			"credentials of a request cannot survive a restart: create a connector, and name it in the nodes",
			{ reason: "AI_REQUEST_CREDENTIAL_CONFLICT" },
		);
	return userOf(userId, { userToken }, verifyUser);
}

/** Nothing of it runs here: it is only read, by the daemon's own parser, which knows all that a script's does. */
export function checkScripts({ nodes }: Plan): void {
	for (const { id, kind, config } of nodes) {
		if (kind !== "TRANSFORM_SCRIPT") continue;
		try {
			compileFunction(`"use strict";\n${config.code}`, ["inputs"], { filename: "script.js", lineOffset: -1 });
		} catch (cause) {
			throw invalid(`node ${id}: config.code: ${lineOf(cause)}${wordsOf(cause)}`);
		}
	}
}

function lineOf(cause: unknown): string {
	const line = cause instanceof Error ? /^script\.js:(\d+)/.exec(cause.stack ?? "")?.[1] : undefined;
	return line === undefined ? "" : `line ${line}: `;
}

/** Skips a connector that is named by a placeholder: it is known only when its node runs. */
export async function checkConnectors(
	{ nodes }: Plan,
	find: (id: string) => Promise<ConnectorInfo | undefined>,
	appId: string,
): Promise<void> {
	const known = new Set<string>();
	for (const { id, config } of nodes) {
		const { connector_id: connector } = config as { connector_id?: string };
		if (connector === undefined || known.has(connector) || pathsIn(connector).length > 0) continue;
		const found = await find(connector);
		if (!found || (found.appId !== undefined && found.appId !== appId))
			throw invalid(`node ${id}: there is no connector ${connector}; create it, or correct connector_id`);
		known.add(connector);
	}
}
