/** ST17: a page of turns, the queue, the live run and the stream's offset are of one moment, even if other writers commit meanwhile. */

import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Broker, chainOf, type LiveRun } from "../../packages/daemon/src/broker/broker.ts";
import type { LogWriter } from "../../packages/daemon/src/bus/bus.ts";
import type { RequestContext } from "../../packages/daemon/src/edge/api/resource.ts";
import { runHandlers } from "../../packages/daemon/src/edge/api/runs.ts";
import { sessionHandlers } from "../../packages/daemon/src/edge/api/sessions.ts";
import { EDGE_LIMITS, type EdgeDeps } from "../../packages/daemon/src/edge/edge.ts";
import { inboxWrites } from "../../packages/daemon/src/ledger/inbox/port.ts";
import { turnWrites } from "../../packages/daemon/src/ledger/turns/port.ts";
import type { Write } from "../../packages/daemon/src/std/write.ts";
import type { RunListJson, SessionTurnsJson } from "../../packages/protocol/src/gen/api.ts";
import { removeUpTo } from "../bus/remove.ts";
import { eventOf, turnOf } from "../ledger/rig.ts";
import { freshFolder } from "../runtime/folder.ts";
import { storeForTest } from "../store.ts";

const NO_REQUEST = {} as RequestContext;

const liveOf = (runId: string, eventId = "evt"): LiveRun => ({
	runId,
	session: "s",
	engine: "demo",
	status: "running",
	compacting: false,
	startedAt: 1,
	text: "",
	messages: [{ role: "user", text: "asked", eventId }],
	toolCalls: [],
});

/** One connection that is asked and one that commits, and a Broker that says what the test says. */
function rig() {
	const path = join(freshFolder(), "nexus.db");
	const asked = storeForTest({ path, shared: true, connection: "none" });
	const { bus } = storeForTest({ path, shared: true, connection: "none" });
	const broker = { live: [] as LiveRun[] };
	const said: Partial<Broker> = {
		liveRuns: () => broker.live,
		live: (runId) => broker.live.find((run) => run.runId === runId),
	};
	const { listTurns } = sessionHandlers({ ...asked, broker: said } as unknown as EdgeDeps, EDGE_LIMITS);
	let meanwhile = () => {};
	asked.file.db.function("meanwhile", () => {
		const work = meanwhile;
		meanwhile = () => {};
		work();
		return 1;
	});
	return {
		bus,
		broker,
		/** Runs `work` while the next page is read: after its chain, and before its first turn, of which there has to be one. */
		meanwhile(work: () => void) {
			asked.file.db.exec("CREATE TEMP VIEW turns AS SELECT * FROM main.turns WHERE meanwhile()");
			meanwhile = () => {
				work();
				// In the tick of the call, while the other connection reads.
				bus.flush();
			};
		},
		begin: (runId: string, writes: Write[] = []) =>
			bus.create({ log: runId, kind: "run", chain: chainOf("s") }, ["begin"], { with: writes }),
		settle: (writer: LogWriter) => writer.seal(["end"], [turnWrites.settle(turnOf(writer.log, { session: "s" }))]),
		async page() {
			const { turns, live, queued, stream_offset } = (await listTurns(
				{ params: { session: "s" }, query: {}, body: undefined },
				NO_REQUEST,
			)) as SessionTurnsJson;
			return {
				turns: turns.map(({ run_id }) => run_id),
				live: live?.run_id,
				queued: queued.map(({ event_id }) => event_id),
				offset: stream_offset,
			};
		},
	};
}

const NOTHING = { turns: [], live: undefined, queued: [], offset: 0 };

describe("ST17: a page of turns", () => {
	it("continues after the newest turn when all is settled, and at the beginning of a run that is not", async () => {
		const { begin, settle, page, broker } = rig();
		expect(await page()).toEqual(NOTHING);
		await settle(await begin("run_1"));
		const settled = { ...NOTHING, turns: ["run_1"], offset: 2 };
		expect(await page()).toEqual(settled);
		const second = await begin("run_2");
		broker.live = [liveOf("run_2")];
		second.append("more");
		await second.flushed();
		expect(await page()).toEqual({ ...settled, live: "run_2" });
	});

	it("is of the moment before, when a run settles between two reads of it", async () => {
		const { begin, settle, page, broker, meanwhile } = rig();
		await settle(await begin("run_1"));
		const second = await begin("run_2");
		broker.live = [liveOf("run_2")];
		const settled: Promise<void>[] = [];
		meanwhile(() => {
			settled.push(settle(second));
			broker.live = [];
		});
		expect(await page()).toEqual({ turns: ["run_1"], live: "run_2", queued: [], offset: 2 });
		expect(settled).toHaveLength(1);
		await settled[0];
		expect(await page()).toEqual({ turns: ["run_1", "run_2"], live: undefined, queued: [], offset: 4 });
	});

	it("shows a message once: as queued, or in the run that answers it", async () => {
		const { bus, begin, settle, page, broker, meanwhile } = rig();
		await settle(await begin("run_0"));
		await bus.write(["evt_1", "evt_2"].map((id) => inboxWrites.accept(eventOf(id, { session: "s" }))));
		const runs: Promise<LogWriter>[] = [];
		meanwhile(() => {
			const started = { state: "started", runId: "run_1" } as const;
			runs.push(begin("run_1", [inboxWrites.dispose("evt_1", started, ["queued"])]));
			broker.live = [liveOf("run_1", "evt_1")];
		});
		expect(await page()).toEqual({ turns: ["run_0"], live: undefined, queued: ["evt_1", "evt_2"], offset: 2 });
		expect(runs).toHaveLength(1);
		await runs[0];
		expect(await page()).toEqual({ turns: ["run_0"], live: "run_1", queued: ["evt_2"], offset: 2 });
		await settle((await runs[0])!);
		// The Broker hears of it later than the store.
		expect(await page()).toEqual({ turns: ["run_0", "run_1"], live: undefined, queued: ["evt_2"], offset: 4 });
	});

	it("begins at a run that this broker does not know: of another daemon, or too young", async () => {
		const { begin, settle, page } = rig();
		await settle(await begin("run_1"));
		await begin("run_2");
		expect(await page()).toEqual({ turns: ["run_1"], live: undefined, queued: [], offset: 2 });
	});

	it("begins at a run that ended without a turn: its frames are all that is left of it", async () => {
		const { begin, settle, page } = rig();
		await settle(await begin("run_1"));
		await (await begin("run_2")).seal(["end"]);
		expect(await page()).toEqual({ turns: ["run_1"], live: undefined, queued: [], offset: 2 });
	});

	it("continues after the removed records, when no frames are left", async () => {
		const { bus, begin, settle, page } = rig();
		await settle(await begin("run_1"));
		await removeUpTo(bus, "run_1");
		expect(await page()).toEqual({ ...NOTHING, turns: ["run_1"], offset: 2 });
	});
});

describe("a list of runs", () => {
	it("has a run once, also when it settles meanwhile", async () => {
		const { ledger, bus } = storeForTest();
		const writer = await bus.create({ log: "run_1", kind: "run", chain: chainOf("s") }, ["begin"]);
		await writer.seal(["end"], [turnWrites.settle(turnOf("run_1", { session: "s" }))]);
		const broker: Partial<Broker> = { liveRuns: () => [liveOf("run_1")] };
		const { listRuns } = runHandlers({ bus, ledger, broker } as unknown as EdgeDeps, EDGE_LIMITS);
		const input = { params: undefined, query: {}, body: undefined };
		const { runs } = (await listRuns(input, NO_REQUEST)) as RunListJson;
		expect(runs.map(({ run_id, status }) => [run_id, status])).toEqual([["run_1", "completed"]]);
	});
});
