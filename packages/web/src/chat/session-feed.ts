/** Keeps one open session up to date: its history, then its stream from exactly where the history ends. */

import { createRunFolds, type LinkState, type Stream, type StreamRecord } from "@nexus-stream/client";
import {
	createFold,
	decodeFrame,
	injectedIn,
	type NexusError,
	type RunView,
	toNexusError,
} from "@nexus-stream/protocol";
import { api, openStream } from "../app/api.ts";
import { openAsksOf } from "./approvals.ts";
import { type ChatAction, type ChatState, hasLooseEnds, unreadRunsOf } from "./chat.ts";
import type { ScheduleFrame } from "./frame-clock.ts";
import { keepUnsent, unsentOf } from "./unsent.ts";

const TURNS_PER_PAGE = 30;
/** Longer runs are shown from the ledger; the inspector reads all of their frames. */
const FRAMES_IN_HISTORY_MAX = 100_000;
/** Few enough to be decoded without being felt. */
const FRAMES_PER_CALL = 4000;
const LOAD_AGAIN_MS = 3000;
const HISTORY_LOADS_MAX = 2;
const EVENTS_MAX = 100;
const DECISIONS_MAX = 100;

export interface SessionFeedOptions {
	session: string;
	dispatch(action: ChatAction): void;
	chat(): ChatState | undefined;
	schedule: ScheduleFrame;
	/** The daemon does not know this browser (any more). */
	onSignedOut(): void;
	/** A run began, settled or asks somebody: the list of sessions has changed, or what waits for a person. */
	onRunChange(): void;
}

export interface SessionFeed {
	readonly session: string;
	send(key: string, text: string): Promise<void>;
	/** Takes back a message that waits. */
	cancel(eventId: string): Promise<void>;
	loadOlder(): Promise<void>;
	/** Reads the frames of an old turn, for its cards and its checksums. */
	loadFrames(runId: string): void;
	refreshQueue(): Promise<void>;
	/** Reads again what can be done with a run. */
	refreshRun(runId: string): void;
	reload(): Promise<void>;
	link(input: "pause" | "resume" | "hurry"): void;
	close(): void;
}

export function openSession(options: SessionFeedOptions): SessionFeed {
	const { session, dispatch } = options;
	let folds = createRunFolds();
	let loadTimer: ReturnType<typeof setTimeout> | undefined;
	const waitingLoads: string[] = [];
	const asked = new Set<string>();
	let loads = 0;
	let stream: Stream | undefined;
	let viewsDue = false;
	let openAsks = "";
	let mayStartOver = false;
	let closed = false;

	function failed(cause: unknown): NexusError {
		const error = toNexusError(cause);
		if (error.code === "unauthenticated") options.onSignedOut();
		return error;
	}

	async function load(): Promise<void> {
		clearTimeout(loadTimer);
		try {
			const page = await api.turns(session, { limit: TURNS_PER_PAGE });
			if (closed) return;
			dispatch({ type: "loaded", page, limit: TURNS_PER_PAGE });
			follow(page.stream_offset);
			void loadEvents();
			void loadPhase();
		} catch (cause) {
			const error = failed(cause);
			if (closed) return;
			// A session exists from its first message on.
			if (error.code === "not_found") dispatch({ type: "missing" });
			else dispatch({ type: "load-failed", message: error.message });
			// A daemon that is being restarted is soon there.
			if (error.code === "unavailable") loadTimer = setTimeout(() => void load(), LOAD_AGAIN_MS);
		}
	}

	function follow(after: number): void {
		stream?.send({ type: "stop" });
		// The new stream begins with the live run's first record again.
		folds = createRunFolds();
		stream = openStream({ session }, { after, onRecords, onState });
	}

	function onState(state: LinkState): void {
		if (closed) return;
		dispatch({ type: "link", phase: state.phase });
		if (state.phase === "live") {
			mayStartOver = true;
			// Messages that were queued from elsewhere while the link was down are on no stream.
			void refreshQueue();
			const chat = options.chat();
			for (const runId of chat ? unreadRunsOf(chat) : []) void loadRow(runId);
		} else if (state.phase === "refused") onRefused(state.error);
	}

	/** The place to go on from may be gone: removed by retention, or the daemon has other data now. Then history is read anew, once. */
	function onRefused(error: NexusError | undefined): void {
		if (error?.code === "unauthenticated") options.onSignedOut();
		else if (mayStartOver) {
			mayStartOver = false;
			dispatch({ type: "start-over" });
			void load();
		}
	}

	function onRecords(records: readonly StreamRecord[]): void {
		for (const { frame } of records) {
			const { runId, began, settled } = folds.push(frame);
			const joined = frame.type === "stream.chunk" && !frame.is_partial && injectedIn(frame.payload) !== undefined;
			if (frame.type === "stream.end" && frame.phase !== undefined && frame.phase !== options.chat()?.works?.name)
				void loadPhase();
			if (!began && !settled && !joined) continue;
			void loadRow(runId);
			void loadEvents();
			void loadDecisions();
			if (joined) void refreshQueue();
			else void loadPhase();
		}
		if (viewsDue) return;
		viewsDue = true;
		options.schedule(() => {
			viewsDue = false;
			if (closed) return;
			const views = folds.changed();
			dispatch({ type: "views", views });
			noteAsks(views);
		});
	}

	/** What waits for a person is listed for all sessions, and changes with the frames of this one. */
	function noteAsks(views: readonly RunView[]): void {
		const ids = views.flatMap((view) => openAsksOf(view).map(({ id }) => id)).join();
		if (views.length === 0 || ids === openAsks) return;
		openAsks = ids;
		options.onRunChange();
	}

	async function loadRow(runId: string): Promise<void> {
		options.onRunChange();
		try {
			const row = await api.run(runId);
			if (!closed) dispatch({ type: "row", row });
		} catch (cause) {
			console.warn(`nexus: ${runId} could not be read:`, failed(cause).message);
		}
	}

	async function loadEvents(): Promise<void> {
		try {
			const { events } = await api.events({ session, limit: EVENTS_MAX });
			if (!closed) dispatch({ type: "events", events });
		} catch (cause) {
			console.warn("nexus: what became of the messages could not be read:", failed(cause).message);
		}
	}

	async function loadDecisions(): Promise<void> {
		const chat = options.chat();
		if (!chat || !hasLooseEnds(chat)) return;
		try {
			const { approvals } = await api.approvals({ session, limit: DECISIONS_MAX });
			if (!closed) dispatch({ type: "decisions", approvals });
		} catch (cause) {
			console.warn("nexus: what was decided could not be read:", failed(cause).message);
		}
	}

	async function loadPhase(): Promise<void> {
		try {
			const { phase } = await api.phase(session);
			if (!closed && phase) dispatch({ type: "works", works: phase });
		} catch (cause) {
			console.warn("nexus: the session's phase could not be read:", failed(cause).message);
		}
	}

	async function refreshQueue(): Promise<void> {
		try {
			const { queued } = await api.turns(session, { limit: 1 });
			if (!closed) dispatch({ type: "queue", queued });
		} catch (cause) {
			console.warn("nexus: the queue could not be read:", failed(cause).message);
		}
	}

	/** Whatever is said to it, what became of the message is shown. */
	async function cancel(eventId: string): Promise<void> {
		try {
			await api.cancel(eventId);
		} catch (cause) {
			console.warn(`nexus: ${eventId} could not be cancelled:`, failed(cause).message);
		}
		await Promise.all([refreshQueue(), loadEvents()]);
	}

	async function send(key: string, text: string): Promise<void> {
		dispatch({ type: "sending", key, text });
		try {
			const accepted = await api.send(session, { text, idempotency_key: key });
			if (closed) return;
			dispatch({ type: "sent", key, accepted });
			if (!stream) await load();
			else stream.send({ type: "hurry" });
			// What had to make room for it waits no longer.
			if (accepted.disposition !== "started") void loadEvents();
			options.onRunChange();
		} catch (cause) {
			const error = failed(cause).message;
			if (closed) keepUnsent(session, [...unsentOf(session), { key, text, state: "failed", error }]);
			dispatch({ type: "send-failed", key, message: error });
		}
	}

	async function loadOlder(): Promise<void> {
		const oldest = options.chat()?.turns[0];
		if (!oldest || options.chat()?.older !== "some") return;
		dispatch({ type: "older-loading" });
		try {
			const page = await api.turns(session, { limit: TURNS_PER_PAGE, before: oldest.runId });
			dispatch({ type: "older", page, limit: TURNS_PER_PAGE });
		} catch (cause) {
			failed(cause);
			dispatch({ type: "older-failed" });
		}
	}

	function loadFrames(runId: string): void {
		if (asked.has(runId)) return;
		asked.add(runId);
		waitingLoads.push(runId);
		pumpLoads();
	}

	function pumpLoads(): void {
		while (loads < HISTORY_LOADS_MAX && !closed) {
			const runId = waitingLoads.shift();
			if (runId === undefined) return;
			loads += 1;
			void readHistory(runId).finally(() => {
				loads -= 1;
				pumpLoads();
			});
		}
	}

	async function readHistory(runId: string): Promise<void> {
		try {
			const view = await foldHistory(runId, () => closed);
			if (!view || closed) return;
			dispatch({ type: "views", views: [view] });
			await loadDecisions();
		} catch (cause) {
			console.warn(`nexus: the frames of ${runId} could not be read:`, failed(cause).message);
		}
	}

	void load();
	return {
		session,
		send,
		cancel,
		loadOlder,
		loadFrames,
		refreshQueue,
		refreshRun: (runId) => void loadRow(runId),
		reload: load,
		link: (type) => stream?.send({ type }),
		close() {
			closed = true;
			clearTimeout(loadTimer);
			stream?.send({ type: "stop" });
		},
	};
}

/** What all frames of a finished run show; undefined when they are too many, or nobody wants them any more. */
async function foldHistory(runId: string, isUnwanted: () => boolean): Promise<RunView | undefined> {
	const fold = createFold();
	for (let after = 0; after < FRAMES_IN_HISTORY_MAX; ) {
		const last = after + FRAMES_PER_CALL;
		for await (const line of api.frames(runId, { after, limit: FRAMES_PER_CALL })) {
			if (isUnwanted()) return undefined;
			fold.push(decodeFrame(line));
			after += 1;
		}
		if (after < last) return fold.view();
	}
	return undefined;
}
