/** A session's state: each message once, in order, from the moment it is written to the turn that shows it. */

import { describe, expect, it } from "vitest";
import type { MessageJson, RunJson, SessionTurnsJson } from "../../packages/protocol/src/gen/api.ts";
import { createFold, type RunView } from "../../packages/protocol/src/protocol.ts";
import {
	type ChatState,
	discarded,
	liveTurnOf,
	loaded,
	newChat,
	sendFailed,
	sent,
	startOver,
	unreadRunsOf,
	withEvents,
	withLink,
	withOlder,
	withRow,
	sending as withSending,
	withView,
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
const page = (part: Partial<SessionTurnsJson>): SessionTurnsJson => ({
	turns: [],
	live: null,
	queued: [],
	stream_offset: 0,
	...part,
});
type Change = (chat: ChatState) => ChatState;
const from = (before: ChatState, ...changes: readonly Change[]): ChatState =>
	changes.reduce((chat, change) => change(chat), before);
const after = (...changes: readonly Change[]): ChatState => from(newChat("s"), ...changes);

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
const viewed =
	(view: RunView): Change =>
	(chat) =>
		withView(chat, view);
const begun = viewed(streaming);
const sending: Change = (chat) => withSending(chat, "k", "hi");
const started: Change = (chat) => sent(chat, "k", { event_id: "e1", disposition: "started", run_id: "r1" });
const waiting: Change = (chat) => sent(chat, "k", { event_id: "e1", disposition: "queued" });
const failing: Change = (chat) => sendFailed(chat, "k", "no network");
const noted =
	(run: RunJson): Change =>
	(chat) =>
		withRow(chat, run);
const known = noted(row("r1", [user("e1", "hi")], "running"));
const listed: Change = (chat) => ({ ...chat, queued: [{ event_id: "e1", text: "hi", received_at: 1 }] });
const read =
	(part: Partial<SessionTurnsJson>, limit = 30): Change =>
	(chat) =>
		loaded(chat, page(part), limit);

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
	const [turn] = after(viewed(fold.view())).turns;
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
		expect(written(after(sending, listed))).toEqual(["hi (queued)"]);
		expect(written(after(sending, listed, known, started))).toEqual(["hi"]);
	});

	it("is not taken for an earlier one with the same words, nor for another's", () => {
		const earlier = noted(row("r0", [user("e0", "hi")]));
		expect(written(after(earlier, sending))).toEqual(["hi", "hi (sending)"]);
		expect(written(after(earlier, sending, known))).toEqual(["hi", "hi"]);
		const second: Change = (chat) => withSending(chat, "k2", "hi");
		expect(written(after(sending, second, known))).toEqual(["hi", "hi (sending)"]);
		const theirs = noted(row("r9", [user("e9", "hi")]));
		expect(written(after(sending, theirs, started))).toEqual(["hi", "hi (started)"]);
		expect(written(after(sending, theirs, failing))).toEqual(["hi", "hi (failed)"]);
	});

	it("I10: waits visibly while another answer is written, and is one with the daemon's own record of it", () => {
		expect(written(after(sending, waiting))).toEqual(["hi (queued)"]);
		expect(written(after(sending, waiting, listed))).toEqual(["hi (queued)"]);
		expect(written(after(sending, waiting, listed, known))).toEqual(["hi"]);
	});

	it("shows what other tabs have queued", () => {
		const chat = after(read({ queued: [{ event_id: "e9", text: "theirs", received_at: 1 }] }), sending);
		expect(written(chat)).toEqual(["theirs (queued)", "hi (sending)"]);
	});

	it("can fail, be sent again with the same key, or be discarded", () => {
		const failed = after(sending, failing);
		expect(written(failed)).toEqual(["hi (failed)"]);
		expect(written(sending(failed))).toEqual(["hi (sending)"]);
		expect(written(discarded(failed, "k"))).toEqual([]);
	});

	it("waits no longer when it was cancelled, and is shown so in its place", () => {
		const event = { event_id: "e1", session: "s", text: "hi", received_at: 1, disposition: "cancelled" } as const;
		const chat = withEvents(after(sending, waiting), [event]);
		expect(written(chat)).toEqual([]);
		expect(threadOf(chat)).toMatchObject([{ kind: "unanswered", event: { event_id: "e1" } }]);
	});

	it("is forgotten with a daemon that lost its data, unless it was not accepted yet", () => {
		const before = after(sending, started, begun, (chat) => withSending(chat, "k2", "not yet"));
		expect(written(from(before, startOver, read({})))).toEqual(["not yet (sending)"]);
	});

	it("stays when only its place in the stream is gone", () => {
		const queued = [{ event_id: "e1", text: "hi", received_at: 1 }];
		expect(written(after(sending, waiting, startOver, read({ queued })))).toEqual(["hi (queued)"]);
	});
});

describe("turns", () => {
	it("older ones come before, without doubles", () => {
		const newest = after(read({ turns: [row("r3", []), row("r4", [])] }, 2));
		const chat = withOlder(newest, page({ turns: [row("r2", []), row("r3", [])] }), 2);
		expect(chat.turns.map(({ runId }) => runId)).toEqual(["r2", "r3", "r4"]);
	});

	it("the live one is live until its frames say it is over, whatever the ledger's copy says", () => {
		const live = after(read({ live: row("r1", [user("e1", "hi")], "running") }));
		expect(liveTurnOf(live)?.runId).toBe("r1");
		const ended = withView(live, { ...streaming, final: true, state: "completed" });
		expect(liveTurnOf(ended)).toBeUndefined();
		expect(unreadRunsOf(ended)).toEqual(["r1"]);
		expect(unreadRunsOf(withRow(ended, row("r1", [])))).toEqual([]);
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
		const connecting = withLink(newChat("s"), "connecting");
		expect(connectionOf(connecting).state).toBe("connecting");
		expect(connectionOf(withLink(withLink(connecting, "live"), "waiting")).state).toBe("reconnecting");
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
