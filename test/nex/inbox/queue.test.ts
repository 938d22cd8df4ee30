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

type Played = [now: number, input: LaneInput];

const arrive = (now: number, eventId: string, fields: Partial<QueueSettings> = {}): Played => [
	now,
	{ type: "arrive", eventId, settings: settingsOf(fields) },
];
const free = (now: number): Played => [now, { type: "free" }];
const tick = (now: number): Played => [now, { type: "tick" }];
const start = (...eventIds: string[]): LaneEffect => ({ type: "start", eventIds });
const wait: LaneEffect = { type: "wait" };
const refused = { type: "refuse", because: expect.stringContaining("busy") };

/** Plays inputs at their times and gives the effects of each. */
function play(from: SessionLane, ...inputs: readonly Played[]) {
	let lane = from;
	const effects = inputs.map(([now, input]) => {
		const next = step(lane, input, now);
		lane = next.lane;
		return next.effects;
	});
	return { lane, effects };
}

const busy: SessionLane = { ...EMPTY_LANE, busy: true };
const collect = { mode: "collect" } as const;
const interrupt = { mode: "interrupt", messagesMax: 9 } as const;

describe("an idle session", () => {
	test.each(["followup", "interrupt", "reject"] as const)("%s: starts at once", (mode) => {
		const { effects, lane } = play(EMPTY_LANE, arrive(0, "a", { mode }));
		expect([effects, lane.busy]).toMatchObject([[[{ type: "admit" }]], true]);
	});

	test("collect: a sender who keeps typing is answered", () => {
		const arrivals = Array.from({ length: 13 }, (_, n) => arrive(n * 80, `e${n}`, { ...collect, messagesMax: 99 }));
		const { effects, lane } = play(EMPTY_LANE, ...arrivals);
		expect(effects).toEqual(arrivals.map(() => [wait]));
		expect(wakeAt(lane)).toBe(1000);
	});
});

describe("a session", () => {
	test.each<[string, SessionLane, Played[], unknown[]]>([
		[
			"collect, idle: waits until nothing more comes, then answers together",
			EMPTY_LANE,
			[arrive(0, "a", collect), arrive(90, "b", collect), tick(120), tick(189), tick(190)],
			[[wait], [wait], [], [], [start("a", "b")]],
		],
		[
			"collect, busy: goes together when the run has settled and nothing more comes",
			busy,
			[arrive(0, "a", collect), arrive(50, "b", collect), free(60), tick(149), tick(150)],
			[[wait], [wait], [], [], [start("a", "b")]],
		],
		[
			"followup: one after another",
			busy,
			[arrive(0, "a"), arrive(1, "b"), free(2), free(3), free(4)],
			[[wait], [wait], [start("a")], [start("b")], []],
		],
		[
			"interrupt: the run is stopped once, and all that waited to go one by one goes along",
			busy,
			[arrive(0, "a"), arrive(0, "b"), arrive(1, "c", interrupt), arrive(2, "d", interrupt), free(3)],
			[[wait], [wait], [wait, { type: "stop", by: "c", rollback: false }], [wait], [start("a", "b", "c", "d")]],
		],
		[
			"a followup that comes after an interruption has its own run",
			busy,
			[arrive(0, "a", interrupt), arrive(1, "b"), free(2), free(3)],
			[[wait, { type: "stop", by: "a", rollback: false }], [wait], [start("a")], [start("b")]],
		],
		[
			"an interruption does not wait for a collection to be quiet",
			EMPTY_LANE,
			[arrive(0, "a", collect), arrive(1, "b", interrupt)],
			[[wait], [wait, start("a", "b")]],
		],
		[
			"messages that waited before a restart start in the same groups",
			restored(
				(["followup", "interrupt", "followup", "collect", "collect"] as const).map((mode, n) => ({
					eventId: `e${n}`,
					at: n,
					summary: false,
					...settingsOf({ mode }),
				})),
			),
			[tick(0), free(0), free(0), tick(104)],
			[[start("e0", "e1")], [start("e2")], [], [start("e3", "e4")]],
		],
	])("%s", (_, from, inputs, effects) => {
		expect(play(from, ...inputs).effects).toEqual(effects);
	});

	test.each([
		["is busy", busy],
		["collects", play(EMPTY_LANE, arrive(0, "a", collect)).lane],
	])("reject: is refused, and changes nothing, when the session %s", (_, from) => {
		expect(play(from, arrive(1, "b", { mode: "reject" }))).toEqual({ effects: [[refused]], lane: from });
	});
});

describe("I11: at the cap", () => {
	const full = play(EMPTY_LANE, ...["r", "a", "b", "c"].map((id) => arrive(0, id))).lane;
	const waiting = (lane: SessionLane) => lane.waiting.map((one) => one.eventId);
	const drop = (eventId: string) => [{ type: "drop", eventId, because: expect.any(String) }, wait];

	test("drop_newest: the new one is refused", () => {
		const { effects, lane } = play(full, arrive(1, "d"));
		expect(effects).toEqual([[{ type: "refuse", because: expect.stringContaining("3 messages") }]]);
		expect(lane).toEqual(full);
	});

	test("drop_oldest: the oldest gives way", () => {
		const { effects, lane } = play(full, arrive(1, "d", { atCap: "drop_oldest" }));
		expect(effects).toEqual([drop("a")]);
		expect(waiting(lane)).toEqual(["b", "c", "d"]);
	});

	test("summarise: what waits becomes one, again and again", () => {
		const { effects, lane } = play(full, ...["d", "e", "f", "g"].map((id) => arrive(1, id, { atCap: "summarise" })));
		expect(effects[0]).toEqual([{ type: "summarise", eventIds: ["a", "b", "c"], into: "d.summary" }, wait]);
		expect(effects[3]).toEqual([
			{ type: "summarise", eventIds: ["d.summary", "d", "e", "f"], into: "g.summary" },
			wait,
		]);
		expect(waiting(lane)).toEqual(["g.summary", "g"]);
	});

	test("drop_oldest: a summary is not dropped: it is all that is left of others", () => {
		const summarised = arrive(1, "d", { atCap: "summarise", messagesMax: 1 });
		const { effects } = play(full, summarised, arrive(2, "e", { atCap: "drop_oldest", messagesMax: 1 }));
		expect(effects[1]).toEqual(drop("d"));
	});

	test("summarise: what is collected waits no longer for having become one", () => {
		const fields = { ...collect, atCap: "summarise", messagesMax: 1 } as const;
		const arrivals = Array.from({ length: 13 }, (_, n) => arrive(n * 80, `e${n}`, fields));
		expect(wakeAt(play(EMPTY_LANE, ...arrivals).lane)).toBe(1000);
	});
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
