/** Chat platforms in words and numbers: the lab's cards, deliveries, dispositions, addresses. */

import { describe, expect, it } from "vitest";
import type {
	AccountJson,
	DeliveryJson,
	DispositionState,
	EventJson,
	LabChannelJson,
	LabStateJson,
} from "../../packages/protocol/src/gen/api.ts";
import { channelsOf, inboundOf, ownErrorOf, waitingPairings } from "../../packages/web/src/adapters/adapters.ts";
import { confirmedOf, dispositionWords, errorWords } from "../../packages/web/src/adapters/channels.tsx";
import { formatRoute, parseRoute } from "../../packages/web/src/app/route.ts";
import { loaded, newChat, sending, sent, withEvents } from "../../packages/web/src/chat/chat.ts";
import { threadOf, waitingOf } from "../../packages/web/src/chat/thread.ts";
import { stageBars } from "../../packages/web/src/inspector/inspect.ts";
import {
	cardWords,
	chosenOf,
	isOpen,
	type LabView,
	NEW_LAB,
	outcomeNote,
	pauseOf,
	pollDelay,
	readiness,
} from "../../packages/web/src/lab/lab.ts";

const NOW = 1000;

const DELIVERY: DeliveryJson = {
	delivery_id: "dlv_1",
	run_id: "run_1",
	channel: "telegram",
	account: "lab",
	target: { to: "42" },
	mode: "stream",
	state: "active",
	position: 0,
	created_at: 1,
	updated_at: 1,
	messages: [{ ordinal: 1, message_id: "m1", from: 0, shown: 30, state: "open" }],
};

const row = (change: Partial<LabChannelJson> = {}): LabChannelJson => ({
	channel: "telegram",
	ready: true,
	messages: [],
	typing: false,
	calls: [],
	calls_total: 0,
	...change,
});

const labOf = (channels: LabChannelJson[], change: Partial<LabView> = {}): LabView => {
	const state: LabStateJson = { now: 1000, question_open: false, channels };
	return { ...NEW_LAB, state, ...change };
};

describe("an account", () => {
	it("says once what went wrong: in the line of the process, or for itself", () => {
		const account = { processes: { monitor: { state: "open", restarts: 7, last_error: "ended with code 7" } } };
		const withError = (error: string) => ownErrorOf({ ...account, last_error: error } as unknown as AccountJson);
		expect(withError("ended with code 7")).toBeUndefined();
		expect(withError("its info is not understood")).toBe("its info is not understood");
		expect(ownErrorOf({ processes: {} } as AccountJson)).toBeUndefined();
	});
});

describe("the lab", () => {
	it("is asked often while something is under way, seldom while adapters start, and not at all when it rests", () => {
		expect(pollDelay(NEW_LAB)).toBeUndefined();
		expect(pollDelay(labOf([row({ ready: false })]))).toBe(500);
		expect(pollDelay(labOf([row({ state: "complete" }), row({ state: "active" })]))).toBe(250);
		expect(pollDelay(labOf([row({ state: "complete", rate_limited_until: 1500 })]))).toBe(250);
		expect(pollDelay(labOf([row({ state: "complete", rate_limited_until: 900 })]))).toBeUndefined();
		expect(pollDelay(labOf([row({ state: "complete" }), row({ state: "unknown" })]))).toBeUndefined();
		const asked: LabStateJson = { now: 1000, question_open: true, channels: [row()] };
		expect(pollDelay({ ...NEW_LAB, state: asked })).toBe(500);
	});

	it("knows who takes part and who is ready for it", () => {
		const lab = labOf([row(), row({ channel: "sms", ready: false }), row({ channel: "slack" })], {
			excluded: new Set(["slack"]),
		});
		expect(chosenOf(lab)).toEqual(["telegram", "sms"]);
		expect(readiness(lab)).toEqual({ ready: 1, chosen: 2 });
	});

	it("says what a platform is doing", () => {
		const message = { id: "1", text: "x", style: "plain" as const, created_at: 1, updated_at: 1, edits: 1 };
		const words = (change: Partial<LabChannelJson>) => cardWords(row(change), NOW).text;
		expect(words({ ready: false })).toBe("Starting…");
		expect(words({})).toBe("Ready");
		expect(words({ state: "active", delivery: DELIVERY })).toBe("Editing…");
		expect(words({ state: "active", delivery: DELIVERY, draft: message })).toBe("Drafting…");
		expect(words({ state: "active", typing: true })).toBe("Typing…");
		expect(words({ state: "active", mode: "whole" })).toBe("Waiting…");
		expect(words({ state: "unknown" })).toBe("Outcome unknown");
		const editing = row({ state: "active", delivery: DELIVERY, messages: [message, message] });
		expect([isOpen(editing, 0), isOpen(editing, 1)]).toEqual([false, true]);
		expect(isOpen({ ...editing, state: "complete" }, 1)).toBe(false);
	});

	it("measures a delivery by what the platform has confirmed", () => {
		expect(confirmedOf(DELIVERY)).toBe(30);
		expect(confirmedOf({ position: 50, messages: [] })).toBe(50);
		expect(confirmedOf({ position: 10, messages: [{ ordinal: 2, from: 10, to: 25, state: "sent" }] })).toBe(25);
		// Handed over without a confirmation.
		for (const state of ["intended", "unknown", "failed"] as const) {
			expect(confirmedOf({ position: 0, messages: [{ ordinal: 1, from: 0, to: 812, state }] })).toBe(0);
			const sent = { ordinal: 1, from: 0, to: 400, state: "sent" } as const;
			expect(confirmedOf({ position: 812, messages: [sent, { ordinal: 2, from: 400, to: 812, state }] })).toBe(400);
		}
	});

	it("says why a platform is silent, from the call that went wrong until one succeeds", () => {
		const sent = { at: 1, call: "sendMessage", status: 200, ms: 5 };
		const typing = { at: 9, call: "sendChatAction", status: 200, ms: 5 };
		const pause = (...calls: LabChannelJson["calls"]) => pauseOf(row({ state: "active", calls }), NOW)?.text;
		const hung = { at: 5, call: "sendMessage", status: 0, fault: "hang" };
		expect(pause(sent)).toBeUndefined();
		expect(pause(sent, hung)).toBe("No answer yet; waiting");
		expect(pause(sent, hung, typing)).toBe("No answer yet; waiting");
		expect(pause(sent, { ...hung, ms: 30_000 })).toBe("No answer; checking whether it arrived");
		expect(pause({ ...sent, fault: "reset_after_accept" })).toBe("Connection broke; checking whether it arrived");
		expect(pause({ ...sent, status: 503, fault: "5xx" })).toBe("Failed with 503; trying again");
		expect(pause(hung, { ...sent, at: 20 })).toBeUndefined();
		const calls = [hung];
		expect(pauseOf(row({ state: "active", calls }), NOW)?.since).toBe(5);
		expect(cardWords(row({ state: "active", calls }), NOW)).toEqual({ tone: "warn", text: "Paused" });
		// A rate limit has a countdown, and what has ended does not pause.
		expect(pauseOf(row({ state: "active", calls, rate_limited_until: NOW + 1 }), NOW)).toBeUndefined();
		expect(pauseOf(row({ state: "unknown", calls }), NOW)).toBeUndefined();
	});

	it("shows no codes of programs", () => {
		expect(errorWords("unknown_outcome: The message may be there.")).toBe("The message may be there.");
		expect(errorWords("Unauthorized: bot was blocked")).toBe("Unauthorized: bot was blocked");
		const error = "unknown_outcome: The message may or may not have been sent.";
		expect(outcomeNote(row({ channel: "signal", state: "unknown", delivery: { ...DELIVERY, error } }), 40)).toMatch(
			/^Signal did not confirm a message/,
		);
		expect(outcomeNote(row({ channel: "signal", state: "unknown", delivery: { ...DELIVERY, error } }), 30)).toMatch(
			/^The text arrived/,
		);
		expect(outcomeNote(row({ state: "failed", delivery: { ...DELIVERY, error: "refused: no such chat" } }), 40)).toBe(
			"no such chat",
		);
		expect(outcomeNote(row({ state: "complete", delivery: DELIVERY }), 40)).toBeUndefined();
	});
});

const event = (id: string, disposition: DispositionState, change: Partial<EventJson> = {}): EventJson => ({
	event_id: id,
	session: "s",
	text: id,
	received_at: 100,
	disposition,
	...change,
});

describe("I10: dispositions", () => {
	it("are all put in words, with the reason where there is one", () => {
		expect(dispositionWords(event("e", "started")).text).toBe("Answered by a run");
		expect(dispositionWords(event("e", "queued")).text).toBe("Waiting for its turn");
		expect(dispositionWords(event("e", "batched", { run_id: "run_1" })).text).toBe("Answered together with others");
		expect(dispositionWords(event("e", "superseded", { run_id: "run_1" })).text).toBe("Stopped for a newer message");
		expect(dispositionWords(event("e", "superseded")).text).toBe("Summarised into a newer message");
		expect(dispositionWords(event("e", "rejected", { because: "busy" })).text).toBe("Not accepted: busy");
		expect(dispositionWords(event("e", "dropped", { because: "full" })).text).toBe("Dropped at the queue's cap: full");
	});

	it("keep messages that no run shows in the thread, in order of time, once", () => {
		const turn = (runId: string, at: number, eventId: string) => ({
			run_id: runId,
			session: "s",
			engine: "e",
			status: "completed" as const,
			started_at: at,
			messages: [{ role: "user" as const, text: "t", event_id: eventId }],
			tool_calls: [],
			frames_available: true,
		});
		const page = {
			turns: [turn("run_1", 50, "e1"), turn("run_2", 200, "e2")],
			live: null,
			queued: [],
			stream_offset: 0,
		};
		let chat = sending(loaded(newChat("s"), page, 30), "k", "waits");
		chat = sent(chat, "k", { event_id: "e3", disposition: "queued" });
		expect(waitingOf(chat).map(({ state }) => state)).toEqual(["queued"]);
		const events = [
			event("e1", "superseded", { run_id: "run_1" }),
			event("e3", "dropped", { received_at: 300 }),
			event("e4", "rejected", { received_at: 100 }),
			event("e5", "superseded", { received_at: 90, batch: ["e1"] }),
		];
		chat = withEvents(chat, events);
		expect(threadOf(chat).map((item) => (item.kind === "turn" ? item.turn.runId : item.event.event_id))).toEqual([
			...["run_1", "e4", "run_2", "e3"],
		]);
		expect(waitingOf(chat)).toEqual([]);
	});
});

describe("the adapters page", () => {
	it("lists the pairings that wait for approval until their code expires", () => {
		const pairing = { code: "A", channel: "telegram", account: "main", sender: "7", requested_at: 1, expires_at: 100 };
		const list = [pairing, { ...pairing, code: "B", approved_at: 5 }, { ...pairing, code: "C", expires_at: 50 }];
		expect(waitingPairings(list, 60).map(({ code }) => code)).toEqual(["A"]);
	});

	it("lists what people wrote, not what stands for it", () => {
		expect(inboundOf([event("e1", "batched"), event("e2", "started", { batch: ["e1"] })])).toHaveLength(1);
	});

	it("offers every channel once", () => {
		expect(channelsOf([], [DELIVERY, { ...DELIVERY, channel: "sms" }, DELIVERY])).toEqual(["sms", "telegram"]);
	});
});

describe("the way of a message", () => {
	it("is drawn on one scale from the first stage to the last end", () => {
		const bars = stageBars([
			{ stage: "receive", at: 1000, ms: 0 },
			{ stage: "execute", at: 1025, ms: 75 },
		]);
		expect(bars).toEqual([
			{ stage: "receive", ms: 0, from: 0, share: 0 },
			{ stage: "execute", ms: 75, from: 0.25, share: 0.75 },
		]);
		expect(stageBars([])).toEqual([]);
	});
});

describe("addresses", () => {
	it("lead to every page and back", () => {
		for (const hash of ["#/", "#/lab", "#/adapters", "#/s/a%20b", "#/run/run_1"])
			expect(formatRoute(parseRoute(hash))).toBe(hash);
		expect(parseRoute("#/lab/x")).toEqual({ name: "home" });
	});
});
