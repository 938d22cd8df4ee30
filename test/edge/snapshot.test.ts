/** ST17: a page of turns, the queue, the live run and the stream's offset are of one moment, however slowly Bus and Ledger answer. */

import { describe, expect, it } from "vitest";
import type { Broker, LiveRun } from "../../src/broker/broker.ts";
import type { Bus, LogInfo } from "../../src/bus/bus.ts";
import { createReads } from "../../src/edge/reads.ts";
import type { InboundEvent, Ledger, SessionSnapshot, Turn } from "../../src/ledger/ledger.ts";
import { eventOf, turnOf } from "../ledger/rig.ts";

interface Moment {
	/** The newest log of the session, as the Bus has it. */
	newest?: LogInfo;
	/** What was removed of the session's frames; by default all of them. */
	start?: number;
	/** The newest first. */
	settled?: Turn[];
	queued?: InboundEvent[];
	live?: LiveRun;
}

const logOf = (log: string, base: number, head: number, sealed: boolean): LogInfo => ({
	log,
	kind: "run",
	chain: "session:s",
	base,
	head,
	bytes: 1,
	createdAt: 1,
	...(sealed && { sealedAt: 2 }),
});

const liveOf = (runId: string, eventId: string): LiveRun => ({
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

/** The Bus answers with one moment after the other, the Ledger and the Broker always with the one after it; the last one stays. */
function storesOf(...moments: Moment[]) {
	let asked = -1;
	const at = (index: number): Moment => moments[Math.min(index, moments.length - 1)]!;
	const later = <T>(value: T): Promise<T> => new Promise((resolve) => setImmediate(() => resolve(value)));
	const now = () => at(asked + 1);
	const kept = () => moments.flatMap(({ newest }) => (newest ? [newest] : []));
	const bus = {
		list: () => later([at(++asked).newest].filter((one) => one !== undefined)),
		describeChain: () => later({ start: at(asked + 1).start ?? 7, head: 7 }),
		describe: (log: string) => later(kept().find((info) => info.log === log)),
	} as Partial<Bus> as Bus;
	const snapshot = (): SessionSnapshot => {
		const { settled = [], queued = [] } = now();
		return { turns: settled, queued, ...(settled[0] && { newestTurn: settled[0] }) };
	};
	const ledger = {
		snapshot: () => later(snapshot()),
		turns: {
			get: (runId: string) => later(now().settled?.find((turn) => turn.runId === runId)),
			list: () => later(now().settled ?? []),
		},
	} as Partial<Ledger> as Ledger;
	const broker = {
		liveRuns: () => {
			const { live } = now();
			return live ? [live] : [];
		},
	} as Partial<Broker> as Broker;
	return { reads: createReads(bus, ledger, broker, 9), times: () => asked + 1 };
}

const offsetOf = async (...moments: Moment[]) => {
	const { reads, times } = storesOf(...moments);
	const { stream_offset, turns } = await reads.turns("s", {});
	return [stream_offset, turns.map(({ run_id }) => run_id), times()];
};

const [one, two] = [turnOf("run_1"), turnOf("run_2")];

describe("ST17: a page of turns", () => {
	it("goes on behind the newest turn, when all is settled", async () => {
		expect(await offsetOf({ newest: logOf("run_1", 2, 3, true), settled: [one] })).toEqual([5, ["run_1"], 1]);
	});

	it("goes on at the beginning of a run that has not settled", async () => {
		const newest = logOf("run_2", 5, 3, false);
		expect(await offsetOf({ newest, settled: [one], live: liveOf("run_2", "evt_2") })).toEqual([5, ["run_1"], 1]);
	});

	it("is taken again when a run settled after the Bus had answered", async () => {
		const before = { newest: logOf("run_1", 2, 3, false) };
		const after = { newest: logOf("run_1", 2, 4, true), settled: [one] };
		expect(await offsetOf(before, after)).toEqual([6, ["run_1"], 2]);
	});

	it("is taken again when a whole run came after the Bus had answered", async () => {
		const before = { newest: logOf("run_1", 2, 3, true), settled: [one] };
		const after = { newest: logOf("run_2", 5, 4, true), settled: [two, one] };
		expect(await offsetOf(before, after)).toEqual([9, ["run_1", "run_2"], 2]);
		expect(await offsetOf({}, { newest: logOf("run_1", 7, 2, true), settled: [one] })).toEqual([9, ["run_1"], 2]);
	});

	it("goes on behind what was removed, when no frames are left", async () => {
		expect(await offsetOf({ settled: [one] })).toEqual([7, ["run_1"], 1]);
		expect(await offsetOf({})).toEqual([7, [], 1]);
	});

	it("is taken again when the first run began after the Bus had listed none", async () => {
		const after = { newest: logOf("run_1", 0, 7, false), live: liveOf("run_1", "evt_1") };
		expect(await offsetOf({ start: 0 }, after)).toEqual([0, [], 2]);
	});

	it("is given up as busy when runs never stop settling", async () => {
		const { reads } = storesOf({ newest: logOf("run_1", 2, 3, false), settled: [one] });
		await expect(reads.turns("s", {})).rejects.toMatchObject({ code: "busy" });
	});

	it("shows a message once: as queued, or in the run that answers it", async () => {
		const newest = logOf("run_1", 2, 3, false);
		const queued = [eventOf("evt_1"), eventOf("evt_2")];
		const { reads } = storesOf({ newest, queued, live: liveOf("run_1", "evt_1") });
		const page = await reads.turns("s", {});
		expect(page.live?.run_id).toBe("run_1");
		expect(page.queued.map(({ event_id }) => event_id)).toEqual(["evt_2"]);
	});
});

describe("a list of runs", () => {
	it("has a run once, also when it settles meanwhile", async () => {
		const live = liveOf("run_1", "evt_1");
		const { reads } = storesOf({ newest: logOf("run_1", 0, 1, false), live, settled: [one] });
		const { runs } = await reads.runs({});
		expect(runs.map(({ run_id, status }) => [run_id, status])).toEqual([["run_1", "completed"]]);
	});
});
