/** The pages other than the chat: how each is opened, drawn and titled. */

import type { VNode } from "preact";
import { openAdapters } from "../adapters/adapters.ts";
import { Adapters } from "../adapters/adapters-page.tsx";
import { Inspector } from "../inspector/inspector.tsx";
import { openInspector } from "../inspector/inspector-feed.ts";
import type { LabView } from "../lab/lab.ts";
import { openLab } from "../lab/lab-feed.ts";
import { Lab } from "../lab/lab-page.tsx";
import { openMemory } from "../memory/memory.ts";
import { Memory } from "../memory/memory-page.tsx";
import type { PageContext } from "../ui/page.ts";
import { openWorkflow } from "../workflows/workflow-feed.ts";
import { Workflow } from "../workflows/workflow-page.tsx";
import { openWorkflows, type WorkflowsView } from "../workflows/workflows.ts";
import { Workflows } from "../workflows/workflows-page.tsx";
import type { PageRoute } from "./route.ts";

export interface OpenPage {
	/** May change while the page is open; reads signals. */
	title(): string;
	/** `engine`: the engine that answers, once the daemon has named it. */
	draw(engine: string | undefined): VNode;
	close(): void;
}

export class PageOpener {
	readonly #context: PageContext;
	/** The last views of pages that start from them at the next visit. */
	#lab: LabView | undefined;
	#workflows: WorkflowsView | undefined;

	constructor(context: PageContext) {
		this.#context = context;
	}

	/** Undefined for the routes of the chat. */
	open(route: PageRoute): OpenPage | undefined {
		switch (route.name) {
			case "home":
			case "chat":
				return undefined;
			case "run":
				return this.#openRun(route.runId);
			case "lab":
				return this.#openLab();
			case "adapters": {
				const page = openAdapters(this.#context);
				return { title: () => "Adapters", draw: () => <Adapters page={page} />, close: page.close };
			}
			case "memory": {
				const page = openMemory(this.#context);
				return { title: () => "Memory", draw: () => <Memory page={page} />, close: page.close };
			}
			case "workflows":
				return this.#openWorkflows();
			case "workflow":
				return this.#openWorkflow(route.workflowId);
			default:
				return route satisfies never;
		}
	}

	#openRun(runId: string): OpenPage {
		const page = openInspector(runId, this.#context);
		return { title: () => `Run ${runId}`, draw: () => <Inspector key={runId} page={page} />, close: page.close };
	}

	#openLab(): OpenPage {
		const page = openLab(this.#context, this.#lab);
		const close = () => {
			this.#lab = page.view.peek();
			page.close();
		};
		return { title: () => "Channel lab", draw: (engine) => <Lab page={page} engine={engine} />, close };
	}

	#openWorkflows(): OpenPage {
		const page = openWorkflows(this.#context, this.#workflows);
		const close = () => {
			this.#workflows = page.view.peek();
			page.close();
		};
		return { title: () => "Workflows", draw: () => <Workflows page={page} />, close };
	}

	#openWorkflow(workflowId: string): OpenPage {
		const page = openWorkflow(workflowId, this.#context);
		const title = () => page.view.value.workflow?.name || `Workflow ${workflowId}`;
		return { title, draw: () => <Workflow key={workflowId} page={page} />, close: page.close };
	}
}
