import { describe, expect, it } from "vitest";
import { type DeliveryMessage, deliveryWrites as w } from "../../packages/daemon/src/ledger/deliveries/port.ts";
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

/** Stores a message of the delivery, and the cursor. */
const put = (message: Partial<DeliveryMessage>, now: number, cursor = 0, id = request.id) =>
	w.put(id, { ordinal: 1, nonce: "n1", from: 0, state: "intended", ...message }, { cursor }, now);

const conflict = (message: RegExp) =>
	expect.objectContaining({ refusal: "conflict", message: expect.stringMatching(message) as string });

describe.each(stores)("deliveries %s", (_name, open) => {
	it("the same run, account and target is one delivery, in whatever order the target's fields are", async () => {
		const { ledger, write } = await open();
		const target = { to: "x", thread_id: "t", extra: { b: 1, a: 2 } };
		await write(w.open({ ...request, target }));
		const same = { extra: { a: 2, b: 1 }, thread_id: "t", to: "x" };
		const again = () => write(w.open({ ...request, id: "dlv_2", target: same }));
		await expect(again()).rejects.toThrow(expect.objectContaining({ refusal: "duplicate" }));
		await write(w.open({ ...request, id: "dlv_3" }), w.open({ ...request, id: "dlv_4", account: "b", target }));
		expect((await ledger.deliveries.list({ runId: "run_1", limit: 9 })).map(({ id }) => id)).toEqual([
			"dlv_4",
			"dlv_3",
			"dlv_1",
		]);
	});

	it("one that ended is active again from where it was", async () => {
		const { ledger, write } = await open();
		await write(w.open(request));
		await write(put({ state: "sent", messageId: "m1", to: 9 }, 3, 9));
		const before = await ledger.deliveries.get("dlv_1");
		await write(w.finish("dlv_1", "stale", "too old", 4));
		expect(await ledger.deliveries.list({ state: "active", limit: 9 })).toEqual([]);
		await write(w.reopen("dlv_1", 5));
		expect(await ledger.deliveries.get("dlv_1")).toEqual({ ...before, updatedAt: 5 });
		expect(await ledger.deliveries.list({ state: "active", limit: 9 })).toHaveLength(1);
		await expect(write(w.reopen("dlv_9", 6))).rejects.toThrow(conflict(/no delivery dlv_9/));
	});

	it("I7: a message is there as it was stored last, for who opens the file next", async () => {
		const { file, ledger, write } = await open();
		await write(w.open(request));
		await write(w.setMode("dlv_1", "stream", 2));
		await write(put({}, 3));
		expect(await ledger.deliveries.get("dlv_1")).toMatchObject({
			cursor: 0,
			messages: [{ nonce: "n1", state: "intended" }],
		});
		const first: DeliveryMessage = {
			ordinal: 1,
			nonce: "n1",
			from: 0,
			to: 9,
			messageId: "m1",
			state: "sent",
			shown: 7,
			edits: 2,
		};
		const open2: DeliveryMessage = {
			ordinal: 2,
			nonce: "n2",
			from: 9,
			to: 12,
			state: "intended",
			text: "abc",
			done: 1,
			facts: { a: 1 },
		};
		await write(w.put("dlv_1", { ...first, abandoned: true }, { cursor: 9, carry: "```" }, 6));
		await write(w.put("dlv_1", open2, { cursor: 9, carry: "```" }, 7));
		const before = await ledger.deliveries.get("dlv_1");
		expect(before).toEqual({
			...request,
			mode: "stream",
			state: "active",
			cursor: 9,
			carry: "```",
			updatedAt: 7,
			messages: [{ ...first, abandoned: true }, open2],
		});
		const path = file?.db.location();
		if (!file || !path) return;
		file.close();
		const { deliveries } = openLedger(path).ledger;
		expect(await deliveries.get("dlv_1")).toEqual(before);
		expect(await deliveries.list({ state: "active", limit: 9 })).toEqual([before]);
	});

	it("I7: a finished message is not dropped, and nothing moves the cursor or the last progress back", async () => {
		const { ledger, write } = await open();
		await write(w.open(request));
		await write(put({ state: "sent", messageId: "m1", to: 8 }, 9, 8));
		await write(put({ ordinal: 2, nonce: "n2", state: "open", messageId: "m2", shown: 9 }, 5, 3));
		expect(await ledger.deliveries.get("dlv_1")).toMatchObject({
			updatedAt: 9,
			cursor: 8,
			messages: [{}, { shown: 9 }],
		});
		await write(w.drop("dlv_1", "n2", 10));
		expect(await ledger.deliveries.get("dlv_1")).toMatchObject({ updatedAt: 10, messages: [{ nonce: "n1" }] });
		for (const nonce of ["n1", "n2"]) {
			await expect(write(w.drop("dlv_1", nonce, 11))).rejects.toThrow(conflict(/no message n/));
		}
		await expect(write(put({}, 11, 0, "dlv_9"))).rejects.toThrow(conflict(/no message n1 in delivery dlv_9/));
	});

	it("ended deliveries are listed, newest first, and are no longer pending", async () => {
		const { ledger, write } = await open();
		for (const n of [1, 2, 3, 4])
			await write(w.open({ ...request, id: `dlv_${n}`, runId: `run_${n}`, account: n % 2 ? "a" : "b" }));
		await write(w.finish("dlv_2", "failed", "gone: no such chat", 9));
		await write(w.finish("dlv_3", "complete", undefined, 10));
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
		await expect(write(w.finish("dlv_9", "complete", undefined, 1))).rejects.toThrow(conflict(/no delivery dlv_9/));
	});

	it("a message that did not reach its reader is found by its id or nonce, and its delivery is not complete any more", async () => {
		const { ledger, write } = await open();
		await write(w.open(request));
		await write(put({ to: 3, text: "one" }, 2));
		expect(
			await ledger.deliveries.ofMessage({ channel: "c", account: "a", messageId: "m1", nonce: "n1" }),
		).toMatchObject({
			nonce: "n1",
			delivery: { id: "dlv_1" },
		});
		await write(put({ state: "sent", messageId: "m1", to: 3 }, 3, 3));
		expect(await ledger.deliveries.ofMessage({ channel: "c", account: "b", messageId: "m1" })).toBeUndefined();
		expect(
			await ledger.deliveries.ofMessage({ channel: "c", account: "a", messageId: "m2", nonce: "n1" }),
		).toBeUndefined();
		expect(await ledger.deliveries.ofMessage({ channel: "c", account: "a", messageId: "m1" })).toMatchObject({
			nonce: "n1",
		});
		await write(w.finish("dlv_1", "complete", undefined, 4));
		await write(w.failed("dlv_1", "n1", { messageId: "m1", error: "no phone" }, 5));
		expect(await ledger.deliveries.get("dlv_1")).toMatchObject({
			state: "failed",
			error: "no phone",
			cursor: 3,
			updatedAt: 5,
			messages: [{ state: "failed", messageId: "m1", error: "no phone" }],
		});
	});

	it("an id that a platform used twice is the newest delivery's", async () => {
		const { ledger, write } = await open();
		for (const n of [1, 2]) {
			await write(w.open({ ...request, id: `dlv_${n}`, runId: `run_${n}` }));
			await write(put({ nonce: `n${n}`, state: "open", messageId: "m1" }, 3, 0, `dlv_${n}`));
		}
		expect((await ledger.deliveries.ofMessage({ channel: "c", account: "a", messageId: "m1" }))?.nonce).toBe("n2");
	});

	it("a failure that is reported before the message's own answer is not forgotten by it", async () => {
		const { ledger, write } = await open();
		await write(w.open(request));
		await write(put({ to: 3, text: "one" }, 2));
		await write(w.failed("dlv_1", "n1", { messageId: "m1", error: "no phone" }, 3));
		expect((await ledger.deliveries.get("dlv_1"))!.messages).toMatchObject([
			{ state: "intended", error: "no phone", text: "one" },
		]);
		await write(put({ state: "sent", messageId: "m1", to: 3 }, 4, 3));
		expect(await ledger.deliveries.get("dlv_1")).toMatchObject({
			state: "active",
			cursor: 3,
			messages: [{ state: "failed", error: "no phone" }],
		});
	});

	it("are counted by account and state, however many there are, by an index alone", async () => {
		const { file, ledger, write } = await open();
		const all = Array.from({ length: 700 }, (_, n) => {
			const opened = w.open({ ...request, id: `dlv_${n}`, runId: `run_${n}`, account: n % 7 === 0 ? "b" : "a" });
			return n % 2 ? [opened] : [opened, w.finish(`dlv_${n}`, n % 4 === 0 ? "complete" : "failed", undefined, 9)];
		});
		await write(...all.flat());
		const none = { active: 0, complete: 0, failed: 0, unknown: 0, stale: 0, damaged: 0 };
		const { deliveries } = ledger;
		expect(await deliveries.counts("c", "a")).toEqual({ ...none, active: 300, complete: 150, failed: 150 });
		expect((await deliveries.counts("c", "b")).active).toBe(50);
		expect(await deliveries.counts("c", "no")).toEqual(none);
		const counting = "SELECT state, count(*) FROM delivery WHERE channel = ? AND account = ? GROUP BY state";
		if (!file) return;
		const plan = file.db.prepare(`EXPLAIN QUERY PLAN ${counting}`).all("c", "a");
		expect(JSON.stringify(plan)).toContain("COVERING INDEX delivery_by_state");
	});

	it("ST2: several changes are one unit: all or none", async () => {
		const { ledger, write } = await open();
		await write(w.open(request));
		const unit = () => write(put({}, 2), w.drop("dlv_1", "other", 3));
		await expect(unit()).rejects.toThrow(conflict(/no message other/));
		expect((await ledger.deliveries.get("dlv_1"))!.messages).toEqual([]);
	});
});
