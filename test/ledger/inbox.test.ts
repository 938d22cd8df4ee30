import { describe, expect, test } from "vitest";
import { type InboundEvent, inboxWrites, type StoredInbox } from "../../packages/daemon/src/ledger/inbox/port.ts";
import { turnWrites } from "../../packages/daemon/src/ledger/turns/port.ts";
import { eventOf, notes, type OpenedAnywhere, stores, turnOf } from "./rig.ts";

const { accept, dispose, forgetRejected } = inboxWrites;
const duplicate = expect.objectContaining({ refusal: "duplicate" });
const conflict = expect.objectContaining({ refusal: "conflict" });
const rejected = { state: "rejected", because: "no" } as const;
const started = { state: "started", runId: "run_1" } as const;

const idsOf = async (found: ReturnType<StoredInbox["list"]>) => (await found).map((event) => event.eventId);

describe.each(stores)("inbox %s", (_name, open) => {
	test("I10: an event comes back with what became of it", async () => {
		const { ledger, write } = await open();
		const event = eventOf("evt_1", { attachments: [notes], idempotencyKey: "k", traceId: "t" });
		await write(accept(event));
		expect(await ledger.inbox.get("evt_1")).toEqual(event);
		await write(dispose("evt_1", started, ["queued"]));
		expect((await ledger.inbox.get("evt_1"))?.disposition).toEqual(started);
	});

	test("I10: every disposition comes back as it was", async () => {
		const { ledger, write } = await open();
		await write(accept(eventOf("evt_1")));
		const dispositions: InboundEvent["disposition"][] = [
			{ state: "batched", runId: "run_1" },
			{ state: "superseded", by: "evt_2" },
			{ state: "superseded", by: "evt_2", runId: "run_1" },
			{ state: "dropped", because: "full" },
			rejected,
			{ state: "queued" },
		];
		let state: InboundEvent["disposition"]["state"] = "queued";
		for (const disposition of dispositions) {
			await write(dispose("evt_1", disposition, [state]));
			expect((await ledger.inbox.get("evt_1"))?.disposition).toEqual(disposition);
			state = disposition.state;
		}
	});

	test("ST10: an event changes only from the states that are expected", async () => {
		const { ledger, write } = await open();
		await write(accept(eventOf("evt_1")));
		await write(dispose("evt_1", started, ["queued", "dropped"]));
		const again = () => write(dispose("evt_1", { state: "started", runId: "run_2" }, ["queued"]));
		await expect(again()).rejects.toThrow(conflict);
		await expect(again()).rejects.toThrow("Inbound event evt_1 is not there, or not queued.");
		expect((await ledger.inbox.get("evt_1"))?.disposition).toEqual(started);
		await expect(write(dispose("evt_none", started, ["queued"]))).rejects.toThrow(conflict);
	});

	test("ST2: a unit with a refused write changes nothing", async () => {
		const { ledger, write } = await open();
		const unit = () => write(accept(eventOf("evt_1")), dispose("evt_none", started, ["queued"]));
		await expect(unit()).rejects.toThrow(conflict);
		expect(await ledger.inbox.get("evt_1")).toBeUndefined();
		expect(await ledger.sessions.get("main")).toBeUndefined();
	});

	test("an event comes back with its origin, its way to wait and its facts", async () => {
		const { ledger, write } = await open();
		const event = eventOf("evt_1", {
			origin: { channel: "telegram", account: "bot", sourceId: "42", sender: "7", senderName: "Ann" },
			queue: { mode: "collect", collectMs: 5, messagesMax: 3, atCap: "summarise" },
			batch: ["evt_a", "evt_b"],
			facts: { deep: [{ a: 1 }] },
		});
		await write(accept(event));
		expect(await ledger.inbox.get("evt_1")).toEqual(event);
		expect(await ledger.inbox.bySource("telegram", "bot", "42")).toEqual(event);
		expect(await ledger.inbox.bySource("telegram", "other", "42")).toBeUndefined();
	});

	test("a source id counts once per account", async () => {
		const { ledger, write } = await open();
		const origin = { channel: "telegram", account: "bot", sourceId: "42", sender: "7" };
		await write(accept(eventOf("evt_1", { origin })));
		await expect(write(accept(eventOf("evt_2", { origin, session: "other" })))).rejects.toThrow(duplicate);
		const { sourceId: _, ...nameless } = origin;
		await write(accept(eventOf("evt_3", { origin: { ...origin, account: "other" } })));
		await write(accept(eventOf("evt_4", { origin: nameless })), accept(eventOf("evt_5", { origin: nameless })));
		expect(await idsOf(ledger.inbox.queued())).toEqual(["evt_1", "evt_3", "evt_4", "evt_5"]);
	});

	test("an idempotency key counts once per session", async () => {
		const { ledger, write } = await open();
		await write(accept(eventOf("evt_1", { idempotencyKey: "k" })));
		await expect(write(accept(eventOf("evt_2", { idempotencyKey: "k" })))).rejects.toThrow(duplicate);
		await write(accept(eventOf("evt_3", { idempotencyKey: "k", session: "other" })));
		await write(accept(eventOf("evt_4")), accept(eventOf("evt_5")));
		expect(await ledger.inbox.get("evt_2")).toBeUndefined();
		expect((await ledger.inbox.byKey("main", "k"))?.eventId).toBe("evt_1");
		expect(await ledger.inbox.byKey("main", "none")).toBeUndefined();
	});

	test("ST2: what was stored with U+0000 is found by the same key", async () => {
		const { ledger, write } = await open();
		const origin = { channel: "c", account: "a", sourceId: "4\0", sender: "\0" };
		await write(accept(eventOf("evt_1", { idempotencyKey: "k\0", text: "a\0b", origin, facts: { "\0": "\0" } })));
		expect(await ledger.inbox.byKey("main", "k\0")).toMatchObject({ text: "a\uFFFDb", facts: { "\uFFFD": "\uFFFD" } });
		expect((await ledger.inbox.bySource("c", "a", "4\0"))?.eventId).toBe("evt_1");
		await expect(write(accept(eventOf("evt_2", { idempotencyKey: "k\0" })))).rejects.toThrow(duplicate);
	});

	test("only the newest rejected events are kept", async () => {
		const { ledger, write } = await open();
		for (const n of [1, 2, 3, 4]) await write(accept(eventOf(`evt_${n}`, { disposition: rejected })));
		await write(accept(eventOf("evt_5")), forgetRejected(2));
		expect(await idsOf(ledger.inbox.list({ limit: 9 }))).toEqual(["evt_5", "evt_4", "evt_3"]);
		await write(forgetRejected(2));
		expect(await ledger.inbox.list({ limit: 9 })).toHaveLength(3);
		// A page whose last event is forgotten continues where it stood.
		await write(accept(eventOf("evt_0")));
		expect(await idsOf(ledger.inbox.list({ limit: 9, before: "evt_4a" }))).toEqual(["evt_4", "evt_3"]);
	});

	test("are listed newest first, by session, state and channel", async () => {
		const { ledger, write } = await open();
		await write(accept(eventOf("evt_1", { disposition: started })), accept(eventOf("evt_2")));
		await write(accept(eventOf("evt_3", { session: "other" })));
		const ids = (query: Parameters<StoredInbox["list"]>[0]) => idsOf(ledger.inbox.list(query));
		expect(await ids({ limit: 10 })).toEqual(["evt_3", "evt_2", "evt_1"]);
		expect(await ids({ limit: 1 })).toEqual(["evt_3"]);
		expect(await ids({ session: "main", limit: 10 })).toEqual(["evt_2", "evt_1"]);
		expect(await ids({ session: "main", state: "started", limit: 10 })).toEqual(["evt_1"]);
		expect(await ids({ state: "queued", limit: 10 })).toEqual(["evt_3", "evt_2"]);
		expect(await ids({ before: "evt_2", limit: 10 })).toEqual(["evt_1"]);
		await write(accept(eventOf("evt_4", { origin: { channel: "sms", account: "a", sender: "s" } })));
		expect(await ids({ channel: "sms", limit: 10 })).toEqual(["evt_4"]);
	});

	test("what waits is handed out oldest first, of all or of one session", async () => {
		const { ledger, write } = await open();
		for (const n of [3, 1, 2]) await write(accept(eventOf(`evt_${n}`, { session: n === 2 ? "other" : "main" })));
		await write(dispose("evt_1", started, ["queued"]));
		expect(await idsOf(ledger.inbox.queued())).toEqual(["evt_3", "evt_2"]);
		expect(await idsOf(ledger.inbox.queued("main"))).toEqual(["evt_3"]);
	});
});

describe.each(stores)("sessions %s", (_name, open) => {
	const labels = async ({ ledger }: OpenedAnywhere, query: { limit: number; before?: number }) =>
		(await ledger.sessions.list(query)).map((one) => one.session);

	test("a session exists from its first message and counts its turns", async () => {
		const { ledger, write } = await open();
		await write(accept(eventOf("evt_1", { text: "  first\n line ", receivedAt: 10, disposition: started })));
		const info = { session: "main", createdAt: 10, updatedAt: 10, turns: 0, revision: 0, title: "first line" };
		expect(await ledger.sessions.get("main")).toEqual(info);
		await write(turnWrites.settle(turnOf("run_1", { endedAt: 30 })));
		expect(await ledger.sessions.get("main")).toMatchObject({ createdAt: 10, updatedAt: 30, turns: 1 });
		expect(await ledger.sessions.get("other")).toBeUndefined();
	});

	test("a rejected event makes no session; neither does an event that stands for others", async () => {
		const { ledger, write } = await open();
		await write(accept(eventOf("evt_1", { session: "s1", disposition: rejected })));
		await write(accept(eventOf("evt_2", { session: "s2", batch: ["evt_0"] })));
		expect(await ledger.sessions.list({ limit: 9 })).toEqual([]);
	});

	test("its title is the beginning of the first message that is answered, never half a character", async () => {
		const { ledger, write } = await open();
		const title = async () => (await ledger.sessions.get("main"))?.title;
		await write(accept(eventOf("evt_1", { text: "taken back" })));
		await write(inboxWrites.dispose("evt_1", { state: "cancelled" }, ["queued"]));
		await write(accept(eventOf("evt_2", { text: `${"a".repeat(79)}🧵 and more` })));
		expect(await title()).toBe("");
		await write(inboxWrites.dispose("evt_2", started, ["queued"]));
		expect(await title()).toBe("a".repeat(79));
		await write(accept(eventOf("evt_3", { text: "a later one", disposition: started })));
		await write(accept(eventOf("evt_4", { text: "one that waits" })));
		expect(await title()).toBe("a".repeat(79));
		// Without an event on record, the turn's own message names it.
		await write(turnWrites.settle(turnOf("run_1", { session: "other" })));
		expect((await ledger.sessions.get("other"))?.title).not.toBe("");
	});

	test("are listed with where their first message came from", async () => {
		const { ledger, write } = await open();
		const origin = { channel: "telegram", account: "main", sender: "7", senderName: "Ann" };
		const facts = { chat: { id: "7", type: "direct" } };
		await write(accept(eventOf("evt_1", { session: "s1", origin: { ...origin, sourceId: "m1" }, facts })));
		await write(
			accept(eventOf("evt_2", { session: "s1", origin: { channel: "web", account: "web", sender: "owner" } })),
		);
		const [found] = await ledger.sessions.list({ limit: 9 });
		expect(found!.origin).toEqual({ ...origin, chat: facts.chat });
	});

	test("are listed by last use", async () => {
		const opened = await open();
		for (const [n, session] of ["a", "b", "c"].entries())
			await opened.write(accept(eventOf(`evt_${session}`, { session, receivedAt: 10 + n })));
		await opened.write(accept(eventOf("evt_again", { session: "a", receivedAt: 20 })));
		expect(await labels(opened, { limit: 10 })).toEqual(["a", "c", "b"]);
		expect(await labels(opened, { limit: 1, before: 20 })).toEqual(["c"]);
	});

	test("of one moment are not parted by a page's end", async () => {
		const opened = await open();
		for (const session of ["a", "b", "c"])
			await opened.write(accept(eventOf(`evt_${session}`, { session, receivedAt: 10 })));
		await opened.write(accept(eventOf("evt_new", { session: "new", receivedAt: 20 })));
		expect(await labels(opened, { limit: 2 })).toEqual(["new", "a", "b", "c"]);
		expect(await labels(opened, { limit: 2, before: 10 })).toEqual([]);
	});
});
