/** Workflow queries: from the rows, with the live ones as this daemon knows them. */

import { NexusError } from "@nexus-stream/protocol";
import { appToList, type Principal, seesApp } from "../kit/principal.ts";
import { type Plan, planOf } from "./plan.ts";
import type { WorkflowDefinitionJson, WorkflowJson, WorkflowLimits, Workflows, WorkflowViewJson } from "./port.ts";
import type { StoredNode, StoredWorkflow, WorkflowRows } from "./rows.ts";
import { isOver, type WorkflowRun } from "./run/run-state.ts";
import { type NodeShape, restored, withOutputs, workflowJson } from "./run/status.ts";

/** A workflow that this daemon runs, or that waits here. */
type FindLive = (id: string) => { plan: Plan; run: WorkflowRun } | undefined;

export class WorkflowReads {
	readonly #rows: WorkflowRows;
	readonly #limits: WorkflowLimits;
	readonly #live: FindLive;
	readonly #ended = new ListedWorkflows();

	constructor(rows: WorkflowRows, limits: WorkflowLimits, live: FindLive) {
		this.#rows = rows;
		this.#limits = limits;
		this.#live = live;
	}

	async find(id: string, principal: Principal): Promise<WorkflowViewJson | undefined> {
		const stored = await this.#rows.get(id);
		if (!stored || !seesApp(principal, stored.appId)) return undefined;
		const { plan, run, outputs } = await this.restore(stored);
		return {
			workflow: withOutputs(workflowJson(stored, plan, run), plan, outputs),
			definition: stored.definition as WorkflowDefinitionJson,
		};
	}

	/** As `find`, but `not_found` for one that is not there. */
	async get(id: string, principal: Principal): Promise<WorkflowJson> {
		const found = await this.find(id, principal);
		if (!found) throw new NexusError("not_found", `there is no workflow ${id}`);
		return found.workflow;
	}

	async restore(stored: StoredWorkflow) {
		const nodes = await this.#rows.nodes(stored.id);
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
		const rows = await this.#rows.list({ ...query, appId: appToList(principal, query.appId) });
		return Promise.all(rows.map((stored) => this.#listed(stored)));
	}

	async #listed(stored: Omit<StoredWorkflow, "definition">): Promise<WorkflowJson> {
		const live = this.#live(stored.id);
		if (live) return workflowJson(stored, live.plan, live.run);
		const known = this.#ended.get(stored.id);
		if (known) return known;
		const nodes = await this.#rows.statuses(stored.id);
		const { run } = restored(stored, nodes);
		const workflow = workflowJson(stored, await this.#shapeOf(stored.id, nodes), run);
		return isOver(workflow) ? this.#ended.keep(workflow) : workflow;
	}

	/** As it is stored with the nodes. Only one of an older version is planned again. */
	async #shapeOf(id: string, nodes: readonly StoredNode[]): Promise<{ nodes: readonly NodeShape[] }> {
		const shapes = nodes.flatMap(({ shape }) => (shape === undefined ? [] : [shape as NodeShape]));
		if (shapes.length === nodes.length) return { nodes: shapes };
		const stored = await this.#rows.get(id);
		return stored ? this.#planOf(stored) : { nodes: [] };
	}
}

/** Nodes of all kept workflows together; the workflows that were listed longest ago go first. */
const NODES_MAX = 20_000;

/** Workflows that have ended, as a list tells them: they never change, and reading a page of large ones again takes a tenth of a second. */
class ListedWorkflows {
	readonly #kept = new Map<string, WorkflowJson>();
	#nodes = 0;

	get(id: string): WorkflowJson | undefined {
		const found = this.#kept.get(id);
		if (!found) return undefined;
		this.#kept.delete(id);
		this.#kept.set(id, found);
		return found;
	}

	keep(workflow: WorkflowJson): WorkflowJson {
		this.#kept.set(workflow.workflow_id, workflow);
		this.#nodes += workflow.nodes.length;
		for (const [id, { nodes }] of this.#kept) {
			if (this.#nodes <= NODES_MAX) break;
			this.#kept.delete(id);
			this.#nodes -= nodes.length;
		}
		return workflow;
	}
}
