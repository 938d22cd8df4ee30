/** Workflows that have ended, as a list tells them: they never change, and reading a page of large ones again takes a tenth of a second. */

import type { WorkflowJson } from "./port.ts";

/** Nodes of all kept workflows together; the workflows that were listed longest ago go first. */
const NODES_MAX = 20_000;

export class ListedWorkflows {
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
