/** Reads all frames of one run, finished or not, through the same stream that a live reader follows. */

import type { FrameRecord, LinkState, Stream } from "@nexus-stream/client";
import { type NexusError, toNexusError } from "@nexus-stream/protocol";
import type { TraceJson } from "@nexus-stream/protocol/api";
import { api, openStream } from "../app/api.ts";
import { createPage, type PageContext, type PageHandle, type PageSource, type PageState } from "../ui/page.ts";
import type { Delay } from "../ui/timing.ts";
import type { InspectorState } from "./inspect.ts";

/** More frames would make the tab slow. */
const RECORDS_MAX = 400_000;
const DELIVERIES_MAX = 50;
const LOG_ENTRIES_MAX = 500;
const RETRY_MS = 1000;
const TRACE_TRIES_MAX = 5;

export type InspectorPage = PageHandle<InspectorState, undefined>;

export const openInspector = (runId: string, context: PageContext): InspectorPage =>
	createPage<InspectorState, undefined>({
		initial: { runId, records: [], count: 0, link: "connecting" },
		context,
		connect: (page) => new InspectorFeed(page),
	});

class InspectorFeed implements PageSource<undefined> {
	readonly actions = undefined;
	readonly #page: PageState<InspectorState>;
	readonly #runId: string;
	readonly #records: FrameRecord[] = [];
	readonly #stream: Stream;
	#traceTries = TRACE_TRIES_MAX;

	constructor(page: PageState<InspectorState>) {
		this.#page = page;
		this.#runId = page.newest.runId;
		page.change({ records: this.#records });
		this.#stream = openStream(
			{ run: this.#runId },
			{ onRecords: (fresh) => this.#onRecords(fresh), onState: (link) => this.#onState(link) },
		);
		void this.#loadRow();
	}

	#onRecords(fresh: readonly FrameRecord[]): void {
		// Without the encoded text of each record, which would double the memory.
		for (const { offset, frame } of fresh) this.#records.push({ offset, frame });
		this.#page.change({ count: this.#records.length });
		if (this.#records.length <= RECORDS_MAX) return;
		this.#stream.send({ type: "stop" });
		this.#page.change({ failure: `Only the first ${RECORDS_MAX.toLocaleString()} frames are shown.` });
	}

	#onState({ phase, error }: LinkState): void {
		this.#page.change({ link: phase });
		if (phase === "ended") void this.#loadRow().then(this.#page.reload);
		if (phase === "refused") this.#page.change({ failure: refusal(error) });
	}

	/** Polls the deliveries, which may outlast the run, and then the trace, which is complete only after them. */
	async load(): Promise<Delay> {
		try {
			const { deliveries } = await api.deliveries({ run: this.#runId, limit: DELIVERIES_MAX });
			this.#page.change({ deliveries });
			if (deliveries.some(({ state }) => state === "active")) return RETRY_MS;
		} catch (cause) {
			console.warn(`nexus: the deliveries of ${this.#runId} could not be read:`, toNexusError(cause).message);
			return undefined;
		}
		const { link, row } = this.#page.newest;
		if (link !== "ended" || isComplete(row?.trace) || this.#traceTries-- <= 0) return undefined;
		await this.#loadRow();
		return RETRY_MS;
	}

	async #loadRow(): Promise<void> {
		try {
			const row = await api.run(this.#runId);
			this.#page.change({ row });
			void this.#loadLog(row.session);
		} catch (cause) {
			const message = this.#page.messageOf(cause);
			// The stream reports a missing run in more detail.
			if (toNexusError(cause).code !== "not_found") this.#page.change({ failure: message });
		}
	}

	async #loadLog(session: string): Promise<void> {
		try {
			const { entries } = await api.log(session, { run: this.#runId, limit: LOG_ENTRIES_MAX });
			this.#page.change({ log: entries });
		} catch (cause) {
			console.warn(`nexus: the log of ${this.#runId} could not be read:`, toNexusError(cause).message);
		}
	}

	close(): void {
		this.#stream.send({ type: "stop" });
	}
}

const isComplete = (trace: TraceJson | undefined): boolean =>
	trace?.stages.some(({ stage }) => stage === "complete") ?? false;

function refusal(error: NexusError | undefined): string {
	if (error?.code === "expired") return "The frames of this run have been removed by retention; only its text is kept.";
	if (error?.code === "not_found") return "There is no such run. It may have been on another daemon or in other data.";
	return `The daemon refused to show this run (${error?.message ?? "no answer"}).`;
}
