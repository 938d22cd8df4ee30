/** The workflow service: accepts workflows, runs them, and resumes those that a dead daemon left. */

import { LOG_KINDS, NexusError, newId, reasonOfFailure } from "@nexus-stream/protocol";
import { type Clock, within } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus, Cursor, LogWriter } from "../../bus/bus.ts";
import { ADMIT_MS_MAX } from "../../bus/bus.ts";
import { loadOnce } from "../../std/load-once.ts";
import type { Write } from "../../std/write.ts";
import type { Audit } from "../audit/port.ts";
import type { Connectors } from "../connectors/port.ts";
import { gone } from "../kit/gone.ts";
import { once } from "../kit/once.ts";
import { appOf, checkedAppId, type Principal, requireOwner, seesApp } from "../kit/principal.ts";
import type { Quota } from "../kit/quota.ts";
import type { IdempotencyRows } from "../kit/rows.ts";
import { noUserTokens, type VerifyUserToken } from "../scenarios/user-token.ts";
import { checkConnectors, checkScripts } from "./check.ts";
import { eventCursor, recordOf } from "./events.ts";
import { type Begun, type ExecutionDeps, WorkflowExecution } from "./execution.ts";
import { WORKFLOW_LIMITS, type WorkflowLimits } from "./limits.ts";
import { ListedWorkflows } from "./listed.ts";
import type { PerformDeps } from "./perform.ts";
import { type Plan, planOf } from "./plan.ts";
import type { AgentTurns, NewWorkflow, WorkflowDefinitionJson, WorkflowJson, Workflows } from "./port.ts";
import type { WorkflowRows } from "./rows.ts";
import { type StoredNode, type StoredWorkflow, workflowWrites } from "./rows.ts";
import type { Scripts } from "./script.ts";
import {
	type NodeShape,
	newStoredNode,
	progressOf,
	restored,
	type WorkflowHead,
	withOutputs,
	workflowJson,
} from "./status.ts";
import { isOver, newRun, type WorkflowRun } from "./step.ts";
import { userOf } from "./submitter.ts";

export interface WorkflowsDeps {
	bus: Bus;
	rows: { workflows: WorkflowRows; idempotency: IdempotencyRows };
	scenarios: PerformDeps["scenarios"];
	jobs: PerformDeps["jobs"];
	agents: AgentTurns;
	connectors: Pick<Connectors, "find">;
	audit?: Audit;
	/** Left out: no user tokens are taken. */
	verifyUser?: VerifyUserToken | undefined;
	/** Left out: applications store what they like. */
	quota?: Pick<Quota, "holding">;
	clock: Clock;
	log: Log;
	limits?: Partial<WorkflowLimits>;
}

export const createWorkflows = (deps: WorkflowsDeps): Workflows => new WorkflowService(deps);

class WorkflowService implements Workflows {
	readonly #deps: WorkflowsDeps;
	readonly #limits: WorkflowLimits;
	readonly #execution: ExecutionDeps;
	/** In the order in which they came: those under way, and those that wait. */
	readonly #running = new Map<string, WorkflowExecution>();
	readonly #waiting = new Map<string, WorkflowExecution>();
	readonly #ended = new ListedWorkflows();
	/** Submissions that are not durable yet. */
	#arriving = 0;
	#scripts: Scripts | undefined;
	#isClosing = false;

	constructor(deps: WorkflowsDeps) {
		this.#deps = deps;
		this.#limits = withDefaults(WORKFLOW_LIMITS, deps.limits);
		const { bus, clock, log, scenarios, jobs, agents } = deps;
		const scripts = loadOnce(async () => {
			const { createScripts } = await import("./script.ts");
			this.#scripts = createScripts(this.#limits, clock);
			return this.#scripts;
		});
		this.#execution = {
			bus,
			clock,
			log,
			limits: this.#limits,
			perform: { scenarios, jobs, agents, scripts },
			ended: (head, run, canceledBy) => this.#audited(head, run.state, run, canceledBy),
		};
	}

	get counts() {
		return { waiting: this.#waiting.size, running: this.#running.size };
	}

	async submit(workflow: NewWorkflow, principal: Principal): Promise<WorkflowJson> {
		const { definition, idempotencyKey: key } = workflow;
		const userId = await userOf(workflow, this.#deps.verifyUser ?? noUserTokens);
		const appId = appOf(principal, workflow.appId);
		const plan = planOf(definition, this.#limits);
		checkScripts(plan);
		if (plan.nodes.some(({ kind }) => kind === "AGENT_RUN")) requireOwner(principal);
		if (this.#isClosing) throw new NexusError("unavailable", "the daemon is stopping", { reason: "STOPPING" });
		const head = { id: newId("wf", this.#deps.bus.now()), appId, userId, name: plan.name };
		const body = { definition, userId };
		let made: WorkflowJson | undefined;
		const { id } = await once(this.#deps, { appId, key, body, result: head.id }, async (claim) => {
			await checkConnectors(plan, (connector) => this.#deps.connectors.find(connector, principal), appId);
			this.#admit(appId);
			const isWaiting = !this.#hasRoom(appId);
			const run: WorkflowRun = { ...newRun(plan, this.#deps.clock.now()), ...(isWaiting && { state: "queued" }) };
			const begun = { head, plan, run, principal, definition };
			this.#arriving++;
			const create = () => this.#create(begun, claim);
			const { quota } = this.#deps;
			const bytes = quota ? Buffer.byteLength(JSON.stringify(definition)) : 0;
			const created = quota ? quota.holding(appId, bytes, create) : create();
			const writer = await created.finally(() => this.#arriving--);
			made = workflowJson(head, plan, run);
			this.#take({ ...begun, outputs: new Map(), writer });
		});
		return made ?? (await this.#of(id, principal)).workflow;
	}

	#admit(appId: string): void {
		const { workflowsWaitingMax, workflowsWaitingPerAppMax } = this.#limits;
		if (this.#waiting.size + this.#arriving >= workflowsWaitingMax + this.#room)
			throw new NexusError("busy", `${workflowsWaitingMax} workflows wait already; try again later`);
		if (countOf(this.#waiting, appId) >= workflowsWaitingPerAppMax)
			throw new NexusError("busy", `${workflowsWaitingPerAppMax} workflows of ${appId} wait already; try again later`);
	}

	/** How many more may run. */
	get #room(): number {
		return Math.max(0, this.#limits.workflowsRunningMax - this.#running.size);
	}

	#hasRoom(appId: string): boolean {
		return this.#room > 0 && countOf(this.#running, appId) < this.#limits.workflowsRunningPerAppMax;
	}

	#create(
		{ head, plan, run, principal, definition }: Omit<Begun, "outputs" | "writer"> & { definition: unknown },
		claim: readonly Write[],
	): Promise<LogWriter> {
		const { bus } = this.#deps;
		const record = recordOf(head, plan, { type: "accepted", run }, { now: run.createdAt, offset: 1 });
		const stored: StoredWorkflow = {
			...head,
			...progressOf(run),
			owner: principal.owner,
			definition,
			createdAt: run.createdAt,
		};
		const nodes = plan.nodes.map((node) => newStoredNode(node, run.nodes.get(node.id)!));
		return bus.create({ log: head.id, kind: "workflow", countedFor: head.appId }, [record], {
			with: [
				workflowWrites.create(stored, nodes),
				...claim,
				...this.#audited(head, "submitted", run, principal.address),
			],
			patienceMs: ADMIT_MS_MAX,
		});
	}

	#audited({ id, appId, userId }: WorkflowHead, operation: string, { nodes, error }: WorkflowRun, caller?: string) {
		const { audit } = this.#deps;
		if (!audit) return [];
		const payload = { workflow_id: id, nodes: nodes.size };
		return [
			audit({
				domain: "workflows",
				operation,
				appId,
				payload,
				reason: error && reasonOfFailure(error),
				userId: userId || undefined,
				caller,
			}),
		];
	}

	/** Begins it, resumes it, or lets it wait for its turn. */
	#take(begun: Begun): void {
		const execution = new WorkflowExecution(this.#execution, begun);
		const { id, appId } = begun.head;
		// It came while the daemon stopped: it is on record, and the next one begins it.
		if (this.#isClosing) return;
		if (begun.run.state === "running" || this.#hasRoom(appId)) this.#begin(execution);
		else this.#waiting.set(id, execution);
		void execution.over.then(() => this.#leave(id));
	}

	/** Makes room for the one that has waited longest, of those whose application may have one more. */
	#leave(id: string): void {
		this.#running.delete(id);
		this.#waiting.delete(id);
		if (this.#isClosing) return;
		const next = [...this.#waiting.values()].find(({ head }) => this.#hasRoom(head.appId));
		if (!next) return;
		this.#waiting.delete(next.head.id);
		this.#begin(next);
	}

	#begin(execution: WorkflowExecution): void {
		this.#running.set(execution.head.id, execution);
		execution.give({ type: execution.run.state === "running" ? "recover" : "begin" });
	}

	async find(id: string, principal: Principal) {
		const stored = await this.#deps.rows.workflows.get(id);
		if (!stored || !seesApp(principal, stored.appId)) return undefined;
		const { plan, run, outputs } = await this.#restore(stored);
		return {
			workflow: withOutputs(workflowJson(stored, plan, run), plan, outputs),
			definition: stored.definition as WorkflowDefinitionJson,
		};
	}

	async #of(id: string, principal: Principal) {
		const found = await this.find(id, principal);
		if (!found) throw new NexusError("not_found", `there is no workflow ${id}`);
		return found;
	}

	async #restore(stored: StoredWorkflow) {
		const nodes = await this.#deps.rows.workflows.nodes(stored.id);
		return { plan: this.#planOf(stored), ...restored(stored, nodes) };
	}

	/** It was accepted once: limits that have changed since do not matter. */
	#planOf({ definition }: StoredWorkflow): Plan {
		const any = Number.POSITIVE_INFINITY;
		const asAccepted = { nodesMax: any, edgesMax: any, definitionBytesMax: any, attemptsMax: any };
		const times = { backoffMsMax: any, timeoutMsMax: any, scriptMsMax: any };
		return planOf(definition, { ...this.#limits, ...asAccepted, ...times }, true);
	}

	async list(query: Parameters<Workflows["list"]>[0], principal: Principal): Promise<WorkflowJson[]> {
		const { appId = principal.appId, ...rest } = query;
		if (appId !== undefined) checkedAppId(appId);
		if (appId !== undefined && !seesApp(principal, appId))
			throw new NexusError("forbidden", `this token belongs to the application ${principal.appId}, not to ${appId}`);
		const rows = await this.#deps.rows.workflows.list({ ...rest, appId });
		return Promise.all(rows.map((stored) => this.#listed(stored)));
	}

	async #listed(stored: Omit<StoredWorkflow, "definition">): Promise<WorkflowJson> {
		const live = this.#running.get(stored.id) ?? this.#waiting.get(stored.id);
		if (live) return workflowJson(stored, live.plan, live.run);
		const known = this.#ended.get(stored.id);
		if (known) return known;
		const nodes = await this.#deps.rows.workflows.statuses(stored.id);
		const { run } = restored(stored, nodes);
		const workflow = workflowJson(stored, await this.#shapeOf(stored.id, nodes), run);
		return isOver(workflow) ? this.#ended.keep(workflow) : workflow;
	}

	/** As it is stored with the nodes. Only one of an older version is planned again. */
	async #shapeOf(id: string, nodes: readonly StoredNode[]): Promise<{ nodes: readonly NodeShape[] }> {
		const shapes = nodes.flatMap(({ shape }) => (shape === undefined ? [] : [shape as NodeShape]));
		if (shapes.length === nodes.length) return { nodes: shapes };
		const stored = await this.#deps.rows.workflows.get(id);
		return stored ? this.#planOf(stored) : { nodes: [] };
	}

	async cancel(id: string, reason: string, principal: Principal): Promise<WorkflowJson> {
		await this.#of(id, principal);
		const execution = this.#running.get(id) ?? this.#waiting.get(id);
		execution?.cancel(reason, principal.address);
		await execution?.over;
		const { workflow } = await this.#of(id, principal);
		if (isOver(workflow)) return workflow;
		throw new NexusError("unavailable", `${id} is not run by this daemon: try again once it was taken over`);
	}

	async cursor(id: string, after: number | undefined, principal: Principal): Promise<Cursor> {
		const { bus, rows } = this.#deps;
		const stored = await rows.workflows.get(id);
		if (!stored || !seesApp(principal, stored.appId))
			throw gone("workflow", id, LOG_KINDS.workflow.keptMs, this.#deps.clock.now());
		const info = await bus.describe(id);
		if (!info)
			throw new NexusError("expired", `the events of ${id} were removed by retention; read the workflow itself`);
		const newest = Math.max(0, info.head - 1);
		const from = info.sealedAt === undefined ? (after ?? newest) : Math.min(after ?? newest, newest);
		if (from > info.head) throw new NexusError("invalid", `${id} has ${info.head} events; there is none after ${from}`);
		return eventCursor((place) => bus.cursor({ log: id }, place), from);
	}

	async recover(): Promise<number> {
		const { bus, rows, log } = this.#deps;
		const left = await bus.list({ kind: "workflow", orphaned: true });
		let recovered = 0;
		// Oldest first: those that waited go on waiting in their order.
		for (const { log: id } of left.toReversed()) {
			const stored = await rows.workflows.get(id);
			if (!stored) continue;
			try {
				const { plan, run, outputs } = await this.#restore(stored);
				const writer = await bus.reopen(id);
				this.#take({ head: headOf(stored), principal: principalOf(stored), plan, run, outputs, writer });
				recovered++;
			} catch (cause) {
				log.error({ err: cause, workflow: id }, "a workflow that was left behind cannot go on");
			}
		}
		return recovered;
	}

	async close(deadlineMs: number): Promise<void> {
		this.#isClosing = true;
		const all = [...this.#running.values(), ...this.#waiting.values()];
		await within(this.#deps.clock, deadlineMs, Promise.all(all.map((execution) => execution.close())));
		for (const execution of all) execution.leave();
		this.#scripts?.close();
	}
}

function countOf(executions: ReadonlyMap<string, WorkflowExecution>, appId: string): number {
	let count = 0;
	for (const { head } of executions.values()) if (head.appId === appId) count++;
	return count;
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
