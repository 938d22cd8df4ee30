/** Follows one workflow to its end: its events, what its nodes gave, and the texts of those that write. */

import { createRunFolds, type Stream } from "@nexus-stream/client";
import type { Runtime, RuntimeEvent } from "@nexus-stream/client/runtime";
import { type RunView, shownOf, toNexusError } from "@nexus-stream/protocol";
import { openStream } from "../app/api.ts";
import { loadRuntime } from "../app/runtime.ts";
import type { ScheduleFrame } from "../chat/frame-clock.ts";
import { startPolling } from "../ui/poll.ts";

import { hasUnreadOutputs, newWorkflowView, textRunsOf, type WorkflowView, withEvent, withRead } from "./workflow.ts";

/** A browser allows few connections to a server (six over HTTP/1.1). The others are read when one of these has ended. */
const TEXTS_MAX = 3;
/** Nodes that complete one after the other are read together. */
const READ_AFTER_MS = 200;
const AGAIN_MS = 2000;

export interface WorkflowFeed {
	cancel(): void;
	close(): void;
}

export interface WorkflowFeedOptions {
	workflowId: string;
	onChange(workflow: WorkflowView): void;
	onSignedOut(): void;
	schedule: ScheduleFrame;
}

export function openWorkflow({ workflowId, onChange, onSignedOut, schedule }: WorkflowFeedOptions): WorkflowFeed {
	let view = newWorkflowView(workflowId);
	let due = false;
	const closing = new AbortController();
	const { signal } = closing;
	let readTimer: ReturnType<typeof setTimeout> | undefined;
	/** Before it was, nobody knows which texts the outputs have. */
	let wasAsked = false;
	/** By the runs' ids; undefined once there is nothing more to read. */
	const texts = new Map<string, Stream | undefined>();

	function change(part: Partial<WorkflowView>): void {
		view = { ...view, ...part };
		if (due || signal.aborted) return;
		due = true;
		schedule(() => {
			due = false;
			if (!signal.aborted) onChange(view);
		});
	}

	function dropFailure(): void {
		const { failure: _, ...rest } = view;
		view = rest;
	}

	function live(): void {
		dropFailure();
		change({ link: "live" });
	}

	function wordsOf(cause: unknown): string {
		const error = toNexusError(cause);
		if (error.code === "unauthenticated" && !signal.aborted) onSignedOut();
		if (error.code === "not_found") return "There is no such workflow. It may have been removed by retention.";
		return error.message;
	}

	async function follow(): Promise<void> {
		try {
			const runtime = await loadRuntime();
			watchLink(runtime, { live, dropped: () => change({ link: "reconnecting" }) }, signal);
			for await (const { workflow } of runtime.workflows.subscribeWorkflowEvents({ workflowId }, { signal })) {
				live();
				change(withEvent(view, workflow!));
				readTexts();
				readSoon();
			}
			change({ link: "ended" });
		} catch (cause) {
			if (!signal.aborted) change({ link: "refused", failure: wordsOf(cause) });
		}
	}

	/** What nodes gave is in no event. */
	const reader = startPolling(async () => {
		try {
			const { workflows } = await loadRuntime();
			const { workflow } = await workflows.getWorkflow({ workflowId });
			// As it is now: events came meanwhile.
			change(withRead(view, workflow!));
			readSoon();
			return undefined;
		} catch (cause) {
			// The stream says it, too, and better.
			console.warn(`nexus: what ${workflowId} gave could not be read:`, wordsOf(cause));
			return view.link === "refused" ? undefined : AGAIN_MS;
		} finally {
			wasAsked = true;
			readTexts();
		}
	});

	function readSoon(): void {
		if (readTimer !== undefined || signal.aborted || !hasUnreadOutputs(view)) return;
		readTimer = setTimeout(() => {
			readTimer = undefined;
			reader.now();
		}, READ_AFTER_MS);
	}

	function readTexts(): void {
		if (!wasAsked) return;
		for (const runId of textRunsOf(view)) {
			if ([...texts.values()].filter(Boolean).length >= TEXTS_MAX) return;
			if (!texts.has(runId) && !signal.aborted) texts.set(runId, textOf(runId));
		}
	}

	function textOf(runId: string): Stream {
		const folds = createRunFolds();
		let drawn = false;
		const draw = () => {
			drawn = false;
			const text: RunView | undefined = folds.changed().at(-1);
			if (text) change({ texts: { ...view.texts, [runId]: shownOf(text) } });
		};
		return openStream(
			{ run: runId },
			{
				onRecords(records) {
					for (const { frame } of records) folds.push(frame);
					if (drawn) return;
					drawn = true;
					schedule(draw);
				},
				onState({ phase }) {
					if (phase !== "ended" && phase !== "refused" && phase !== "lost") return;
					texts.set(runId, undefined);
					readTexts();
				},
			},
		);
	}

	async function cancel(): Promise<void> {
		if (view.canceling) return;
		const { notice: _, ...rest } = view;
		view = rest;
		change({ canceling: true });
		try {
			const { workflows } = await loadRuntime();
			await workflows.cancelWorkflow({ workflowId });
			change({ canceling: false });
		} catch (cause) {
			change({ canceling: false, notice: wordsOf(cause) });
		}
	}

	void follow();
	return {
		cancel: () => void cancel(),
		close() {
			closing.abort();
			clearTimeout(readTimer);
			reader.stop();
			for (const stream of texts.values()) stream?.send({ type: "stop" });
		},
	};
}

/** Reports when the stream of events loses its connection, and when it has one again. */
function watchLink(runtime: Runtime, { live, dropped }: { live(): void; dropped(): void }, signal: AbortSignal): void {
	const isEvents = ({ procedure }: RuntimeEvent) => procedure.endsWith("/SubscribeWorkflowEvents");
	const stops = [
		runtime.on("runtime.disconnected", (event) => isEvents(event) && dropped()),
		runtime.on("runtime.reconnected", (event) => isEvents(event) && live()),
	];
	signal.addEventListener("abort", () => {
		for (const stop of stops) stop();
	});
}
