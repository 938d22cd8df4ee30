/** Follows one workflow to its end: its events, the outputs of its nodes, and the texts of the nodes that write. */

import type { Stream } from "@nexus-stream/client";
import type { Runtime, RuntimeEvent } from "@nexus-stream/client/runtime";
import { toNexusError } from "@nexus-stream/protocol";
import { followRun } from "../app/api.ts";
import { loadRuntime } from "../app/runtime.ts";
import { createPage, type PageContext, type PageHandle, type PageSource, type PageState } from "../ui/page.ts";
import { after, type Delay, type ScheduleFrame } from "../ui/timing.ts";
import { hasUnreadOutputs, newWorkflowView, textRunsOf, type WorkflowView, withEvent, withRead } from "./workflow.ts";

/** A browser allows few connections to a server (six over HTTP/1.1). Further texts are read when one of these has ended. */
const TEXTS_MAX = 3;
/** Outputs of nodes that complete within this time are read together. */
const READ_AFTER_MS = 200;
const RETRY_MS = 2000;

export type WorkflowPage = PageHandle<WorkflowView, WorkflowFeed["actions"]>;

export const openWorkflow = (workflowId: string, context: PageContext): WorkflowPage =>
	createPage({
		initial: newWorkflowView(workflowId),
		context,
		connect: (page) => new WorkflowFeed(page, context.schedule),
	});

class WorkflowFeed implements PageSource<unknown> {
	readonly actions = { cancel: () => void this.#cancel() };
	readonly #page: PageState<WorkflowView>;
	readonly #schedule: ScheduleFrame;
	readonly #closing = new AbortController();
	/** Set while a read is due. */
	#cancelRead: (() => void) | undefined;
	/** Until the first read has ended, any text could already be in an output. */
	#wasRead = false;
	/** Streams by run id; undefined once the stream has ended. */
	readonly #texts = new Map<string, Stream | undefined>();

	constructor(page: PageState<WorkflowView>, schedule: ScheduleFrame) {
		this.#page = page;
		this.#schedule = schedule;
		void this.#follow();
	}

	get #workflowId(): string {
		return this.#page.newest.workflowId;
	}

	async #follow(): Promise<void> {
		const page = this.#page;
		const { signal } = this.#closing;
		const workflowId = this.#workflowId;
		const onLive = () => page.change({ failure: undefined, link: "live" });
		try {
			const runtime = await loadRuntime();
			watchLink(runtime, { onLive, onDrop: () => page.change({ link: "reconnecting" }) }, signal);
			for await (const { workflow } of runtime.workflows.subscribeWorkflowEvents({ workflowId }, { signal })) {
				onLive();
				page.change(withEvent(page.newest, workflow!));
				this.#readTexts();
				this.#readSoon();
			}
			page.change({ link: "ended" });
		} catch (cause) {
			if (!signal.aborted) page.change({ link: "refused", failure: this.#messageOf(cause) });
		}
	}

	/** Reads the outputs, which are in no event. */
	async load(): Promise<Delay> {
		const page = this.#page;
		try {
			const { workflows } = await loadRuntime();
			const { workflow } = await workflows.getWorkflow({ workflowId: this.#workflowId });
			// Merged into the newest view, because events arrived meanwhile.
			page.change(withRead(page.newest, workflow!));
			this.#readSoon();
			return undefined;
		} catch (cause) {
			// The stream reports the same failure in more detail.
			console.warn(`nexus: the outputs of ${this.#workflowId} could not be read:`, this.#messageOf(cause));
			return page.newest.link === "refused" ? undefined : RETRY_MS;
		} finally {
			this.#wasRead = true;
			this.#readTexts();
		}
	}

	#readSoon(): void {
		if (this.#cancelRead || this.#page.isClosed || !hasUnreadOutputs(this.#page.newest)) return;
		this.#cancelRead = after(READ_AFTER_MS, () => {
			this.#cancelRead = undefined;
			this.#page.reload();
		});
	}

	#readTexts(): void {
		if (!this.#wasRead || this.#page.isClosed) return;
		for (const runId of textRunsOf(this.#page.newest)) {
			if ([...this.#texts.values()].filter(Boolean).length >= TEXTS_MAX) return;
			if (!this.#texts.has(runId)) this.#texts.set(runId, this.#openText(runId));
		}
	}

	#openText(runId: string): Stream {
		const page = this.#page;
		return followRun(runId, this.#schedule, {
			onView: (text) => page.change({ texts: { ...page.newest.texts, [runId]: text } }),
			onPhase: (phase) => {
				if (phase !== "ended" && phase !== "refused" && phase !== "lost") return;
				this.#texts.set(runId, undefined);
				this.#readTexts();
			},
		});
	}

	async #cancel(): Promise<void> {
		const page = this.#page;
		if (page.newest.canceling) return;
		page.change({ canceling: true, notice: undefined });
		try {
			const { workflows } = await loadRuntime();
			await workflows.cancelWorkflow({ workflowId: this.#workflowId });
		} catch (cause) {
			page.change({ notice: { tone: "bad", text: this.#messageOf(cause) } });
		}
		page.change({ canceling: false });
	}

	#messageOf(cause: unknown): string {
		const message = this.#page.messageOf(cause);
		const isMissing = toNexusError(cause).code === "not_found";
		return isMissing ? "There is no such workflow. It may have been removed by retention." : message;
	}

	close(): void {
		this.#closing.abort();
		this.#cancelRead?.();
		for (const stream of this.#texts.values()) stream?.send({ type: "stop" });
	}
}

/** Reports when the stream of events loses its connection, and when it has one again. */
function watchLink(runtime: Runtime, on: { onLive(): void; onDrop(): void }, signal: AbortSignal): void {
	const isEvents = ({ procedure }: RuntimeEvent) => procedure.endsWith("/SubscribeWorkflowEvents");
	const stops = [
		runtime.on("runtime.disconnected", (event) => isEvents(event) && on.onDrop()),
		runtime.on("runtime.reconnected", (event) => isEvents(event) && on.onLive()),
	];
	signal.addEventListener("abort", () => {
		for (const stop of stops) stop();
	});
}
