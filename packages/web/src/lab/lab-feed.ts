/** Keeps the channel lab up to date: asks what the platforms show, follows the run as the page would, and passes on what a person wants. */

import { createRunFolds, type Stream } from "@nexus-stream/client";
import { type LabFaultKind, shownOf, toNexusError } from "@nexus-stream/protocol";
import { channelName } from "../adapters/channels.ts";
import { api, openStream } from "../app/api.ts";
import type { ScheduleFrame } from "../chat/frame-clock.ts";
import { startPolling } from "../ui/poll.ts";
import { chosenOf, FAULTS, type LabView, NEW_LAB, pollDelay } from "./lab.ts";

/** Long enough to be read. */
const NOTICE_MS = 6000;
/** A lab that was there is soon back: its daemon is being restarted. */
const AGAIN_MS = 2000;

export interface LabFeed {
	run(text: string): void;
	stop(): void;
	fault(channel: string, kind: LabFaultKind): void;
	/** Puts a question to the chosen platforms. */
	ask(text: string): void;
	press(channel: string, message: string, label: string): void;
	choose(channel: string, on: boolean): void;
	retry(): void;
	close(): void;
}

export interface LabFeedOptions {
	/** Choices that an earlier visit made. */
	before: LabView | undefined;
	onChange(lab: LabView): void;
	onSignedOut(): void;
	schedule: ScheduleFrame;
}

export function openLab({ before, onChange, onSignedOut, schedule }: LabFeedOptions): LabFeed {
	let lab: LabView = { ...NEW_LAB, ...(before && { left: before.left, ...(before.text && { text: before.text }) }) };
	let stream: Stream | undefined;
	let due = false;
	let closed = false;

	function change(part: Partial<LabView>): void {
		lab = { ...lab, ...part };
		if (due || closed) return;
		due = true;
		schedule(() => {
			due = false;
			if (!closed) onChange(lab);
		});
	}

	function wordsOf(cause: unknown): string {
		const error = toNexusError(cause);
		if (error.code === "unauthenticated") onSignedOut();
		return error.message;
	}

	async function look(): Promise<number | undefined> {
		const before = { isStarting: lab.isStarting, runId: lab.runId };
		try {
			const state = await api.labState();
			const { failure: _, ...rest } = lab;
			lab = rest;
			change({ state, skewMs: state.now - Date.now() });
			// What was asked before a run began knows nothing of it.
			if (!before.isStarting && !lab.isStarting && before.runId === lab.runId) follow(state.run_id);
			return pollDelay(lab);
		} catch (cause) {
			change({ failure: wordsOf(cause) });
			return lab.state && AGAIN_MS;
		}
	}

	/** The page is one more reader of the same run. */
	function follow(runId: string | undefined): void {
		// What was asked may be answered when nobody looks any more.
		if (closed || lab.runId === runId) return;
		stream?.send({ type: "stop" });
		const { web: _web, runId: _runId, ...rest } = lab;
		lab = rest;
		change(runId === undefined ? {} : { runId });
		if (runId === undefined) return;
		void readText(runId);
		const folds = createRunFolds();
		let viewDue = false;
		stream = openStream(
			{ run: runId },
			{
				onRecords(records) {
					for (const { frame } of records) folds.push(frame);
					if (viewDue) return;
					viewDue = true;
					schedule(() => {
						viewDue = false;
						const web = folds.changed().at(-1);
						if (web && lab.runId === runId) change({ web: shownOf(web) });
					});
				},
				onState: (link) => link.phase === "ended" && poller.now(),
			},
		);
	}

	/** Somebody else may have begun it, or this page before it was reloaded. */
	async function readText(runId: string): Promise<void> {
		try {
			const { messages } = await api.run(runId);
			const text = messages.find(({ role }) => role === "user")?.text;
			if (text !== undefined && lab.runId === runId) change({ text });
		} catch (cause) {
			console.warn(`nexus: the message of ${runId} could not be read:`, wordsOf(cause));
		}
	}

	async function run(text: string): Promise<void> {
		dropNotice();
		change({ isStarting: true, text });
		// It may have to be started again: that is watched meanwhile.
		poller.now();
		try {
			const { run_id: runId } = await api.lab({ text, channels: chosenOf(lab) });
			change({ isStarting: false });
			follow(runId);
		} catch (cause) {
			change({ isStarting: false });
			show({ tone: "bad", text: wordsOf(cause) });
		}
		poller.now();
	}

	async function tell(work: () => Promise<unknown>, done?: string): Promise<void> {
		try {
			await work();
			if (done !== undefined) show({ tone: "quiet", text: done });
		} catch (cause) {
			show({ tone: "bad", text: wordsOf(cause) });
		}
		poller.now();
	}

	function show(notice: NonNullable<LabView["notice"]>): void {
		change({ notice });
		setTimeout(() => lab.notice === notice && dropNotice(), NOTICE_MS);
	}

	function dropNotice(): void {
		const { notice: _, ...rest } = lab;
		lab = rest;
		change({});
	}

	const poller = startPolling(look);
	return {
		run: (text) => void run(text),
		stop() {
			const { runId } = lab;
			if (runId !== undefined) void tell(() => api.abort(runId));
		},
		fault(channel, kind) {
			const what = FAULTS.find((fault) => fault.kind === kind)?.title ?? kind;
			void tell(() => api.labFault({ channel, kind, count: 1 }), `${channelName(channel)} ${what}.`);
		},
		ask: (text) => void tell(() => api.labQuestion({ text, channels: chosenOf(lab) })),
		press: (channel, message, label) => void tell(() => api.labPress({ channel, message, label })),
		choose(channel, on) {
			const left = new Set(lab.left);
			if (on) left.delete(channel);
			else left.add(channel);
			change({ left });
		},
		retry: poller.now,
		close() {
			closed = true;
			poller.stop();
			stream?.send({ type: "stop" });
		},
	};
}
