/** The pages other than the chat: how each is loaded, opened, drawn and titled. A chat waits for the code of none of them. */

import { signal } from "@preact/signals";
import type { VNode } from "preact";
import type { LabView } from "../lab/lab.ts";
import { Head, PageFrame } from "../ui/list-page.tsx";
import type { PageContext, PageHandle } from "../ui/page.ts";
import { FailureNotice } from "../ui/status.tsx";
import type { WorkflowView } from "../workflows/workflow.ts";
import type { WorkflowsView } from "../workflows/workflows.ts";
import type { PageRoute } from "./route.ts";

export interface OpenPage {
	/** May change while the page is open; reads signals. */
	title(): string;
	/** `engine`: the engine that answers, once the daemon has named it. */
	draw(engine: string | undefined): VNode;
	close(): void;
}

interface OpenedCode<View, Actions> {
	page: PageHandle<View, Actions>;
	draw(engine: string | undefined): VNode;
	/** Where the title depends on the view. */
	title?(view: View): string;
	onClose?(view: View): void;
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
			case "run":
				return lazy(`Run ${route.runId}`, import("../inspector/inspector.tsx"), ({ Inspector, openInspector }) => {
					const page = openInspector(route.runId, context);
					return { page, draw: () => <Inspector key={route.runId} page={page} /> };
				});
			case "lab":
				return lazy("Channel lab", import("../lab/lab-page.tsx"), ({ Lab, openLab }) => {
					const page = openLab(context, this.#lab);
					const onClose = (view: LabView) => {
						this.#lab = view;
					};
					return { page, draw: (engine) => <Lab page={page} engine={engine} />, onClose };
				});
			case "adapters":
				return lazy("Adapters", import("../adapters/adapters-page.tsx"), ({ Adapters, openAdapters }) => {
					const page = openAdapters(context);
					return { page, draw: () => <Adapters page={page} /> };
				});
			case "memory":
				return lazy("Memory", import("../memory/memory.tsx"), ({ Memory, openMemory }) => {
					const page = openMemory(context);
					return { page, draw: () => <Memory page={page} /> };
				});
			case "workflows":
				return lazy("Workflows", import("../workflows/workflows-page.tsx"), ({ openWorkflows, Workflows }) => {
					const page = openWorkflows(context, this.#workflows);
					const onClose = (view: WorkflowsView) => {
						this.#workflows = view;
					};
					return { page, draw: () => <Workflows page={page} />, onClose };
				});
			case "workflow":
				return openWorkflow(route.workflowId, context);
			default:
				return route satisfies never;
		}
	}
}

const openWorkflow = (workflowId: string, context: PageContext): OpenPage =>
	lazy(`Workflow ${workflowId}`, import("../workflows/workflow-page.tsx"), (code) => {
		const page = code.openWorkflow(workflowId, context);
		const title = ({ workflow }: WorkflowView) => workflow?.name ?? "";
		return { page, title, draw: () => <code.Workflow key={workflowId} page={page} /> };
	});

/** A page that is opened once its code has arrived; until then only its title is shown. */
function lazy<Code, View, Actions>(
	title: string,
	loading: Promise<Code>,
	open: (code: Code) => OpenedCode<View, Actions>,
): OpenPage {
	const opened = signal<OpenedCode<View, Actions> | undefined>(undefined);
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
		title: () => opened.value?.title?.(opened.value.page.view.value) || title,
		draw: (engine) => opened.value?.draw(engine) ?? <Unloaded title={title} failed={failed.value} />,
		close() {
			isClosed = true;
			const { page, onClose } = opened.peek() ?? {};
			if (page) onClose?.(page.view.peek());
			page?.close();
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
