/** The pages other than the chat: how each is loaded, opened, drawn and titled. A chat waits for the code of none of them. */

import { signal } from "@preact/signals";
import type { VNode } from "preact";
import type { LabView } from "../lab/lab.ts";
import { Head, PageFrame } from "../ui/list-page.tsx";
import type { PageContext } from "../ui/page.ts";
import { FailureNotice } from "../ui/status.tsx";
import type { WorkflowsView } from "../workflows/workflows.ts";
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
		const context = this.#context;
		switch (route.name) {
			case "home":
			case "chat":
				return undefined;
			case "run": {
				const { runId } = route;
				const title = `Run ${runId}`;
				return lazy(title, import("../inspector/inspector.tsx"), ({ Inspector, openInspector }) => {
					const page = openInspector(runId, context);
					return { title: () => title, draw: () => <Inspector key={runId} page={page} />, close: page.close };
				});
			}
			case "lab":
				return this.#openLab();
			case "adapters":
				return lazy("Adapters", import("../adapters/adapters-page.tsx"), ({ Adapters, openAdapters }) => {
					const page = openAdapters(context);
					return { title: () => "Adapters", draw: () => <Adapters page={page} />, close: page.close };
				});
			case "memory":
				return lazy("Memory", import("../memory/memory-page.tsx"), ({ Memory, openMemory }) => {
					const page = openMemory(context);
					return { title: () => "Memory", draw: () => <Memory page={page} />, close: page.close };
				});
			case "workflows":
				return this.#openWorkflows();
			case "workflow":
				return this.#openWorkflow(route.workflowId);
			default:
				return route satisfies never;
		}
	}

	#openLab(): OpenPage {
		return lazy("Channel lab", import("../lab/lab-page.tsx"), ({ Lab, openLab }) => {
			const page = openLab(this.#context, this.#lab);
			const close = () => {
				this.#lab = page.view.peek();
				page.close();
			};
			return { title: () => "Channel lab", draw: (engine) => <Lab page={page} engine={engine} />, close };
		});
	}

	#openWorkflows(): OpenPage {
		return lazy("Workflows", import("../workflows/workflows-page.tsx"), ({ openWorkflows, Workflows }) => {
			const page = openWorkflows(this.#context, this.#workflows);
			const close = () => {
				this.#workflows = page.view.peek();
				page.close();
			};
			return { title: () => "Workflows", draw: () => <Workflows page={page} />, close };
		});
	}

	#openWorkflow(workflowId: string): OpenPage {
		const unnamed = `Workflow ${workflowId}`;
		return lazy(unnamed, import("../workflows/workflow-page.tsx"), ({ openWorkflow, Workflow }) => {
			const page = openWorkflow(workflowId, this.#context);
			const title = () => page.view.value.workflow?.name || unnamed;
			return { title, draw: () => <Workflow key={workflowId} page={page} />, close: page.close };
		});
	}
}

/** A page that is opened once its code has arrived; until then only its title is shown. */
function lazy<Code>(title: string, loading: Promise<Code>, open: (code: Code) => OpenPage): OpenPage {
	const opened = signal<OpenPage | undefined>(undefined);
	const failed = signal(false);
	let isClosed = false;
	loading.then(
		(code) => {
			if (!isClosed) opened.value = open(code);
		},
		(cause: unknown) => {
			console.error(`nexus: the page "${title}" could not be loaded:`, cause);
			failed.value = true;
		},
	);
	return {
		title: () => opened.value?.title() ?? title,
		draw: (engine) => opened.value?.draw(engine) ?? <Unloaded title={title} failed={failed.value} />,
		close() {
			isClosed = true;
			opened.peek()?.close();
		},
	};
}

const Unloaded = ({ title, failed }: { title: string; failed: boolean }) => (
	<PageFrame class="lists" head={<Head title={title} />}>
		{failed ? (
			// A daemon of another version has its code under other names: only a reload finds them.
			<FailureNotice title="This page could not be loaded." onRetry={() => location.reload()} />
		) : (
			<p class="note">Loading…</p>
		)}
	</PageFrame>
);
