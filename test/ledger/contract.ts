/** What every Ledger promises; run on each implementation. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { InboundEvent, Ledger, Turn } from "../../src/ledger/ledger.ts";

export interface LedgerUnderTest {
	ledger: Ledger;
	/** Runs work in one transaction of the store. */
	transaction<T>(work: () => T): T;
	close(): void;
}

export const turnOf = (runId: string, fields: Partial<Turn> = {}): Turn => ({
	runId,
	session: "main",
	engine: "demo",
	status: "completed",
	reason: "completed",
	startedAt: 1000,
	endedAt: 2000,
	usage: { input: -1, output: -1 },
	messages: [
		{ role: "user", text: "question" },
		{ role: "assistant", text: "answer", messageId: `${runId}.1` },
	],
	toolCalls: [],
	...fields,
});

export const eventOf = (eventId: string, fields: Partial<InboundEvent> = {}): InboundEvent => ({
	eventId,
	session: "main",
	text: `text of ${eventId}`,
	attachments: [],
	receivedAt: 1000,
	disposition: { state: "queued" },
	...fields,
});

const file = { name: "notes.txt", contentType: "text/plain", data: "aGVsbG8=" };

/** A turn that uses every field there is. */
export const fullTurn = turnOf("run_full", {
	status: "failed",
	reason: "timeout",
	error: { code: "timeout", message: "too slow" },
	firstTokenMs: 0,
	usage: { input: 10, output: 20, cache_read: 5 },
	trace: {
		...{ channel: "telegram", account: "bot", sender: "7", deliveries: [] },
		stages: [{ stage: "receive", at: 1, ms: 2 }],
		hooks: [{ plugin: "p", hook: "onReceive", ms: 1, outcome: "failed", detail: "odd" }],
	},
	messages: [
		{ role: "user", text: "look at this", eventId: "evt_unknown", attachments: [file] },
		{ role: "assistant", text: "", messageId: "run_full.1" },
		{ role: "assistant", text: "nul \0, emoji 🧵, line\nfeed", messageId: "run_full.3", reasoning: "hm" },
		{
			role: "assistant",
			text: "see",
			messageId: "run_full.4",
			signedReasoning: [{ text: "half \ud83d", signature: "sig", after: 0, callsBefore: 1 }],
			parts: [
				{
					modality: "card",
					contentType: "application/json",
					description: "card: a",
					bytes: 2,
					after: 3,
					payload: "{}",
				},
			],
		},
	],
	toolCalls: [
		{
			callId: "c1",
			name: "read",
			status: "completed",
			message: 1,
			startedAt: 1,
			endedAt: 2,
			args: '{"a":1}',
			result: '"ok"',
			content: [
				{ type: "text", text: "a picture" },
				{ type: "image", contentType: "image/png", data: "AAAA" },
				{ type: "resource", uri: "file:///a", text: "b" },
			],
			after: 7,
		},
		{ callId: "c2", name: "stop", status: "failed", message: 1, startedAt: 2, endedAt: 3, summary: "stopped" },
	],
});

export function ledgerContract(name: string, open: () => LedgerUnderTest): void {
	describe(name, () => {
		let under: LedgerUnderTest;
		let ledger: Ledger;
		beforeEach(() => {
			under = open();
			ledger = under.ledger;
		});
		afterEach(() => under.close());

		describe("turns", () => {
			test("a turn comes back as it was settled", () => {
				ledger.settle(fullTurn);
				expect(ledger.turn("run_full")).toEqual(fullTurn);
				expect(ledger.turn("run_other")).toBeUndefined();
			});

			test("settling a run twice is a conflict and changes nothing", () => {
				ledger.settle(turnOf("run_1"));
				const again = turnOf("run_1", { messages: [], status: "failed" });
				expect(() => ledger.settle(again)).toThrow(expect.objectContaining({ code: "conflict" }));
				expect(ledger.turn("run_1")).toEqual(turnOf("run_1"));
				expect(ledger.session("main")?.turns).toBe(1);
			});

			test("I5: settle joins an open transaction and goes with it", () => {
				expect(() =>
					under.transaction(() => {
						ledger.settle(turnOf("run_1"));
						throw new Error("the frame was not written");
					}),
				).toThrow("the frame was not written");
				expect(ledger.turn("run_1")).toBeUndefined();
				expect(ledger.session("main")).toBeUndefined();
				under.transaction(() => ledger.settle(turnOf("run_1")));
				expect(ledger.turn("run_1")).toEqual(turnOf("run_1"));
			});

			test("the trace of a settled run can be replaced", () => {
				ledger.settle(fullTurn);
				const trace = { ...fullTurn.trace!, deliveries: ["dlv_1"] };
				ledger.retrace("run_full", trace);
				expect(ledger.turn("run_full")).toEqual({ ...fullTurn, trace });
				expect(() => ledger.retrace("run_other", trace)).toThrow(expect.objectContaining({ code: "not_found" }));
			});

			test("are listed newest first, per session, page by page", () => {
				for (const n of [1, 2, 3, 4]) ledger.settle(turnOf(`run_${n}`, { session: n === 2 ? "other" : "main" }));
				const ids = (query: Parameters<Ledger["turns"]>[0]) => ledger.turns(query).map((turn) => turn.runId);
				expect(ids({ limit: 10 })).toEqual(["run_4", "run_3", "run_2", "run_1"]);
				expect(ids({ session: "main", limit: 2 })).toEqual(["run_4", "run_3"]);
				expect(ids({ session: "main", limit: 2, before: "run_3" })).toEqual(["run_1"]);
				expect(ids({ limit: 2, before: "run_3" })).toEqual(["run_2", "run_1"]);
				expect(ids({ session: "nobody", limit: 2 })).toEqual([]);
			});

			test("a run that has not settled is newer than every turn", () => {
				ledger.settle(turnOf("run_1"));
				expect(ledger.turns({ limit: 10, before: "run_live" })).toHaveLength(1);
			});
		});

		describe("inbound events", () => {
			test("I10: an event comes back with what became of it", () => {
				const event = eventOf("evt_1", { attachments: [file], idempotencyKey: "k" });
				expect(ledger.accept(event)).toBe(true);
				expect(ledger.event("evt_1")).toEqual(event);
				ledger.dispose("evt_1", { state: "started", runId: "run_1" });
				expect(ledger.event("evt_1")?.disposition).toEqual({ state: "started", runId: "run_1" });
				ledger.dispose("evt_1", { state: "rejected", because: "stale" });
				expect(ledger.event("evt_1")?.disposition).toEqual({ state: "rejected", because: "stale" });
			});

			test("I10: every disposition comes back as it was", () => {
				ledger.accept(eventOf("evt_1"));
				const dispositions: InboundEvent["disposition"][] = [
					{ state: "batched", runId: "run_1" },
					{ state: "superseded", by: "evt_2" },
					{ state: "superseded", by: "evt_2", runId: "run_1" },
					{ state: "dropped", because: "full" },
					{ state: "queued" },
				];
				for (const disposition of dispositions) {
					ledger.dispose("evt_1", disposition);
					expect(ledger.event("evt_1")?.disposition).toEqual(disposition);
				}
			});

			test("an event comes back with its origin, its way to wait and its facts", () => {
				const event = eventOf("evt_1", {
					origin: { channel: "telegram", account: "bot", sourceId: "42", sender: "7", senderName: "Ann" },
					queue: { mode: "collect", collectMs: 5, messagesMax: 3, atCap: "summarise" },
					batch: ["evt_a", "evt_b"],
					facts: { deep: [{ a: 1 }] },
				});
				ledger.accept(event);
				expect(ledger.event("evt_1")).toEqual(event);
				expect(ledger.eventBySource("telegram", "bot", "42")).toEqual(event);
				expect(ledger.eventBySource("telegram", "other", "42")).toBeUndefined();
			});

			test("a source id counts once per account", () => {
				const origin = { channel: "telegram", account: "bot", sourceId: "42", sender: "7" };
				expect(ledger.accept(eventOf("evt_1", { origin }))).toBe(true);
				expect(ledger.accept(eventOf("evt_2", { origin, session: "other" }))).toBe(false);
				expect(ledger.accept(eventOf("evt_3", { origin: { ...origin, account: "other" } }))).toBe(true);
				const { sourceId: _, ...nameless } = origin;
				expect(ledger.accept(eventOf("evt_4", { origin: nameless }))).toBe(true);
				expect(ledger.accept(eventOf("evt_5", { origin: nameless }))).toBe(true);
			});

			test("what was not let in makes no session; neither does an event that stands for others", () => {
				ledger.accept(eventOf("evt_1", { session: "s1", disposition: { state: "rejected", because: "no" } }));
				ledger.accept(eventOf("evt_2", { session: "s2", batch: ["evt_0"] }));
				expect(ledger.sessions({ limit: 9 })).toEqual([]);
			});

			test("only the newest rejected events are kept", () => {
				for (const n of [1, 2, 3, 4]) {
					ledger.accept(eventOf(`evt_${n}`, { disposition: { state: "rejected", because: "no" } }));
				}
				ledger.accept(eventOf("evt_5"));
				expect(ledger.forgetRejected(2)).toBe(2);
				expect(ledger.events({ limit: 9 }).map((event) => event.eventId)).toEqual(["evt_5", "evt_4", "evt_3"]);
				expect(ledger.forgetRejected(2)).toBe(0);
			});

			test("several calls are one transaction", () => {
				const work = () => {
					ledger.accept(eventOf("evt_1"));
					throw new Error("no");
				};
				expect(() => ledger.atomically(work)).toThrow("no");
				expect(ledger.event("evt_1")).toBeUndefined();
				expect(ledger.atomically(() => ledger.accept(eventOf("evt_1")))).toBe(true);
			});

			test("an unknown event cannot be disposed of", () => {
				const dispose = () => ledger.dispose("evt_none", { state: "queued" });
				expect(dispose).toThrow(expect.objectContaining({ code: "not_found" }));
			});

			test("an idempotency key counts once per session", () => {
				expect(ledger.accept(eventOf("evt_1", { idempotencyKey: "k" }))).toBe(true);
				expect(ledger.accept(eventOf("evt_2", { idempotencyKey: "k" }))).toBe(false);
				expect(ledger.event("evt_2")).toBeUndefined();
				expect(ledger.accept(eventOf("evt_3", { idempotencyKey: "k", session: "other" }))).toBe(true);
				expect(ledger.accept(eventOf("evt_4"))).toBe(true);
				expect(ledger.accept(eventOf("evt_5"))).toBe(true);
				expect(ledger.eventByKey("main", "k")?.eventId).toBe("evt_1");
				expect(ledger.eventByKey("main", "none")).toBeUndefined();
			});

			test("are listed newest first, by session and state", () => {
				ledger.accept(eventOf("evt_1", { disposition: { state: "started", runId: "run_1" } }));
				ledger.accept(eventOf("evt_2"));
				ledger.accept(eventOf("evt_3", { session: "other" }));
				const ids = (query: Parameters<Ledger["events"]>[0]) => ledger.events(query).map((event) => event.eventId);
				expect(ids({ limit: 10 })).toEqual(["evt_3", "evt_2", "evt_1"]);
				expect(ids({ limit: 1 })).toEqual(["evt_3"]);
				expect(ids({ session: "main", limit: 10 })).toEqual(["evt_2", "evt_1"]);
				expect(ids({ session: "main", state: "started", limit: 10 })).toEqual(["evt_1"]);
				expect(ids({ state: "queued", limit: 10 })).toEqual(["evt_3", "evt_2"]);
				expect(ids({ before: "evt_2", limit: 10 })).toEqual(["evt_1"]);
				ledger.accept(eventOf("evt_4", { origin: { channel: "sms", account: "a", sender: "s" } }));
				expect(ids({ channel: "sms", limit: 10 })).toEqual(["evt_4"]);
			});

			test("what waits is handed out oldest first", () => {
				for (const n of [3, 1, 2]) ledger.accept(eventOf(`evt_${n}`));
				ledger.dispose("evt_1", { state: "started", runId: "run_1" });
				expect(ledger.queued().map((event) => event.eventId)).toEqual(["evt_3", "evt_2"]);
			});

			test("the attachments of a message are kept once and found from the turn", () => {
				ledger.accept(eventOf("evt_1", { attachments: [file] }));
				const messages: Turn["messages"] = [{ role: "user", text: "see", eventId: "evt_1", attachments: [file] }];
				ledger.settle(turnOf("run_1", { messages }));
				expect(ledger.turn("run_1")?.messages).toEqual(messages);
			});
		});

		describe("sessions", () => {
			test("a session exists from its first message and counts its turns", () => {
				ledger.accept(eventOf("evt_1", { text: "  first\n line ", receivedAt: 10 }));
				expect(ledger.session("main")).toEqual({
					...{ session: "main", createdAt: 10, updatedAt: 10, turns: 0, title: "first line" },
				});
				ledger.settle(turnOf("run_1", { endedAt: 30 }));
				expect(ledger.session("main")).toMatchObject({ createdAt: 10, updatedAt: 30, turns: 1 });
				expect(ledger.session("other")).toBeUndefined();
			});

			test("its title is the beginning of the newest message, never half a character", () => {
				ledger.accept(eventOf("evt_1", { text: "old" }));
				ledger.accept(eventOf("evt_2", { text: `${"a".repeat(79)}🧵 and more` }));
				expect(ledger.session("main")?.title).toBe("a".repeat(79));
			});

			test("are listed by last use", () => {
				for (const [n, session] of ["a", "b", "c"].entries()) {
					ledger.accept(eventOf(`evt_${session}`, { session, receivedAt: 10 + n }));
				}
				ledger.accept(eventOf("evt_again", { session: "a", receivedAt: 20 }));
				const labels = (query: Parameters<Ledger["sessions"]>[0]) => ledger.sessions(query).map((one) => one.session);
				expect(labels({ limit: 10 })).toEqual(["a", "c", "b"]);
				expect(labels({ limit: 1, before: 20 })).toEqual(["c"]);
			});

			test("of one moment are not parted by a page's end", () => {
				for (const session of ["a", "b", "c"]) ledger.accept(eventOf(`evt_${session}`, { session, receivedAt: 10 }));
				ledger.accept(eventOf("evt_new", { session: "new", receivedAt: 20 }));
				const labels = (query: Parameters<Ledger["sessions"]>[0]) => ledger.sessions(query).map((one) => one.session);
				expect(labels({ limit: 2 })).toEqual(["new", "a", "b", "c"]);
				expect(labels({ limit: 2, before: 10 })).toEqual([]);
			});
		});
	});
}
