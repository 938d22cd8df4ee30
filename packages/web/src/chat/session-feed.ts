/** Keeps one open session up to date: its history, then its stream from exactly where the history ends. */

import { createRunFolds, type LinkState, type Stream, type StreamRecord } from "@nexus-stream/client";
import { injectedIn, type NexusError, type RunView, toNexusError } from "@nexus-stream/protocol";
import type { ReadonlySignal } from "@preact/signals";
import { api, openStream } from "../app/api.ts";
import { after } from "../ui/timing.ts";
import { Outbox, RunActions } from "./actions.ts";
import { openAsksOf } from "./approvals.ts";
import { type ChatState, loaded, startOver, unreadRunsOf, withLink, withOlder, withView } from "./chat.ts";
import { type ChatContext, ChatModel } from "./chat-model.ts";
import { HistoryFrames } from "./history-frames.ts";

const TURNS_PER_PAGE = 30;
const RETRY_MS = 3000;

/** An open session with its actions. */
export class ChatPage {
	readonly outbox: Outbox;
	readonly runs: RunActions;
	readonly frames: HistoryFrames;
	readonly #model: ChatModel;
	#folds = createRunFolds();
	#stream: Stream | undefined;
	#cancelRetry = () => {};
	#isDrawDue = false;
	/** The ids of the open approvals and questions. */
	#openAsks = "";
	#mayStartOver = false;

	constructor(session: string, context: ChatContext) {
		this.#model = new ChatModel(session, context);
		this.outbox = new Outbox(this.#model, async () => {
			if (this.#stream) this.#stream.send({ type: "hurry" });
			else await this.#load();
		});
		this.runs = new RunActions(this.#model);
		this.frames = new HistoryFrames(this.#model);
		void this.#load();
	}

	get session(): string {
		return this.#model.session;
	}

	get view(): ReadonlySignal<ChatState> {
		return this.#model.view;
	}

	reload(): void {
		void this.#load();
	}

	refreshQueue(): void {
		void this.#model.loadQueue();
	}

	link(type: "pause" | "resume" | "hurry"): void {
		this.#stream?.send({ type });
	}

	close(): void {
		this.#model.close();
		this.#cancelRetry();
		this.#stream?.send({ type: "stop" });
	}

	async #load(): Promise<void> {
		const model = this.#model;
		this.#cancelRetry();
		try {
			const page = await api.turns(this.session, { limit: TURNS_PER_PAGE });
			if (model.isClosed) return;
			model.change(loaded(model.newest, page, TURNS_PER_PAGE));
			this.#follow(page.stream_offset);
			void model.loadEvents();
			void model.loadPhase();
		} catch (cause) {
			const { code } = toNexusError(cause);
			const message = model.messageOf(cause);
			if (model.isClosed) return;
			// A session exists from its first message on.
			if (code === "not_found") model.change({ phase: "ready" });
			else model.change({ phase: "failed", error: message });
			// The daemon is probably restarting.
			if (code === "unavailable") this.#cancelRetry = after(RETRY_MS, () => void this.#load());
		}
	}

	async loadOlder(): Promise<void> {
		const model = this.#model;
		const oldest = model.newest.turns[0];
		if (!oldest || model.newest.older !== "some") return;
		model.change({ older: "loading" });
		try {
			const page = await api.turns(this.session, { limit: TURNS_PER_PAGE, before: oldest.runId });
			model.change(withOlder(model.newest, page, TURNS_PER_PAGE));
		} catch (cause) {
			model.messageOf(cause);
			model.change({ older: "some" });
		}
	}

	#follow(after: number): void {
		this.#stream?.send({ type: "stop" });
		// The new stream starts with the first record of the live run again.
		this.#folds = createRunFolds();
		this.#stream = openStream(
			{ session: this.session },
			{ after, onRecords: (records) => this.#onRecords(records), onState: (state) => this.#onState(state) },
		);
	}

	#onState({ phase, error }: LinkState): void {
		const model = this.#model;
		if (model.isClosed) return;
		model.change(withLink(model.newest, phase));
		if (phase === "live") {
			this.#mayStartOver = true;
			// No stream carries messages that other clients queued while the link was down.
			void model.loadQueue();
			for (const runId of unreadRunsOf(model.newest)) void model.loadRow(runId);
		} else if (phase === "refused") this.#onRefused(error);
	}

	/** The stream's offset may be gone: removed by retention, or the daemon has other data now. Then history is read again, once. */
	#onRefused(error: NexusError | undefined): void {
		if (error?.code === "unauthenticated") this.#model.messageOf(error);
		else if (this.#mayStartOver) {
			this.#mayStartOver = false;
			this.#model.change(startOver(this.#model.newest));
			void this.#load();
		}
	}

	#onRecords(records: readonly StreamRecord[]): void {
		const model = this.#model;
		for (const { frame } of records) {
			const { runId, began, settled } = this.#folds.push(frame);
			const joined = frame.type === "stream.chunk" && !frame.is_partial && injectedIn(frame.payload) !== undefined;
			if (frame.type === "stream.end" && frame.phase !== undefined && frame.phase !== model.newest.works?.name)
				void model.loadPhase();
			if (!began && !settled && !joined) continue;
			void model.loadRow(runId);
			void model.loadEvents();
			void model.loadDecisions();
			if (joined) void model.loadQueue();
			else void model.loadPhase();
		}
		if (this.#isDrawDue) return;
		this.#isDrawDue = true;
		model.context.schedule(() => {
			this.#isDrawDue = false;
			if (model.isClosed) return;
			const views = this.#folds.changed();
			model.change(views.reduce(withView, model.newest));
			this.#noteAsks(views);
		});
	}

	/** Pending approvals are listed for all sessions, and change with the frames of this one. */
	#noteAsks(views: readonly RunView[]): void {
		const ids = views.flatMap((view) => openAsksOf(view).map(({ id }) => id)).join();
		if (views.length === 0 || ids === this.#openAsks) return;
		this.#openAsks = ids;
		this.#model.context.onRunChange();
	}
}
