/** I7: a delivery is planned when its run begins: the run's begin, its messages' dispositions and its deliveries are one transaction. */

import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { createBroker } from "../../../packages/daemon/src/broker/broker.ts";
import { deliveryWrites } from "../../../packages/daemon/src/ledger/deliveries/port.ts";
import { createNex, createOutbound } from "../../../packages/daemon/src/nex/nex.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { NexusError, newId } from "../../../packages/protocol/src/protocol.ts";
import { engineOf, gate, type Play, tempFile, text, until } from "../../broker/rig.ts";
import { quiet } from "../../quiet.ts";
import { refuseWrites, storeForTest } from "../../store.ts";
import { messageOf, nexRig, outboundOf, stuck, telegram } from "./rig.ts";

const config = (mode: "followup" | "collect" = "followup") => telegram({ queue: { mode, collectMs: 5 } });

/** One file for all stores, as in the daemon; deliveries are recorded, and nothing is ever sent. */
function rig(
	path: string,
	{ play = stuck, mode = "followup" as "followup" | "collect", owe = () => {}, dies = false } = {},
) {
	const store = storeForTest({ path, limits: { commitRetryMs: 5 }, dies });
	const { bus, ledger } = store;
	const broker = createBroker({ ...quiet, bus, ledger, engine: engineOf(play) });
	const out = outboundOf({
		planDelivery({ runId, account: { channel, id: account }, target }) {
			owe();
			const delivery = { id: newId("dlv"), runId, channel, account, target, options: {}, createdAt: Date.now() };
			return { delivery, write: deliveryWrites.open(delivery) };
		},
		deliveries: async (query) => ledger.deliveries.list(query),
	});
	const nex = createNex({ broker, bus, ledger, outbound: out.outbound, config: config(mode) });
	const unfinished = async () =>
		(await ledger.deliveries.list({ state: "active", limit: 100 })).map(({ id }) => id).reverse();
	const hear = (said: string) => nex.receive({ channel: "telegram", account: "bot", message: messageOf(said) });
	return { ...store, broker, nex, hear, unfinished, ...out };
}

/** Ends when it may. */
const saidThen = (end: Promise<void>): Play =>
	async function* () {
		yield text("x");
		await end;
	};

/** Reads through a second connection, which sees only committed rows. */
function committed(path: string): { runs: string[]; owed: string[] } {
	const db = new DatabaseSync(path, { readOnly: true });
	try {
		const texts = (sql: string) =>
			db
				.prepare(sql)
				.all()
				.map((row) => String(Object.values(row)[0]));
		db.exec("BEGIN");
		return { runs: texts("SELECT name FROM log WHERE kind = 'run'"), owed: texts("SELECT run_id FROM delivery") };
	} finally {
		db.close();
	}
}

describe("the begin of a run and its deliveries", () => {
	test("are committed together: no moment has one without the other, for single, queued and batched messages", async () => {
		const path = tempFile();
		const seen: { runs: string[]; owed: string[] }[] = [];
		const door = gate();
		const { hear, unfinished, look: stored } = rig(path, { play: saidThen(door.opened), mode: "collect" });
		let looking = true;
		const look = () => {
			if (!looking) return;
			seen.push(committed(path));
			setImmediate(look);
		};
		look();
		onTestFinished(() => {
			looking = false;
		});
		for (const said of ["one", "two", "three"]) await hear(said);
		await until(() => stored.events({ limit: 9 }).some(({ disposition }) => "runId" in disposition));
		door.open();
		const answered = () =>
			stored.turns({ limit: 9 }).flatMap(({ messages }) => messages.filter(({ role }) => role === "user"));
		await until(() => answered().length === 3);
		looking = false;
		for (const { runs, owed } of seen) expect(new Set(owed)).toEqual(new Set(runs));
		expect(seen.at(-1)!.runs.length).toBeGreaterThan(0);
		expect((await unfinished()).length).toBe(seen.at(-1)!.runs.length);
	});

	test("a store that fails between them leaves neither; when it takes commits again both are there, once", async () => {
		const path = tempFile();
		const { hear, file, unfinished, launched, bus } = rig(path);
		// The store gives out numbers of logs by the block.
		await bus.create({ log: "first", kind: "text" }, []);
		const transaction = file.transaction.bind(file);
		file.transaction = (work) =>
			transaction(() => {
				work();
				throw new Error("disk I/O error");
			});
		const taken = hear("one");
		await until(() => !bus.healthy);
		expect(committed(path)).toEqual({ runs: [], owed: [] });
		expect(launched).toEqual([]);
		file.transaction = transaction;
		const { runId } = await taken;
		expect(committed(path)).toEqual({ runs: [runId], owed: [runId] });
		expect(launched).toEqual(await unfinished());
	});

	test("a delivery that the store refuses refuses the run: the message was not taken in", async () => {
		const path = tempFile();
		const { hear, look, file } = rig(path);
		refuseWrites({ file }, ({ table, op }) => table === "deliveries" && op === "open");
		await expect(hear("one")).rejects.toThrow("constraint failed");
		expect(committed(path)).toEqual({ runs: [], owed: [] });
		expect(look.events({ limit: 9 })).toEqual([]);
	});

	test("a run answers also when one of its accounts was removed", async () => {
		const gone = () => {
			throw new NexusError("not_found", "There is no account telegram/bot.");
		};
		const { hear, launched } = rig(tempFile(), { owe: gone });
		expect((await hear("one")).disposition.state).toBe("started");
		expect(launched).toEqual([]);
	});

	test("a process that dies right after the begin leaves it to the next one, which delivers it", async () => {
		const path = tempFile();
		const first = rig(path, { dies: true });
		const { runId } = await first.hear("one");
		// It never came to launching it: the next process reads the same file.
		const { bus, ledger } = storeForTest({ path });
		const adapters = {
			telegram: { command: [process.execPath, "-e", "process.exit(1)"], accounts: { bot: { settings: {} } } },
		};
		const outbound = createOutbound({ bus, ledger, dataDir: `${path}.d`, adapters, log: silentLog });
		onTestFinished(() => outbound.stop(0));
		await createBroker({ ...quiet, bus, ledger, engine: engineOf(stuck) }).recover();
		await outbound.start();
		expect(outbound.accounts()).toMatchObject([{ deliveries: 1 }]);
		const owed = await outbound.deliveries({ runId: runId!, limit: 9 });
		expect(owed).toMatchObject([{ state: "active", target: { to: "c1" } }]);
	});

	test("the way of a message whose run died with its process is on record as far as it went", async () => {
		const path = tempFile();
		const { runId } = await rig(path, { dies: true }).hear("one");
		const next = rig(path);
		await next.nex.recover();
		const { status, trace } = next.look.turn(runId!)!;
		expect(status).toBe("failed");
		expect(trace).toMatchObject({ channel: "telegram", account: "bot", sender: "ann" });
		expect(trace!.stages.map(({ stage }) => stage)).toEqual(["receive", "acl", "hooks", "queue", "execute"]);
		expect(trace!.stages.every(({ ms }) => ms >= 0)).toBe(true);
		expect(trace!.deliveries).toEqual(await next.unfinished());
		expect(trace!.deliveries).toHaveLength(1);
	});
});

test("a delivery that cannot begin does not free the session of its live run", async () => {
	const door = gate();
	const launch = () => {
		throw new Error("no processes left");
	};
	const { hear, look } = nexRig(saidThen(door.opened), { config: config(), outbound: { launch } });
	const one = await hear("one");
	expect(one.disposition.state).toBe("started");
	const two = await hear("two");
	expect(two.disposition).toEqual({ state: "queued" });
	door.open();
	await until(() => look.turns({ limit: 9 }).length === 2);
});
