import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { QueueSettings } from "../../../packages/daemon/src/ledger/inbox/port.ts";
import {
	EMPTY_LANE,
	type LaneEffect,
	type LaneInput,
	restored,
	type SessionLane,
	step,
	wakeAt,
} from "../../../packages/daemon/src/nex/inbox/queue.ts";
import { atEffort } from "../../effort.ts";

const settingsOf = (fields: Partial<QueueSettings> = {}): QueueSettings => ({
	mode: "followup",
	collectMs: 100,
	messagesMax: 3,
	atCap: "drop_newest",
	...fields,
});

/** Plays inputs at their times and gives the effects of each. */
function play(inputs: readonly [now: number, input: LaneInput][], from: SessionLane = EMPTY_LANE) {
	let lane = from;
	const effects = inputs.map(([now, input]) => {
		const next = step(lane, input, now);
		lane = next.lane;
		return next.effects;
	});
	return { lane, effects };
}

const arrive = (eventId: string, fields: Partial<QueueSettings> = {}): LaneInput => ({
	type: "arrive",
	eventId,
	settings: settingsOf(fields),
});
const free: LaneInput = { type: "free" };
const tick: LaneInput = { type: "tick" };
const start = (...eventIds: string[]): LaneEffect => ({ type: "start", eventIds });
const wait: LaneEffect = { type: "wait" };

describe("an idle session", () => {
	test.each(["followup", "interrupt", "reject"] as const)("%s: starts at once", (mode) => {
		expect(step(EMPTY_LANE, arrive("a", { mode }), 0)).toMatchObject({
			effects: [{ type: "admit" }],
			lane: { busy: true },
		});
	});

	test("collect: waits until nothing more comes, then answers together", () => {
		const mode = "collect";
		const { effects, lane } = play([
			[0, arrive("a", { mode })],
			[90, arrive("b", { mode })],
			[120, tick],
		]);
		expect(effects).toEqual([[wait], [wait], []]);
		expect(wakeAt(lane)).toBe(190);
		expect(step(lane, tick, 190).effects).toEqual([start("a", "b")]);
	});

	test("collect: a sender who keeps typing is answered", () => {
		let lane = EMPTY_LANE;
		const arrivals = Array.from({ length: 13 }, (_, n) => n * 80);
		const starts: [number, LaneEffect][] = [];
		for (const at of arrivals) {
			const next = step(lane, arrive(`e${at}`, { mode: "collect", messagesMax: 99 }), at);
			lane = next.lane;
			for (const effect of next.effects) if (effect.type === "start") starts.push([at, effect]);
		}
		expect(starts).toEqual([]);
		expect(wakeAt(lane)).toBe(1000);
	});
});

describe("a busy session", () => {
	const busy: SessionLane = { ...EMPTY_LANE, busy: true };

	test("followup: one after another", () => {
		const { effects } = play(
			[
				[0, arrive("a")],
				[1, arrive("b")],
				[2, free],
				[3, free],
				[4, free],
			],
			busy,
		);
		expect(effects).toEqual([[wait], [wait], [start("a")], [start("b")], []]);
	});

	test("interrupt: the run is stopped once, and everything that waits goes together", () => {
		const mode = "interrupt";
		const { effects } = play(
			[
				[0, arrive("a")],
				[1, arrive("b", { mode })],
				[2, arrive("c", { mode })],
				[3, free],
			],
			busy,
		);
		expect(effects).toEqual([
			[wait],
			[wait, { type: "stop", by: "b", rollback: false }],
			[wait],
			[start("a", "b", "c")],
		]);
	});

	test("interrupt: takes along all that waited to go one by one", () => {
		const { effects } = play(
			[
				[0, arrive("a")],
				[1, arrive("b")],
				[2, arrive("c", { mode: "interrupt" })],
				[3, free],
			],
			busy,
		);
		expect(effects[3]).toEqual([start("a", "b", "c")]);
	});

	test("a followup that comes after an interruption has its own run", () => {
		const { effects } = play(
			[
				[0, arrive("a", { mode: "interrupt" })],
				[1, arrive("b")],
				[2, free],
				[3, free],
			],
			busy,
		);
		expect(effects.slice(2)).toEqual([[start("a")], [start("b")]]);
	});

	test("collect: goes together when the run has settled and nothing more comes", () => {
		const mode = "collect";
		const { effects, lane } = play(
			[
				[0, arrive("a", { mode })],
				[50, arrive("b", { mode })],
				[60, free],
			],
			busy,
		);
		expect(effects).toEqual([[wait], [wait], []]);
		expect(wakeAt(lane)).toBe(150);
		expect(step(lane, tick, 150).effects).toEqual([start("a", "b")]);
	});

	test("reject: is refused, also while others wait", () => {
		const { effects, lane } = play([[0, arrive("a", { mode: "reject" })]], busy);
		expect(effects).toEqual([[{ type: "refuse", because: expect.stringContaining("busy") }]]);
		expect(lane).toEqual(busy);
		const collecting = step(EMPTY_LANE, arrive("a", { mode: "collect" }), 0).lane;
		expect(step(collecting, arrive("b", { mode: "reject" }), 1)).toEqual({
			effects: [{ type: "refuse", because: expect.stringContaining("busy") }],
			lane: collecting,
		});
	});

	test("an interruption does not wait for a collection to be quiet", () => {
		const { effects } = play([
			[0, arrive("a", { mode: "collect" })],
			[1, arrive("b", { mode: "interrupt" })],
		]);
		expect(effects).toEqual([[wait], [wait, start("a", "b")]]);
	});
});

describe("I11: at the cap", () => {
	const full = play([
		[0, arrive("r")],
		[0, arrive("a")],
		[0, arrive("b")],
		[0, arrive("c")],
	]).lane;

	test("drop_newest: the new one is refused", () => {
		const { effects, lane } = step(full, arrive("d"), 1);
		expect(effects).toEqual([{ type: "refuse", because: expect.stringContaining("3 messages") }]);
		expect(lane).toEqual(full);
	});

	test("drop_oldest: the oldest gives way", () => {
		const { effects, lane } = step(full, arrive("d", { atCap: "drop_oldest" }), 1);
		expect(effects).toEqual([{ type: "drop", eventId: "a", because: expect.any(String) }, wait]);
		expect(lane.waiting.map((one) => one.eventId)).toEqual(["b", "c", "d"]);
	});

	test("summarise: what waits becomes one, again and again", () => {
		const atCap = "summarise";
		const once = step(full, arrive("d", { atCap }), 1);
		expect(once.effects).toEqual([{ type: "summarise", eventIds: ["a", "b", "c"], into: "d.summary" }, wait]);
		const inputs = ["e", "f", "g"].map((id): [number, LaneInput] => [2, arrive(id, { atCap })]);
		const again = play(inputs, once.lane);
		expect(again.effects[2]).toEqual([
			{ type: "summarise", eventIds: ["d.summary", "d", "e", "f"], into: "g.summary" },
			wait,
		]);
		expect(again.lane.waiting.map((one) => one.eventId)).toEqual(["g.summary", "g"]);
	});

	test("drop_oldest: a summary is not dropped: it is all that is left of others", () => {
		const { lane } = step(full, arrive("d", { atCap: "summarise", messagesMax: 1 }), 1);
		const { effects } = step(lane, arrive("e", { atCap: "drop_oldest", messagesMax: 1 }), 2);
		expect(effects).toEqual([{ type: "drop", eventId: "d", because: expect.any(String) }, wait]);
	});

	test("summarise: what is collected waits no longer for having become one", () => {
		const fields = { mode: "collect", atCap: "summarise", messagesMax: 1 } as const;
		let lane = EMPTY_LANE;
		for (let now = 0; now <= 960; now += 80) lane = step(lane, arrive(`e${now}`, fields), now).lane;
		expect(wakeAt(lane)).toBe(1000);
	});
});

test("messages that waited before a restart start in the same groups", () => {
	const modes = ["followup", "interrupt", "followup", "collect", "collect"] as const;
	const lane = restored(modes.map((mode, n) => ({ eventId: `e${n}`, at: n, summary: false, ...settingsOf({ mode }) })));
	const { effects } = play(
		[
			[0, tick],
			[0, free],
			[0, free],
			[104, tick],
		],
		lane,
	);
	expect(effects).toEqual([[start("e0", "e1")], [start("e2")], [], [start("e3", "e4")]]);
});

const arrival = fc.record({
	mode: fc.constantFrom("followup", "interrupt", "collect", "reject"),
	atCap: fc.constantFrom("drop_oldest", "drop_newest", "summarise"),
	messagesMax: fc.integer({ min: 1, max: 4 }),
	collectMs: fc.integer({ min: 1, max: 50 }),
}) satisfies fc.Arbitrary<QueueSettings>;
const move = fc.oneof(
	{ weight: 3, arbitrary: fc.record({ type: fc.constant("arrive" as const), settings: arrival }) },
	{ weight: 2, arbitrary: fc.constant({ type: "free" as const }) },
	{ weight: 1, arbitrary: fc.record({ type: fc.constant("tick" as const), ms: fc.nat(60) }) },
	{ weight: 1, arbitrary: fc.constant({ type: "restart" as const }) },
);

test("I10: for all arrivals, settlements, modes, caps and restarts every message ends once and order is kept", () => {
	fc.assert(
		fc.property(fc.array(move, { maxLength: 60 }), (moves) => {
			const queued = new Map<string, QueueSettings & { at: number }>();
			/** Id → what it stands for. */
			const covers = new Map<string, number[]>();
			const ended = new Map<number, string>();
			const order: number[] = [];
			let lane = EMPTY_LANE;
			let now = 0;
			let count = 0;

			const end = (eventId: string, how: string) => {
				queued.delete(eventId);
				for (const n of covers.get(eventId)!) {
					if (ended.has(n)) throw new Error(`${n} ended as ${ended.get(n)} and as ${how}`);
					ended.set(n, how);
				}
			};
			const take = (input: LaneInput) => {
				const next = step(lane, input, now);
				lane = next.lane;
				for (const effect of next.effects) apply(effect, input);
			};
			const apply = (effect: LaneEffect, input: LaneInput) => {
				const arriving = input.type === "arrive" ? input : undefined;
				if (effect.type === "refuse") end(arriving!.eventId, "refused");
				if (effect.type === "admit") {
					order.push(...covers.get(arriving!.eventId)!);
					end(arriving!.eventId, "started");
				}
				if (effect.type === "wait") queued.set(arriving!.eventId, { ...arriving!.settings, at: now });
				if (effect.type === "drop") end(effect.eventId, "dropped");
				if (effect.type === "summarise") {
					covers.set(
						effect.into,
						effect.eventIds.flatMap((id) => covers.get(id)!),
					);
					const last = queued.get(effect.eventIds.at(-1)!)!;
					for (const id of effect.eventIds) queued.delete(id);
					queued.set(effect.into, last);
				}
				if (effect.type === "start") {
					for (const id of effect.eventIds) {
						if (!queued.has(id)) throw new Error(`${id} started without having waited`);
						order.push(...covers.get(id)!);
						end(id, "started");
					}
				}
			};

			for (const one of moves) {
				if (one.type === "arrive") {
					const eventId = `e${count}`;
					covers.set(eventId, [count++]);
					take({ type: "arrive", eventId, settings: one.settings });
					expect(lane.waiting.map(({ eventId: id }) => id)).toEqual([...queued.keys()]);
					expect(lane.waiting.filter(({ summary }) => summary).length).toBeLessThanOrEqual(1);
				} else if (one.type === "free") {
					if (lane.busy) take({ type: "free" });
				} else if (one.type === "tick") {
					now += one.ms;
					take({ type: "tick" });
				} else {
					lane = restored(
						[...queued].map(([eventId, { at, ...settings }]) => ({
							eventId,
							at,
							summary: eventId.endsWith(".summary"),
							...settings,
						})),
					);
					take({ type: "tick" });
				}
			}
			for (let rounds = 0; lane.busy || lane.waiting.length > 0; rounds++) {
				if (rounds > 200) throw new Error("the lane never becomes idle");
				now = Math.max(now, wakeAt(lane) ?? now);
				take(lane.busy ? { type: "free" } : { type: "tick" });
			}
			expect([...ended.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, n) => n));
			expect(order).toEqual(order.toSorted((a, b) => a - b));
		}),
		{ numRuns: atEffort(2000, 100) },
	);
});
