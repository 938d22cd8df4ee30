/** Keeps the channel lab up to date: polls the platforms, follows the run as the page does, and sends the person's commands. */

import type { Stream } from "@nexus-stream/client";
import type { LabFaultKind } from "@nexus-stream/protocol/api";
import { channelName } from "../adapters/channels.tsx";
import { api, followRun } from "../app/api.ts";
import { createPage, type PageContext, type PageHandle, type PageSource, type PageState } from "../ui/page.ts";
import { after, type Delay, type ScheduleFrame } from "../ui/timing.ts";
import { chosenOf, FAULTS, type LabView, NEW_LAB, pollDelay } from "./lab.ts";

/** Long enough to be read. */
const NOTICE_MS = 6000;
const RETRY_MS = 2000;

export type LabActions = LabFeed["actions"];

export type LabPage = PageHandle<LabView, LabActions>;

/** `before`: the view of an earlier visit, whose choices and text are kept. */
export const openLab = (context: PageContext, before = NEW_LAB): LabPage =>
	createPage({
		initial: { ...NEW_LAB, excluded: before.excluded, text: before.text },
		context,
		connect: (page) => new LabFeed(page, context.schedule),
	});

class LabFeed implements PageSource<unknown> {
	readonly actions = {
		run: (text: string) => void this.#run(text),
		stop: () => {
			const { runId } = this.#page.newest;
			if (runId !== undefined) void this.#send(() => api.abort(runId));
		},
		fault: (channel: string, kind: LabFaultKind) => {
			const effect = FAULTS.find((fault) => fault.kind === kind)?.title ?? kind;
			void this.#send(() => api.labFault({ channel, kind, count: 1 }), `${channelName(channel)} ${effect}.`);
		},
		/** Puts a question to the chosen platforms. */
		ask: (text: string) => void this.#send(() => api.labQuestion({ text, channels: chosenOf(this.#page.newest) })),
		press: (channel: string, message: string, label: string) =>
			void this.#send(() => api.labPress({ channel, message, label })),
		choose: (channel: string, on: boolean) => {
			const excluded = new Set(this.#page.newest.excluded);
			if (on) excluded.delete(channel);
			else excluded.add(channel);
			this.#page.change({ excluded });
		},
		retry: () => this.#page.reload(),
	};
	readonly #page: PageState<LabView>;
	readonly #schedule: ScheduleFrame;
	#stream: Stream | undefined;

	constructor(page: PageState<LabView>, schedule: ScheduleFrame) {
		this.#page = page;
		this.#schedule = schedule;
	}

	async load(): Promise<Delay> {
		const page = this.#page;
		const before = page.newest;
		const state = await api.labState();
		page.change({ failure: undefined, state, skewMs: state.now - Date.now() });
		// A state that was requested before a run began does not name it.
		const { isStarting, runId } = page.newest;
		if (!before.isStarting && !isStarting && before.runId === runId) this.#follow(state.run_id);
		return pollDelay(page.newest);
	}

	/** A lab that has answered before is probably restarting with its daemon. */
	retryMs(): Delay {
		return this.#page.newest.state && RETRY_MS;
	}

	/** Reads the run as one more reader of its stream. */
	#follow(runId: string | undefined): void {
		const page = this.#page;
		// The response may arrive after the page was closed.
		if (page.isClosed || page.newest.runId === runId) return;
		this.#stream?.send({ type: "stop" });
		page.change({ runId, web: undefined });
		if (runId === undefined) return;
		void this.#readText(runId);
		this.#stream = followRun(runId, this.#schedule, {
			onView: (web) => page.newest.runId === runId && page.change({ web }),
			onPhase: (phase) => phase === "ended" && page.reload(),
		});
	}

	/** Reads the message of a run that another tab, or this one before a reload, has started. */
	async #readText(runId: string): Promise<void> {
		try {
			const { messages } = await api.run(runId);
			const text = messages.find(({ role }) => role === "user")?.text;
			if (text !== undefined && this.#page.newest.runId === runId) this.#page.change({ text });
		} catch (cause) {
			console.warn(`nexus: the message of ${runId} could not be read:`, this.#page.messageOf(cause));
		}
	}

	async #run(text: string): Promise<void> {
		const page = this.#page;
		page.change({ isStarting: true, text, notice: undefined });
		// Shows the adapters starting, if the lab has to start first.
		page.reload();
		try {
			const { run_id: runId } = await api.lab({ text, channels: chosenOf(page.newest) });
			page.change({ isStarting: false });
			this.#follow(runId);
		} catch (cause) {
			page.change({ isStarting: false });
			this.#show({ tone: "bad", text: page.messageOf(cause) });
		}
		page.reload();
	}

	async #send(request: () => Promise<unknown>, done?: string): Promise<void> {
		try {
			await request();
			if (done !== undefined) this.#show({ tone: "quiet", text: done });
		} catch (cause) {
			this.#show({ tone: "bad", text: this.#page.messageOf(cause) });
		}
		this.#page.reload();
	}

	#show(notice: NonNullable<LabView["notice"]>): void {
		const page = this.#page;
		page.change({ notice });
		after(NOTICE_MS, () => page.newest.notice === notice && page.change({ notice: undefined }));
	}

	close(): void {
		this.#stream?.send({ type: "stop" });
	}
}
