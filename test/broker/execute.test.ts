/** `execute`: the writes that commit with the begin and with the turn, and a stop in between. */

import { describe, expect, test } from "vitest";
import { type Disposition, inboxWrites } from "../../packages/daemon/src/ledger/inbox/port.ts";
import type { Turn } from "../../packages/daemon/src/ledger/turns/port.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { eventOf } from "../ledger/rig.ts";
import { refuseWrites } from "../store.ts";
import { ask, finalEnd, gate, type Play, request, rig, tempFile, text, ticks, yieldsThenWaits } from "./rig.ts";

const echo: Play = async function* ({ messages }) {
	yield text(`re ${messages.at(-1)?.text}`);
};
const stuck: Play = yieldsThenWaits(text("thinking"));
const dropped = (because: string): Disposition => ({ state: "dropped", because });

describe("ST18: what commits with a run", () => {
	test("its begin and the writes of the request are one commit, or none of them is", async () => {
		const { broker, bus, look } = rig(stuck);
		await broker.execute(request({ begin: [inboxWrites.accept(eventOf("evt_1"))] })).established;
		expect(look.event("evt_1")).toBeDefined();
		const refused = broker.execute(
			request({
				session: "other",
				runId: "run_2",
				begin: [inboxWrites.accept(eventOf("evt_2")), inboxWrites.dispose("evt_3", dropped("x"), ["queued"])],
			}),
		);
		await expect(refused.established).rejects.toMatchObject({ refusal: "conflict" });
		await expect(refused.result).rejects.toMatchObject({ refusal: "conflict" });
		expect(await refused.saved).toBeUndefined();
		expect(look.event("evt_2")).toBeUndefined();
		expect(await bus.describe("run_2")).toBeUndefined();
	});

	test("what `settle` makes of the turn is saved with it; it is asked again for every attempt", async () => {
		const turns: Turn[] = [];
		const store = rig(echo);
		const { broker, look } = store;
		let tries = 0;
		refuseWrites(store, ({ table, op }) => table === "turns" && op === "settle" && tries++ < 2);
		const settle = (turn: Turn) => {
			turns.push(turn);
			return [inboxWrites.accept(eventOf("evt_beside", { text: turn.messages.at(-1)!.text }))];
		};
		const { saved } = await ask(broker, "main", "hi", { settle });
		expect(look.event("evt_beside")).toBeUndefined();
		expect(await saved).toMatchObject({ status: "completed" });
		expect(look.event("evt_beside")?.text).toBe("re hi");
		expect(turns).toHaveLength(3);
	});

	test("a `settle` that throws does not keep the turn from being saved", async () => {
		const logged: string[] = [];
		const { broker, look } = rig(echo, { log: { ...silentLog, error: (_, words) => void logged.push(words) } });
		const settle = () => {
			throw new Error("odd");
		};
		const { runId, saved } = await ask(broker, "main", "hi", { settle });
		await saved;
		expect(look.turn(runId)?.status).toBe("completed");
		expect(logged).toEqual(["the writes that accompany a turn could not be made; saving the turn without them"]);
	});

	test("a run of another process is settled with the writes that `recover` gets for it", async () => {
		const path = tempFile();
		const dead = rig(stuck, { path, dies: true });
		const { runId } = await ask(dead.broker, "main", "hi");
		const { broker, look } = rig(echo, { path });
		const settle = async (turn: Turn) => {
			await ticks(2);
			return [inboxWrites.accept(eventOf("evt_beside", { text: turn.runId }))];
		};
		expect(await broker.recover(settle)).toMatchObject({ recovered: 1, later: [] });
		expect(look.event("evt_beside")?.text).toBe(runId);
		expect(broker.settled).toEqual({ completed: 0, aborted: 0, failed: 1 });
	});
});

describe("ST15: a stop", () => {
	test("waits for the outcome of a create in flight, and the engine is never asked", async () => {
		let asked = 0;
		const { broker, frames, look } = rig(
			async function* () {
				asked++;
				yield text("x");
			},
			{ connection: "bad" },
		);
		const { abort, established, result } = broker.execute(request());
		const told: string[] = [];
		void established.then(() => told.push("established"));
		void result.then(() => told.push("result"));
		abort();
		expect(await result).toMatchObject({ status: "aborted" });
		expect(told).toEqual(["established", "result"]);
		expect(finalEnd(await frames("run_1"))).toMatchObject({ reason: "aborted" });
		expect(look.turn("run_1")?.status).toBe("aborted");
		expect(asked).toBe(0);
	});

	test("between the begin and the engine's start is obeyed, whatever is being read then", async () => {
		let asked = 0;
		const reading = gate();
		const door = gate();
		const { broker, ledger } = rig(async function* () {
			asked++;
			yield text("x");
		});
		const { get } = ledger.sessions;
		Object.assign(ledger.sessions, {
			async get(label: string) {
				reading.open();
				await door.opened;
				return get(label);
			},
		});
		const { abort, result } = broker.execute(request());
		await reading.opened;
		abort();
		door.open();
		expect(await result).toMatchObject({ status: "aborted" });
		expect(asked).toBe(0);
	});

	test("does not cut a seal in flight: the run has ended as it has", async () => {
		const { broker, bus } = rig(echo);
		const sealing = gate();
		const door = gate();
		const create = bus.create.bind(bus);
		bus.create = async (...args) => {
			const writer = await create(...args);
			const seal = writer.seal.bind(writer);
			return Object.assign(Object.create(writer) as typeof writer, {
				async seal(...last: Parameters<typeof seal>) {
					sealing.open();
					await door.opened;
					return seal(...last);
				},
			});
		};
		const { abort, result } = broker.execute(request());
		await sealing.opened;
		abort();
		let settled = false;
		void result.then(() => (settled = true));
		await ticks(5);
		expect(settled).toBe(false);
		door.open();
		expect(await result).toMatchObject({ status: "completed" });
	});
});
