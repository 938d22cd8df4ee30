import { describe, expect, it } from "vitest";
import { deliveryWrites as w } from "../../packages/daemon/src/ledger/deliveries/port.ts";
import { openLedger, stores } from "./rig.ts";

const request = {
	id: "dlv_1",
	runId: "run_1",
	channel: "c",
	account: "a",
	target: { to: "x" },
	options: {},
	createdAt: 1,
};

const conflict = (message: RegExp) =>
	expect.objectContaining({ refusal: "conflict", message: expect.stringMatching(message) as string });

describe.each(stores)("deliveries %s", (_name, open) => {
	it("the same run, account and target is one delivery, in whatever order the target's fields are", async () => {
		const { ledger, write } = open();
		const target = { to: "x", thread_id: "t", extra: { b: 1, a: 2 } };
		write(w.open({ ...request, target }));
		const same = { extra: { a: 2, b: 1 }, thread_id: "t", to: "x" };
		const again = () => write(w.open({ ...request, id: "dlv_2", target: same }));
		expect(again).toThrow(expect.objectContaining({ refusal: "duplicate" }));
		write(w.open({ ...request, id: "dlv_3" }), w.open({ ...request, id: "dlv_4", account: "b", target }));
		expect((await ledger.deliveries.list({ runId: "run_1", limit: 9 })).map(({ id }) => id)).toEqual([
			"dlv_4",
			"dlv_3",
			"dlv_1",
		]);
	});

	it("one that ended is active again from where it was", async () => {
		const { ledger, write } = open();
		write(w.open(request));
		write(w.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0 }, 2));
		write(w.sent("dlv_1", "n1", { messageId: "m1", to: 9 }, 3));
		const before = await ledger.deliveries.get("dlv_1");
		write(w.finish("dlv_1", "stale", "too old", 4));
		expect(await ledger.deliveries.list({ state: "active", limit: 9 })).toEqual([]);
		write(w.reopen("dlv_1", 5));
		expect(await ledger.deliveries.get("dlv_1")).toEqual({ ...before, updatedAt: 5 });
		expect(await ledger.deliveries.list({ state: "active", limit: 9 })).toHaveLength(1);
		expect(() => write(w.reopen("dlv_9", 6))).toThrow(conflict(/no delivery dlv_9/));
	});

	it("I7: a message's life moves the cursor only when it is finished, and is there for who opens the file next", async () => {
		const { file, ledger, write } = open();
		write(w.open(request));
		write(w.setMode("dlv_1", "stream", 2));
		write(w.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0 }, 3));
		expect(await ledger.deliveries.get("dlv_1")).toMatchObject({
			cursor: 0,
			messages: [{ ordinal: 1, nonce: "n1", from: 0, state: "intended" }],
		});
		write(w.created("dlv_1", "n1", "m1", 4));
		write(w.shown("dlv_1", "n1", 7, 5));
		expect(await ledger.deliveries.get("dlv_1")).toMatchObject({
			cursor: 0,
			messages: [{ messageId: "m1", shown: 7, state: "open" }],
		});
		write(w.sent("dlv_1", "n1", { messageId: "m1", to: 9, carry: "```" }, 6));
		write(w.intend("dlv_1", { ordinal: 2, nonce: "n2", from: 9, to: 12, text: "abc" }, 7));
		const before = await ledger.deliveries.get("dlv_1");
		expect(before).toEqual({
			...request,
			mode: "stream",
			state: "active",
			cursor: 9,
			carry: "```",
			updatedAt: 7,
			messages: [
				{ ordinal: 1, nonce: "n1", from: 0, to: 9, messageId: "m1", state: "sent", shown: 7, edits: 2 },
				{ ordinal: 2, nonce: "n2", from: 9, to: 12, state: "intended", text: "abc" },
			],
		});
		const path = file.db.location();
		if (path === null) return;
		file.close();
		const { deliveries } = openLedger(path).ledger;
		expect(await deliveries.get("dlv_1")).toEqual(before);
		expect(await deliveries.list({ state: "active", limit: 9 })).toEqual([before]);
	});

	it("announcing the same nonce again keeps its place; what was never created can be withdrawn", async () => {
		const { ledger, write } = open();
		write(w.open(request));
		write(w.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one" }, 2));
		write(w.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0, to: 4, text: "two!" }, 3));
		expect((await ledger.deliveries.get("dlv_1"))!.messages).toEqual([
			{ ordinal: 1, nonce: "n1", from: 0, to: 4, text: "two!", state: "intended" },
		]);
		write(w.withdraw("dlv_1", "n1", 4));
		expect((await ledger.deliveries.get("dlv_1"))!.messages).toEqual([]);
		expect(() => write(w.withdraw("dlv_1", "n1", 4))).toThrow(conflict(/no message n1/));
	});

	it("I7: what was created is not withdrawn, and nothing moves the cursor or the last progress back", async () => {
		const { ledger, write } = open();
		write(w.open(request));
		for (const n of [1, 2]) write(w.intend("dlv_1", { ordinal: n, nonce: `n${n}`, from: 0 }, 2));
		write(w.created("dlv_1", "n1", "m1", 9));
		expect(() => write(w.withdraw("dlv_1", "n1", 9))).toThrow(conflict(/no message n1/));
		write(w.intend("dlv_1", { ordinal: 3, nonce: "n3", from: 0 }, 2));
		write(w.created("dlv_1", "n3", "m3", 9));
		write(w.remove("dlv_1", "n3", 9));
		expect(() => write(w.remove("dlv_1", "n3", 9))).toThrow(conflict(/no message n3/));
		write(w.shown("dlv_1", "n1", 4, 5));
		expect(await ledger.deliveries.get("dlv_1")).toMatchObject({
			updatedAt: 9,
			messages: [{ state: "open", shown: 4 }, {}],
		});
		write(w.sent("dlv_1", "n1", { messageId: "m1", to: 8 }, 10));
		write(w.sent("dlv_1", "n2", { messageId: "m2", to: 3 }, 11));
		expect((await ledger.deliveries.get("dlv_1"))!.cursor).toBe(8);
	});

	it("a message whose outcome was not known is intended again when it is announced again", async () => {
		const { ledger, write } = open();
		write(w.open(request));
		write(w.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one" }, 2));
		write(w.doubt("dlv_1", "n1", 3));
		write(w.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one" }, 4));
		expect((await ledger.deliveries.get("dlv_1"))!.messages).toMatchObject([{ state: "intended" }]);
	});

	it("the text of a send is kept only as long as its outcome is not known", async () => {
		const { ledger, write } = open();
		write(w.open(request));
		write(w.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one", done: 1 }, 2));
		expect((await ledger.deliveries.get("dlv_1"))!.messages[0]).toMatchObject({ text: "one", done: 1 });
		write(w.sent("dlv_1", "n1", { messageId: "m", to: 3 }, 3));
		expect((await ledger.deliveries.get("dlv_1"))!.messages[0]?.text).toBeUndefined();
		expect((await ledger.deliveries.get("dlv_1"))!.messages[0]?.done).toBeUndefined();
		write(w.intend("dlv_1", { ordinal: 2, nonce: "n2", from: 3 }, 4));
		write(w.doubt("dlv_1", "n2", 5));
		expect((await ledger.deliveries.get("dlv_1"))!.messages[1]).toMatchObject({ state: "unknown" });
	});

	it("ended deliveries are listed, newest first, and are no longer pending", async () => {
		const { ledger, write } = open();
		for (const n of [1, 2, 3, 4])
			write(w.open({ ...request, id: `dlv_${n}`, runId: `run_${n}`, account: n % 2 ? "a" : "b" }));
		write(w.finish("dlv_2", "failed", "gone: no such chat", 9));
		write(w.finish("dlv_3", "complete", undefined, 10));
		const ids = async (query: object) => (await ledger.deliveries.list({ limit: 10, ...query })).map(({ id }) => id);
		expect(await ids({})).toEqual(["dlv_4", "dlv_3", "dlv_2", "dlv_1"]);
		expect(await ids({ limit: 2, before: "dlv_3" })).toEqual(["dlv_2", "dlv_1"]);
		expect(await ids({ limit: 2, before: "dlv_35" })).toEqual(["dlv_3", "dlv_2"]);
		expect(await ids({ limit: 2, except: ["dlv_4", "dlv_2"] })).toEqual(["dlv_3", "dlv_1"]);
		expect(await ids({ account: "b" })).toEqual(["dlv_4", "dlv_2"]);
		expect(await ids({ state: "complete" })).toEqual(["dlv_3"]);
		expect(await ids({ runId: "run_1", channel: "c" })).toEqual(["dlv_1"]);
		expect(await ids({ state: "active" })).toEqual(["dlv_4", "dlv_1"]);
		expect(await ledger.deliveries.get("dlv_2")).toMatchObject({
			state: "failed",
			error: "gone: no such chat",
			endedAt: 9,
		});
		expect(() => write(w.finish("dlv_9", "complete", undefined, 1))).toThrow(conflict(/no delivery dlv_9/));
	});

	it("a message that did not reach its reader is found by its id or nonce, and its delivery is not complete any more", async () => {
		const { ledger, write } = open();
		write(w.open(request));
		write(w.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one" }, 2));
		expect(
			await ledger.deliveries.ofMessage({ channel: "c", account: "a", messageId: "m1", nonce: "n1" }),
		).toMatchObject({
			nonce: "n1",
			delivery: { id: "dlv_1" },
		});
		write(w.sent("dlv_1", "n1", { messageId: "m1", to: 3 }, 3));
		expect(await ledger.deliveries.ofMessage({ channel: "c", account: "b", messageId: "m1" })).toBeUndefined();
		expect(
			await ledger.deliveries.ofMessage({ channel: "c", account: "a", messageId: "m2", nonce: "n1" }),
		).toBeUndefined();
		expect(await ledger.deliveries.ofMessage({ channel: "c", account: "a", messageId: "m1" })).toMatchObject({
			nonce: "n1",
		});
		write(w.finish("dlv_1", "complete", undefined, 4));
		write(w.failed("dlv_1", "n1", { messageId: "m1", error: "no phone" }, 5));
		expect(await ledger.deliveries.get("dlv_1")).toMatchObject({
			state: "failed",
			error: "no phone",
			cursor: 3,
			updatedAt: 5,
			messages: [{ state: "failed", messageId: "m1", error: "no phone" }],
		});
	});

	it("an id that a platform used twice is the newest delivery's", async () => {
		const { ledger, write } = open();
		for (const n of [1, 2]) {
			write(w.open({ ...request, id: `dlv_${n}`, runId: `run_${n}` }));
			write(w.intend(`dlv_${n}`, { ordinal: 1, nonce: `n${n}`, from: 0 }, 2));
			write(w.created(`dlv_${n}`, `n${n}`, "m1", 3));
		}
		expect((await ledger.deliveries.ofMessage({ channel: "c", account: "a", messageId: "m1" }))?.nonce).toBe("n2");
	});

	it("a failure that is reported before the message's own answer is not forgotten by it", async () => {
		const { ledger, write } = open();
		write(w.open(request));
		write(w.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one" }, 2));
		write(w.failed("dlv_1", "n1", { messageId: "m1", error: "no phone" }, 3));
		expect((await ledger.deliveries.get("dlv_1"))!.messages).toMatchObject([
			{ state: "intended", error: "no phone", text: "one" },
		]);
		write(w.sent("dlv_1", "n1", { messageId: "m1", to: 3 }, 4));
		expect(await ledger.deliveries.get("dlv_1")).toMatchObject({
			state: "active",
			cursor: 3,
			messages: [{ state: "failed" }],
		});
	});

	it("are counted by account and state, however many there are, by an index alone", async () => {
		const { file, ledger, write } = open();
		const all = Array.from({ length: 700 }, (_, n) => {
			const opened = w.open({ ...request, id: `dlv_${n}`, runId: `run_${n}`, account: n % 7 === 0 ? "b" : "a" });
			return n % 2 ? [opened] : [opened, w.finish(`dlv_${n}`, n % 4 === 0 ? "complete" : "failed", undefined, 9)];
		});
		write(...all.flat());
		const none = { active: 0, complete: 0, failed: 0, unknown: 0, stale: 0, damaged: 0 };
		const { deliveries } = ledger;
		expect(await deliveries.counts("c", "a")).toEqual({ ...none, active: 300, complete: 150, failed: 150 });
		expect((await deliveries.counts("c", "b")).active).toBe(50);
		expect(await deliveries.counts("c", "no")).toEqual(none);
		const counting = "SELECT state, count(*) FROM delivery WHERE channel = ? AND account = ? GROUP BY state";
		const plan = file.db.prepare(`EXPLAIN QUERY PLAN ${counting}`).all("c", "a");
		expect(JSON.stringify(plan)).toContain("COVERING INDEX delivery_by_state");
	});

	it("ST2: several changes are one unit: all or none", async () => {
		const { ledger, write } = open();
		write(w.open(request));
		const unit = () =>
			write(w.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0 }, 2), w.created("dlv_1", "other", "m", 3));
		expect(unit).toThrow(conflict(/no message other/));
		expect((await ledger.deliveries.get("dlv_1"))!.messages).toEqual([]);
	});
});
