/** Reads all frames of one run, finished or not, through the same stream that a live reader follows. */

import type { FrameRecord } from "@nexus-stream/client";
import { type NexusError, type TraceJson, toNexusError } from "@nexus-stream/protocol";
import { api, openStream } from "../app/api.ts";
import type { ScheduleFrame } from "../chat/frame-clock.ts";
import { startPolling } from "../ui/poll.ts";
import type { InspectorState } from "./inspect.ts";

/** What one tab can hold without becoming slow. */
const RECORDS_MAX = 400_000;
const DELIVERIES_MAX = 50;
const LOG_ENTRIES_MAX = 500;
const AGAIN_MS = 1000;
const TRACE_TRIES_MAX = 5;

export interface InspectorFeedOptions {
	runId: string;
	onChange(state: InspectorState): void;
	onSignedOut(): void;
	schedule: ScheduleFrame;
}

export function openInspector(options: InspectorFeedOptions): { close(): void } {
	const { runId } = options;
	const records: FrameRecord[] = [];
	let state: InspectorState = { runId, records, count: 0, link: "connecting" };
	let due = false;
	let closed = false;

	function change(part: Partial<InspectorState>): void {
		state = { ...state, ...part };
		if (due || closed) return;
		due = true;
		options.schedule(() => {
			due = false;
			if (!closed) options.onChange({ ...state, count: records.length });
		});
	}

	async function loadLog(session: string): Promise<void> {
		try {
			const { entries } = await api.log(session, { run: runId, limit: LOG_ENTRIES_MAX });
			change({ log: entries });
		} catch (cause) {
			console.warn(`nexus: the log of ${runId} could not be read:`, toNexusError(cause).message);
		}
	}

	async function loadRow(): Promise<void> {
		try {
			const row = await api.run(runId);
			change({ row });
			void loadLog(row.session);
		} catch (cause) {
			const error = toNexusError(cause);
			if (error.code === "unauthenticated") options.onSignedOut();
			// The stream says it, too, and better.
			if (error.code !== "not_found") change({ error: error.message });
		}
	}

	/** Deliveries may outlast the run they carry, and the trace is whole only after them. */
	let traceTries = TRACE_TRIES_MAX;
	const poller = startPolling(async () => {
		try {
			const { deliveries } = await api.deliveries({ run: runId, limit: DELIVERIES_MAX });
			change({ deliveries });
			if (deliveries.some(({ state }) => state === "active")) return AGAIN_MS;
		} catch (cause) {
			console.warn(`nexus: the deliveries of ${runId} could not be read:`, toNexusError(cause).message);
			return undefined;
		}
		if (state.link !== "ended" || isWhole(state.row?.trace) || traceTries-- <= 0) return undefined;
		await loadRow();
		return AGAIN_MS;
	});

	const stream = openStream(
		{ run: runId },
		{
			onRecords(fresh) {
				// Without their text: a tab holds many of them.
				for (const { offset, frame } of fresh) records.push({ offset, frame });
				if (records.length > RECORDS_MAX) {
					stream.send({ type: "stop" });
					change({ error: `Only the first ${RECORDS_MAX.toLocaleString()} frames are shown.` });
				}
				change({});
			},
			onState(link) {
				change({ link: link.phase });
				if (link.phase === "ended") void loadRow().then(poller.now);
				if (link.phase === "refused") change({ error: refusal(link.error) });
			},
		},
	);
	void loadRow();

	return {
		close() {
			closed = true;
			poller.stop();
			stream.send({ type: "stop" });
		},
	};
}

const isWhole = (trace: TraceJson | undefined): boolean =>
	trace?.stages.some(({ stage }) => stage === "complete") ?? false;

function refusal(error: NexusError | undefined): string {
	if (error?.code === "expired") return "The frames of this run have been removed by retention; only its text is kept.";
	if (error?.code === "not_found") return "There is no such run. It may have been on another daemon or in other data.";
	return `The daemon refused to show this run (${error?.message ?? "no answer"}).`;
}
