/** A session's state: each message once, in order, from the moment it is written to the turn that shows it. */

import { describe, expect, it } from "vitest";
import {
	createFold,
	type MessageJson,
	type RunJson,
	type RunView,
	type TurnsJson,
} from "../../packages/protocol/src/protocol.ts";
import {
	type ChatAction,
	type ChatState,
	liveTurnOf,
	newChat,
	reduceChat,
	unreadRunsOf,
} from "../../packages/web/src/chat/chat.ts";
import { threadOf, userMessagesOf, waitingOf } from "../../packages/web/src/chat/thread.ts";
import { announcement, connectionOf, outcomeOf } from "../../packages/web/src/chat/words.ts";
import { createToFrames } from "../protocol/to-frames.ts";

const row = (run_id: string, messages: MessageJson[], status: RunJson["status"] = "completed"): RunJson => ({
	run_id,
	session: "s",
	engine: "e",
	status,
	started_at: 1,
	messages,
	tool_calls: [],
	frames_available: true,
});
const user = (event_id: string, text: string): MessageJson => ({ role: "user", text, event_id });
const page = (part: Partial<TurnsJson>): TurnsJson => ({
	turns: [],
	live: null,
	queued: [],
	stream_offset: 0,
	...part,
});
const after = (...actions: ChatAction[]): ChatState => actions.reduce(reduceChat, newChat("s"));

/** Everything the person wrote, as the page shows it. */
const written = (chat: ChatState) => [
	...chat.turns.flatMap((turn) => userMessagesOf(chat, turn).map(({ text }) => text)),
	...waitingOf(chat).map(({ text, state }) => `${text} (${state})`),
];

const streaming: RunView = {
	runId: "r1",
	messages: [],
	compacting: false,
	state: "streaming",
	final: false,
	violations: [],
};
const begun: ChatAction = { type: "views", views: [streaming] };
const started = { type: "sent", key: "k", accepted: { event_id: "e1", disposition: "started", run_id: "r1" } } as const;
const sending = { type: "sending", key: "k", text: "hi" } as const;
const known = { type: "row", row: row("r1", [user("e1", "hi")], "running") } as const;

it("P3.10: hidden words are not in the chat, what was done with tools is", () => {
	const fold = createFold();
	let time = 0;
	const frames = createToFrames({ runId: "r1", session: "s", now: () => ++time });
	const lead = { agent: "lead" };
	for (const event of [
		{ type: "stream_start", runId: "r1", sessionLabel: "s", target: null, ...lead },
		{ type: "token", text: "secret", ...lead },
		{ type: "tool_status", toolName: "route", toolCallId: "c", status: "completed", ...lead },
		{ type: "token", text: "Hello", agent: "writer" },
	] as const)
		for (const frame of frames.push(event)) {
			const isHidden = frame.type === "stream.begin" && frame.modality === "text" && frame.agent === "lead";
			fold.push(isHidden ? { ...frame, visible: false } : frame);
		}
	const [turn] = after({ type: "views", views: [fold.view()] }).turns;
	expect(turn!.view!.messages).toMatchObject([
		{ agent: "lead", text: "", tools: [{ name: "route" }] },
		{ text: "Hello" },
	]);
	expect(JSON.stringify(turn)).not.toContain("secret");
});

describe("a message on its way", () => {
	it("is shown at once", () => expect(written(after(sending))).toEqual(["hi (sending)"]));

	it.each([
		["answer, begin, row", [started, begun, known]],
		["begin, answer, row", [begun, started, known]],
		["begin, row, answer", [begun, known, started]],
		["row, begin, answer", [known, begun, started]],
		["answer, row, begin", [started, known, begun]],
	] as const)("is shown exactly once whatever comes first: %s", (_name, actions) => {
		expect(written(after(sending, ...actions))).toEqual(["hi"]);
	});

	it("is shown once while the daemon tells of it before it has answered", () => {
		expect(written(after(sending, known))).toEqual(["hi"]);
		expect(written(after(sending, begun, known))).toEqual(["hi"]);
		const queued: ChatAction = { type: "queue", queued: [{ event_id: "e1", text: "hi", received_at: 1 }] };
		expect(written(after(sending, queued))).toEqual(["hi (queued)"]);
		expect(written(after(sending, queued, known, started))).toEqual(["hi"]);
	});

	it("is not taken for an earlier one with the same words, nor for another's", () => {
		const earlier: ChatAction = { type: "row", row: row("r0", [user("e0", "hi")]) };
		expect(written(after(earlier, sending))).toEqual(["hi", "hi (sending)"]);
		expect(written(after(earlier, sending, known))).toEqual(["hi", "hi"]);
		const second = { type: "sending", key: "k2", text: "hi" } as const;
		expect(written(after(sending, second, known))).toEqual(["hi", "hi (sending)"]);
		const theirs: ChatAction = { type: "row", row: row("r9", [user("e9", "hi")]) };
		expect(written(after(sending, theirs, started))).toEqual(["hi", "hi (started)"]);
		const failed: ChatAction = { type: "send-failed", key: "k", message: "no" };
		expect(written(after(sending, theirs, failed))).toEqual(["hi", "hi (failed)"]);
	});

	it("I10: waits visibly while another answer is written, and is one with the daemon's own record of it", () => {
		const queued = after(sending, { type: "sent", key: "k", accepted: { event_id: "e1", disposition: "queued" } });
		expect(written(queued)).toEqual(["hi (queued)"]);
		const refreshed = reduceChat(queued, { type: "queue", queued: [{ event_id: "e1", text: "hi", received_at: 1 }] });
		expect(written(refreshed)).toEqual(["hi (queued)"]);
		expect(written(reduceChat(refreshed, known))).toEqual(["hi"]);
	});

	it("shows what other tabs have queued", () => {
		const chat = after(
			{ type: "loaded", limit: 30, page: page({ queued: [{ event_id: "e9", text: "theirs", received_at: 1 }] }) },
			sending,
		);
		expect(written(chat)).toEqual(["theirs (queued)", "hi (sending)"]);
	});

	it("can fail, be sent again with the same key, or be discarded", () => {
		const failed = after(sending, { type: "send-failed", key: "k", message: "no network" });
		expect(written(failed)).toEqual(["hi (failed)"]);
		expect(written(reduceChat(failed, sending))).toEqual(["hi (sending)"]);
		expect(written(reduceChat(failed, { type: "discard", key: "k" }))).toEqual([]);
	});

	it("waits no longer when it was cancelled, and is shown so in its place", () => {
		const chat = after(
			sending,
			{ type: "sent", key: "k", accepted: { event_id: "e1", disposition: "queued" } },
			{
				type: "events",
				events: [{ event_id: "e1", session: "s", text: "hi", received_at: 1, disposition: "cancelled" }],
			},
		);
		expect(written(chat)).toEqual([]);
		expect(threadOf(chat)).toMatchObject([{ kind: "unanswered", event: { event_id: "e1" } }]);
	});

	it("is forgotten with a daemon that lost its data, unless it was not accepted yet", () => {
		const before = after(sending, started, begun, { type: "sending", key: "k2", text: "not yet" });
		const anew = [{ type: "start-over" } as const, { type: "loaded", limit: 30, page: page({}) } as const];
		expect(written(anew.reduce(reduceChat, before))).toEqual(["not yet (sending)"]);
	});

	it("stays when only its place in the stream is gone", () => {
		const queued = [{ event_id: "e1", text: "hi", received_at: 1 }];
		const before = after(sending, { type: "sent", key: "k", accepted: { event_id: "e1", disposition: "queued" } });
		const anew = [{ type: "start-over" } as const, { type: "loaded", limit: 30, page: page({ queued }) } as const];
		expect(written(anew.reduce(reduceChat, before))).toEqual(["hi (queued)"]);
	});
});

describe("turns", () => {
	it("older ones come before, without doubles", () => {
		const chat = after(
			{ type: "loaded", limit: 2, page: page({ turns: [row("r3", []), row("r4", [])] }) },
			{ type: "older", limit: 2, page: page({ turns: [row("r2", []), row("r3", [])] }) },
		);
		expect(chat.turns.map(({ runId }) => runId)).toEqual(["r2", "r3", "r4"]);
	});

	it("the live one is live until its frames say it is over, whatever the ledger's copy says", () => {
		const live = after({ type: "loaded", limit: 30, page: page({ live: row("r1", [user("e1", "hi")], "running") }) });
		expect(liveTurnOf(live)?.runId).toBe("r1");
		const ended = reduceChat(live, { type: "views", views: [{ ...streaming, final: true, state: "completed" }] });
		expect(liveTurnOf(ended)).toBeUndefined();
		expect(unreadRunsOf(ended)).toEqual(["r1"]);
		expect(unreadRunsOf(reduceChat(ended, { type: "row", row: row("r1", []) }))).toEqual([]);
	});
});

describe("words for people", () => {
	it.each([
		["aborted", "Stopped"],
		["timeout", "Timed out"],
		["crashed", "Interrupted"],
		["error", "Failed"],
	] as const)("a run that ended with %s is called %s", (reason, title) => {
		const ended = { ...row("r", [], "failed"), reason };
		expect(outcomeOf(undefined, ended)?.title).toBe(title);
		const error = { code: "data_loss", message: "Said by the daemon." };
		expect(outcomeOf(undefined, { ...ended, error })?.detail).toBe(error.message);
	});

	it("a link that never was live is connecting; one that was is reconnecting", () => {
		const connecting = after({ type: "link", phase: "connecting" });
		expect(connectionOf(connecting).state).toBe("connecting");
		const again = [{ type: "link", phase: "live" } as const, { type: "link", phase: "waiting" } as const];
		expect(connectionOf(again.reduce(reduceChat, connecting)).state).toBe("reconnecting");
	});

	it("a screen reader hears of the beginning and of the end, once each", () => {
		const live = { runId: "r1", view: streaming };
		const done = { runId: "r1", view: { ...streaming, final: true, state: "completed" as const } };
		expect(announcement(undefined, live)).toBe("The answer is being written.");
		expect(announcement(live, { ...live })).toBeUndefined();
		expect(announcement(live, done)).toBe("Answer finished.");
		expect(announcement(done, { ...done })).toBeUndefined();
	});
});
