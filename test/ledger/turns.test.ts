import { describe, expect, onTestFinished, test } from "vitest";
import { createBus } from "../../packages/daemon/src/bus/bus.ts";
import { inboxWrites } from "../../packages/daemon/src/ledger/inbox/port.ts";
import { type Turn, type Turns, turnWrites } from "../../packages/daemon/src/ledger/turns/port.ts";
import { quiet } from "../quiet.ts";
import { eventOf, fullTurn, notes, stores, turnOf } from "./rig.ts";

describe.each(stores)("turns %s", (_name, open) => {
	test("a turn comes back as it was settled", async () => {
		const { ledger, write } = await open();
		await write(turnWrites.settle(fullTurn));
		expect(await ledger.turns.get("run_full")).toEqual(fullTurn);
		expect(await ledger.turns.get("run_other")).toBeUndefined();
	});

	test("settling a run twice is a duplicate and changes nothing", async () => {
		const { ledger, write } = await open();
		await write(turnWrites.settle(turnOf("run_1")));
		const again = turnOf("run_1", { messages: [], status: "failed" });
		await expect(write(turnWrites.settle(again))).rejects.toThrow(
			expect.objectContaining({ code: "conflict", refusal: "duplicate" }),
		);
		expect(await ledger.turns.get("run_1")).toEqual(turnOf("run_1"));
		expect((await ledger.sessions.get("main"))?.turns).toBe(1);
	});

	test("I5: a turn is settled with everything of its commit, or not at all", async () => {
		const { ledger, write } = await open();
		const failing = write(turnWrites.settle(turnOf("run_1")), turnWrites.retrace("run_none", fullTurn.trace!));
		await expect(failing).rejects.toThrow("run_none");
		expect(await ledger.turns.get("run_1")).toBeUndefined();
		expect(await ledger.sessions.get("main")).toBeUndefined();
		await write(turnWrites.settle(turnOf("run_1")));
		expect(await ledger.turns.get("run_1")).toEqual(turnOf("run_1"));
	});

	test("the trace of a settled run can be replaced", async () => {
		const { ledger, write } = await open();
		await write(turnWrites.settle(fullTurn));
		const trace = { ...fullTurn.trace!, deliveries: ["dlv_1"] };
		await write(turnWrites.retrace("run_full", trace));
		expect(await ledger.turns.get("run_full")).toEqual({ ...fullTurn, trace });
		await expect(write(turnWrites.retrace("run_other", trace))).rejects.toThrow(
			expect.objectContaining({ refusal: "conflict", message: "Run run_other has not settled." }),
		);
	});

	test("are listed newest first, per session, page by page", async () => {
		const { ledger, write } = await open();
		for (const n of [1, 2, 3, 4])
			await write(turnWrites.settle(turnOf(`run_${n}`, { session: n === 2 ? "other" : "main" })));
		const ids = async (query: Parameters<Turns["list"]>[0]) =>
			(await ledger.turns.list(query)).map((turn) => turn.runId);
		expect(await ids({ limit: 10 })).toEqual(["run_4", "run_3", "run_2", "run_1"]);
		expect(await ids({ session: "main", limit: 2 })).toEqual(["run_4", "run_3"]);
		expect(await ids({ session: "main", limit: 2, before: "run_3" })).toEqual(["run_1"]);
		expect(await ids({ limit: 2, before: "run_3" })).toEqual(["run_2", "run_1"]);
		expect(await ids({ session: "nobody", limit: 2 })).toEqual([]);
	});

	test("P6.5: runs are listed by when they began, in whatever order they settled, also before one that has not", async () => {
		const { ledger, write } = await open();
		for (const n of [3, 1, 5, 2])
			await write(turnWrites.settle(turnOf(`run_${n}`, { session: n === 2 ? "other" : "main" })));
		const ids = async (query: Parameters<Turns["begun"]>[0]) =>
			(await ledger.turns.begun(query)).map((turn) => turn.runId);
		expect(await ids({ limit: 10 })).toEqual(["run_5", "run_3", "run_2", "run_1"]);
		expect(await ids({ limit: 2, before: "run_4" })).toEqual(["run_3", "run_2"]);
		expect(await ids({ session: "main", limit: 2, before: "run_5" })).toEqual(["run_3", "run_1"]);
		expect(await ids({ session: "nobody", limit: 2 })).toEqual([]);
	});

	test("a run that has not settled is newer than every turn", async () => {
		const { ledger, write } = await open();
		await write(turnWrites.settle(turnOf("run_1")));
		expect(await ledger.turns.list({ limit: 10, before: "run_live" })).toHaveLength(1);
	});

	test("the attachments of a message are kept once and found from the turn", async () => {
		const { file, ledger, write } = await open();
		const messages: Turn["messages"] = [{ role: "user", text: "see", eventId: "evt_1", attachments: [notes] }];
		await write(inboxWrites.accept(eventOf("evt_1", { attachments: [notes] })));
		await write(turnWrites.settle(turnOf("run_1", { messages })));
		expect((await ledger.turns.get("run_1"))?.messages).toEqual(messages);
		if (!file) return;
		expect(file.db.prepare("SELECT attachments FROM messages").all()).toEqual([{ attachments: null }]);
	});

	test("ST2: U+0000 is replaced in every text, that of JSON included", async () => {
		const { ledger, write } = await open();
		const trace = { ...fullTurn.trace!, sender: "a\0b \\u0000 \\\0" };
		await write(
			turnWrites.settle(turnOf("run_1", { trace, messages: [{ role: "user", text: "a\0b" }], engine: "\0" })),
		);
		expect(await ledger.turns.get("run_1")).toMatchObject({
			engine: "\uFFFD",
			messages: [{ text: "a\uFFFDb" }],
			trace: { sender: "a\uFFFDb \\u0000 \\\uFFFD" },
		});
	});

	test("ST2: a value that no row can hold is refused, and only its unit", async () => {
		const { ledger, storage } = await open();
		const bus = createBus({ ...quiet, storage: storage() });
		onTestFinished(() => bus.close());
		const endless: Record<string, unknown> = {};
		endless.self = endless;
		const odd = [{ startedAt: {} }, { startedAt: 1.5 }, { startedAt: "x" }, { startedAt: null }, { trace: endless }];
		const settle = (fields: object) => bus.write([turnWrites.settle({ ...turnOf("run_1"), ...fields })]);
		const outcomes = await Promise.allSettled([...odd.map(settle), bus.write([turnWrites.settle(turnOf("run_2"))])]);
		const refused = { status: "rejected", reason: expect.objectContaining({ refusal: "conflict" }) as unknown };
		expect(outcomes).toMatchObject([...odd.map(() => refused), { status: "fulfilled" }]);
		expect(await ledger.turns.list({ limit: 9 })).toEqual([turnOf("run_2")]);
	});
});
