import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Deliveries, sqliteDeliveries, sqliteLedger } from "../../src/ledger/ledger.ts";
import { openSqlite, type SqliteFile } from "../../src/std/sqlite.ts";

let dir: string;
let file: SqliteFile;
let deliveries: Deliveries;

beforeEach(() => {
	dir = mkdtempSync(join(tmpdir(), "nexus-deliveries-"));
	file = openSqlite(join(dir, "nexus.db"), "process");
	deliveries = sqliteDeliveries(file);
});
afterEach(() => {
	file.close();
	rmSync(dir, { recursive: true, force: true });
});

const request = {
	id: "dlv_1",
	runId: "run_1",
	channel: "c",
	account: "a",
	target: { to: "x" },
	options: {},
	createdAt: 1,
};

describe("deliveries", () => {
	it("opening is idempotent per run, account and target, in whatever order the target's fields are", () => {
		const target = { to: "x", thread_id: "t", extra: { b: 1, a: 2 } };
		const first = deliveries.open({ ...request, target });
		const again = deliveries.open({
			...request,
			id: "dlv_2",
			target: { extra: { a: 2, b: 1 }, thread_id: "t", to: "x" },
		});
		expect([first.created, again.created]).toEqual([true, false]);
		expect(again.delivery).toEqual(first.delivery);
		expect(deliveries.open({ ...request, id: "dlv_3" }).created).toBe(true);
		expect(deliveries.open({ ...request, id: "dlv_4", account: "b", target }).created).toBe(true);
	});

	it("one that ended is active again from where it was", () => {
		deliveries.open(request);
		deliveries.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0 }, 2);
		deliveries.sent("dlv_1", "n1", { messageId: "m1", to: 9 }, 3);
		const before = deliveries.get("dlv_1");
		deliveries.finish("dlv_1", "stale", "too old", 4);
		expect(deliveries.unfinished()).toEqual([]);
		deliveries.reopen("dlv_1", 5);
		expect(deliveries.get("dlv_1")).toEqual({ ...before, updatedAt: 5 });
		expect(deliveries.unfinished()).toHaveLength(1);
		expect(() => deliveries.reopen("dlv_9", 6)).toThrow("There is no delivery dlv_9");
	});

	it("I7: a message's life moves the cursor only when it is finished, and survives reopening the file", () => {
		deliveries.open(request);
		deliveries.setMode("dlv_1", "stream", 2);
		deliveries.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0 }, 3);
		expect(deliveries.get("dlv_1")).toMatchObject({
			cursor: 0,
			messages: [{ ordinal: 1, nonce: "n1", from: 0, state: "intended" }],
		});
		deliveries.created("dlv_1", "n1", "m1", 4);
		deliveries.shown("dlv_1", "n1", 7, 5);
		expect(deliveries.get("dlv_1")).toMatchObject({
			cursor: 0,
			messages: [{ messageId: "m1", shown: 7, state: "open" }],
		});
		deliveries.sent("dlv_1", "n1", { messageId: "m1", to: 9, carry: "```" }, 6);
		deliveries.intend("dlv_1", { ordinal: 2, nonce: "n2", from: 9, to: 12, text: "abc" }, 7);
		const before = deliveries.get("dlv_1");
		expect(before).toEqual({
			...request,
			...{ mode: "stream", state: "active", cursor: 9, carry: "```", updatedAt: 7 },
			messages: [
				{ ordinal: 1, nonce: "n1", from: 0, to: 9, messageId: "m1", state: "sent", shown: 7, edits: 2 },
				{ ordinal: 2, nonce: "n2", from: 9, to: 12, state: "intended", text: "abc" },
			],
		});
		file.close();
		file = openSqlite(join(dir, "nexus.db"), "process");
		deliveries = sqliteDeliveries(file);
		expect(deliveries.get("dlv_1")).toEqual(before);
		expect(deliveries.unfinished()).toEqual([before]);
	});

	it("announcing the same nonce again keeps its place; what was never created can be withdrawn", () => {
		deliveries.open(request);
		deliveries.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one" }, 2);
		deliveries.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0, to: 4, text: "two!" }, 3);
		expect(deliveries.get("dlv_1")!.messages).toEqual([
			{ ordinal: 1, nonce: "n1", from: 0, to: 4, text: "two!", state: "intended" },
		]);
		deliveries.withdraw("dlv_1", "n1", 4);
		expect(deliveries.get("dlv_1")!.messages).toEqual([]);
		expect(() => deliveries.withdraw("dlv_1", "n1", 4)).toThrow(/no message n1/);
	});

	it("I7: what was created is not withdrawn, and nothing moves the cursor or the last progress back", () => {
		deliveries.open(request);
		for (const n of [1, 2]) deliveries.intend("dlv_1", { ordinal: n, nonce: `n${n}`, from: 0 }, 2);
		deliveries.created("dlv_1", "n1", "m1", 9);
		expect(() => deliveries.withdraw("dlv_1", "n1", 9)).toThrow(/no message n1/);
		deliveries.intend("dlv_1", { ordinal: 3, nonce: "n3", from: 0 }, 2);
		deliveries.created("dlv_1", "n3", "m3", 9);
		deliveries.remove("dlv_1", "n3", 9);
		expect(() => deliveries.remove("dlv_1", "n3", 9)).toThrow(/no message n3/);
		deliveries.shown("dlv_1", "n1", 4, 5);
		expect(deliveries.get("dlv_1")).toMatchObject({ updatedAt: 9, messages: [{ state: "open", shown: 4 }, {}] });
		deliveries.sent("dlv_1", "n1", { messageId: "m1", to: 8 }, 10);
		deliveries.sent("dlv_1", "n2", { messageId: "m2", to: 3 }, 11);
		expect(deliveries.get("dlv_1")!.cursor).toBe(8);
	});

	it("a message whose outcome was not known is intended again when it is announced again", () => {
		deliveries.open(request);
		deliveries.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one" }, 2);
		deliveries.doubt("dlv_1", "n1", 3);
		deliveries.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one" }, 4);
		expect(deliveries.get("dlv_1")!.messages).toMatchObject([{ state: "intended" }]);
	});

	it("the text of a send is kept only as long as its outcome is not known", () => {
		deliveries.open(request);
		deliveries.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one", done: 1 }, 2);
		expect(deliveries.get("dlv_1")!.messages[0]).toMatchObject({ text: "one", done: 1 });
		deliveries.sent("dlv_1", "n1", { messageId: "m", to: 3 }, 3);
		expect(deliveries.get("dlv_1")!.messages[0]).not.toHaveProperty("text");
		expect(deliveries.get("dlv_1")!.messages[0]).not.toHaveProperty("done");
		deliveries.intend("dlv_1", { ordinal: 2, nonce: "n2", from: 3 }, 4);
		deliveries.doubt("dlv_1", "n2", 5);
		expect(deliveries.get("dlv_1")!.messages[1]).toMatchObject({ state: "unknown" });
	});

	it("what has ended is listed, newest first, and no longer owed", () => {
		for (const n of [1, 2, 3, 4])
			deliveries.open({ ...request, id: `dlv_${n}`, runId: `run_${n}`, account: n % 2 ? "a" : "b" });
		deliveries.finish("dlv_2", "failed", "gone: no such chat", 9);
		deliveries.finish("dlv_3", "complete", undefined, 10);
		const ids = (query: object) => deliveries.list({ limit: 10, ...query }).map(({ id }) => id);
		expect(ids({})).toEqual(["dlv_4", "dlv_3", "dlv_2", "dlv_1"]);
		expect(ids({ limit: 2, before: "dlv_3" })).toEqual(["dlv_2", "dlv_1"]);
		expect(ids({ account: "b" })).toEqual(["dlv_4", "dlv_2"]);
		expect(ids({ state: "complete" })).toEqual(["dlv_3"]);
		expect(ids({ runId: "run_1", channel: "c" })).toEqual(["dlv_1"]);
		expect(deliveries.unfinished().map(({ id }) => id)).toEqual(["dlv_1", "dlv_4"]);
		expect(deliveries.get("dlv_2")).toMatchObject({ state: "failed", error: "gone: no such chat", endedAt: 9 });
		expect(() => deliveries.finish("dlv_9", "complete", undefined, 1)).toThrow(/no delivery dlv_9/);
	});

	it("are counted by account and state, however many there are, by an index alone", () => {
		deliveries.together(() => {
			for (let n = 0; n < 700; n++) {
				deliveries.open({ ...request, id: `dlv_${n}`, runId: `run_${n}`, account: n % 7 === 0 ? "b" : "a" });
				if (n % 2 === 0) deliveries.finish(`dlv_${n}`, n % 4 === 0 ? "complete" : "failed", undefined, 9);
			}
		});
		expect(deliveries.counts("c", "a")).toEqual({
			active: 300,
			complete: 150,
			failed: 150,
			unknown: 0,
			stale: 0,
			damaged: 0,
		});
		expect(deliveries.counts("c", "b").active).toBe(50);
		expect(deliveries.counts("c", "no")).toEqual({
			active: 0,
			complete: 0,
			failed: 0,
			unknown: 0,
			stale: 0,
			damaged: 0,
		});
		const plan = file.db
			.prepare(
				"EXPLAIN QUERY PLAN SELECT state, count(*) FROM delivery WHERE channel = ? AND account = ? GROUP BY state",
			)
			.all("c", "a");
		expect(JSON.stringify(plan)).toContain("COVERING INDEX delivery_by_state");
	});

	it("a message that did not reach its reader is found by its id or nonce, and its delivery is not complete any more", () => {
		deliveries.open(request);
		deliveries.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one" }, 2);
		expect(deliveries.ofMessage({ channel: "c", account: "a", messageId: "m1", nonce: "n1" })).toMatchObject({
			nonce: "n1",
			delivery: { id: "dlv_1" },
		});
		deliveries.sent("dlv_1", "n1", { messageId: "m1", to: 3 }, 3);
		expect(deliveries.ofMessage({ channel: "c", account: "b", messageId: "m1" })).toBeUndefined();
		expect(deliveries.ofMessage({ channel: "c", account: "a", messageId: "m2", nonce: "n1" })).toBeUndefined();
		expect(deliveries.ofMessage({ channel: "c", account: "a", messageId: "m1" })).toMatchObject({ nonce: "n1" });
		deliveries.finish("dlv_1", "complete", undefined, 4);
		deliveries.failed("dlv_1", "n1", { messageId: "m1", error: "no phone" }, 5);
		expect(deliveries.get("dlv_1")).toMatchObject({
			...{ state: "failed", error: "no phone", cursor: 3, updatedAt: 5 },
			messages: [{ state: "failed", messageId: "m1", error: "no phone" }],
		});
	});

	it("an id that a platform used twice is the newest delivery's", () => {
		for (const n of [1, 2]) {
			deliveries.open({ ...request, id: `dlv_${n}`, runId: `run_${n}` });
			deliveries.intend(`dlv_${n}`, { ordinal: 1, nonce: `n${n}`, from: 0 }, 2);
			deliveries.created(`dlv_${n}`, `n${n}`, "m1", 3);
		}
		expect(deliveries.ofMessage({ channel: "c", account: "a", messageId: "m1" })?.nonce).toBe("n2");
	});

	it("a failure that is told before the message's own answer is not forgotten by it", () => {
		deliveries.open(request);
		deliveries.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one" }, 2);
		deliveries.failed("dlv_1", "n1", { messageId: "m1", error: "no phone" }, 3);
		expect(deliveries.get("dlv_1")!.messages).toMatchObject([{ state: "intended", error: "no phone", text: "one" }]);
		deliveries.sent("dlv_1", "n1", { messageId: "m1", to: 3 }, 4);
		expect(deliveries.get("dlv_1")).toMatchObject({ state: "active", cursor: 3, messages: [{ state: "failed" }] });
	});

	it("several changes are one transaction: all or none", () => {
		deliveries.open(request);
		const work = () =>
			deliveries.together(() => {
				deliveries.intend("dlv_1", { ordinal: 1, nonce: "n1", from: 0 }, 2);
				deliveries.created("dlv_1", "other", "m", 3);
			});
		expect(work).toThrow(/no message other/);
		expect(deliveries.get("dlv_1")!.messages).toEqual([]);
	});

	it("lives in one file with the rest of the ledger", () => {
		expect(() => sqliteLedger(file)).not.toThrow();
		expect(() => sqliteDeliveries(file)).not.toThrow();
	});
});
