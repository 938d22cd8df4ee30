/** The rate gate: order, intervals, obedience and patience, over all schedules. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type GateJob, RateGate } from "../../../packages/adapter/src/gate/gate.ts";
import {
	EMPTY_GATE,
	type GateEffect,
	type GateInput,
	type JobRequest,
	RANKS,
	type Rank,
	stepGate,
} from "../../../packages/adapter/src/gate/gate-step.ts";
import { PlatformError } from "../../../packages/adapter/src/platform/platform-error.ts";
import { seeded } from "../../../packages/lab/src/fake.ts";
import { manualClock } from "../../clock.ts";
import { atEffort } from "../../effort.ts";

const TARGET_MS = 100;
const ACCOUNT_MS = 10;

const wish = (id: number, rank: Rank, lane = "a", paced = rank !== "final"): JobRequest => ({
	id,
	lane,
	rank,
	paced,
	targetIntervalMs: TARGET_MS,
	accountIntervalMs: ACCOUNT_MS,
});

function play(inputs: readonly [number, GateInput][]) {
	let state = EMPTY_GATE;
	const all: { at: number; effect: GateEffect }[] = [];
	for (const [at, input] of inputs) {
		const step = stepGate(state, input, at);
		state = step.state;
		all.push(...step.effects.map((effect) => ({ at, effect })));
	}
	const started = all.flatMap(({ effect }) => (effect.type === "start" ? [effect.id] : []));
	return { state, all, started };
}

interface Run {
	id: number;
	rank: Rank;
	lane: string;
	at: number;
	blockedUntil: number;
}

/** Jobs of all ranks come at random; calls take a while, fail, are refused. Everything that starts is written down. */
function simulate(seed: number, jobCount: number) {
	const random = seeded(seed);
	const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
	const ranks = new Map<number, Rank>();
	const lanes = new Map<number, string>();
	const runs: Run[] = [];
	const ended = new Map<number, "succeeded" | "given up">();
	const busy: { id: number; until: number }[] = [];
	let state = EMPTY_GATE;
	let now = 0;
	let wake = Number.POSITIVE_INFINITY;
	const apply = (input: GateInput) => {
		const step = stepGate(state, input, now);
		state = step.state;
		for (const effect of step.effects) {
			if (effect.type === "give_up") ended.set(effect.id, "given up");
			else if (effect.type === "wake") wake = effect.at;
			else if (effect.type === "start") {
				const { id } = effect;
				runs.push({
					id,
					rank: ranks.get(id) as Rank,
					lane: lanes.get(id) as string,
					at: now,
					blockedUntil: state.blockedUntil,
				});
				busy.push({ id, until: now + 1 + Math.floor(random() * 80) });
			}
		}
	};
	for (let id = 1; id <= jobCount || busy.length > 0 || state.jobs.size > 0; id++) {
		if (id <= jobCount) {
			const rank = pick(RANKS);
			ranks.set(id, rank);
			lanes.set(id, pick(["a", "b", "c"]));
			apply({ type: "add", job: wish(id, rank, lanes.get(id)) });
		}
		// Time moves to the next thing that happens.
		const next = Math.min(
			id < jobCount ? now + Math.floor(random() * 30) : Number.POSITIVE_INFINITY,
			wake,
			...busy.map(({ until }) => until),
		);
		if (next === Number.POSITIVE_INFINITY) break;
		now = Math.max(now, next);
		if (wake <= now) {
			wake = Number.POSITIVE_INFINITY;
			apply({ type: "tick" });
		}
		for (const call of busy.filter(({ until }) => until <= now)) {
			busy.splice(busy.indexOf(call), 1);
			const roll = random();
			if (roll < 0.1)
				apply({ type: "failed", id: call.id, fault: "rate_limited", retryAfterMs: 200, random: random() });
			else if (roll < 0.25) apply({ type: "failed", id: call.id, fault: "unavailable", random: random() });
			else {
				ended.set(call.id, "succeeded");
				apply({ type: "succeeded", id: call.id });
			}
		}
	}
	return { runs, ended, ranks, state };
}

const simulations = (check: (result: ReturnType<typeof simulate>) => void) =>
	fc.assert(
		fc.property(fc.nat(), fc.integer({ min: 1, max: 60 }), (seed, count) => check(simulate(seed, count))),
		{ numRuns: atEffort(200, 100) },
	);

describe("gate, rules", () => {
	it("nothing is lost: every job succeeds, or is given up if it is a preview or typing", () => {
		simulations(({ ended, ranks, state }) => {
			expect(state.jobs.size).toBe(0);
			expect(ended.size).toBe(ranks.size);
			for (const [id, end] of ended) if (end === "given up") expect(["preview", "typing"]).toContain(ranks.get(id));
		});
	});

	it("the account's interval and refusals hold for every call", () => {
		simulations(({ runs }) => {
			for (const [index, run] of runs.entries()) {
				const before = runs[index - 1];
				if (before) expect(run.at - before.at).toBeGreaterThanOrEqual(ACCOUNT_MS);
				expect(run.at).toBeGreaterThanOrEqual(run.blockedUntil);
			}
		});
	});

	it("a target's interval holds for everything but finals", () => {
		simulations(({ runs }) => {
			const last = new Map<string, number>();
			for (const run of runs) {
				const before = last.get(run.lane);
				if (before !== undefined && run.rank !== "final") expect(run.at - before).toBeGreaterThanOrEqual(TARGET_MS);
				last.set(run.lane, run.at);
			}
		});
	});

	it("finals start before whatever else waits", () => {
		const { started } = play([
			[0, { type: "add", job: wish(1, "edit", "a") }],
			[1, { type: "add", job: wish(2, "preview", "b") }],
			[1, { type: "add", job: wish(3, "edit", "c") }],
			[1, { type: "add", job: wish(4, "final", "d") }],
			[ACCOUNT_MS, { type: "tick" }],
			[2 * ACCOUNT_MS, { type: "tick" }],
			[3 * ACCOUNT_MS, { type: "tick" }],
		]);
		expect(started).toEqual([1, 4, 3, 2]);
	});

	it("calls of one target do not overlap", () => {
		const add: [number, GateInput][] = [
			[0, { type: "add", job: wish(1, "create") }],
			[500, { type: "add", job: wish(2, "final") }],
			[1000, { type: "tick" }],
		];
		expect(play(add).started).toEqual([1]);
		expect(play([...add, [1000, { type: "succeeded", id: 1 }]]).started).toEqual([1, 2]);
	});

	it("a job that is raised no longer waits for its target's interval", () => {
		const { started } = play([
			[0, { type: "add", job: wish(1, "edit") }],
			[1, { type: "succeeded", id: 1 }],
			[20, { type: "add", job: wish(2, "edit") }],
			[21, { type: "raise", id: 2, rank: "final", paced: false }],
		]);
		expect(started).toEqual([1, 2]);
	});

	it("a refusal stops the whole account for exactly as long as it says, and is reported", () => {
		const { all, started } = play([
			[0, { type: "add", job: wish(1, "edit", "a") }],
			[50, { type: "failed", id: 1, fault: "rate_limited", retryAfterMs: 700, random: 0.9 }],
			[60, { type: "add", job: wish(2, "final", "b") }],
			[749, { type: "tick" }],
			[750, { type: "tick" }],
		]);
		expect(all.filter(({ effect }) => effect.type === "rate_limited")).toEqual([
			{ at: 50, effect: { type: "rate_limited", retryAfterMs: 700 } },
		]);
		expect(started).toEqual([1, 2]);
		expect(all.filter(({ effect }) => effect.type === "start").at(-1)?.at).toBe(750);
	});

	it("calls that were refused together slow the account down once", () => {
		const ids = [1, 2, 3, 4, 5, 6];
		const refused = (id: number): GateInput => ({ type: "failed", id, fault: "rate_limited", random: 0 });
		const { all, state } = play([
			...ids.map((id): [number, GateInput] => [id * 10, { type: "add", job: wish(id, "final", `lane ${id}`) }]),
			...ids.map((id): [number, GateInput] => [100, refused(id)]),
		]);
		expect(state.blockedUntil).toBe(600);
		expect(all.flatMap(({ effect }) => (effect.type === "rate_limited" ? [effect.retryAfterMs] : []))).toEqual(
			ids.map(() => 500),
		);
		// A refusal after the wait is another one in a row.
		const [again] = stepGate(stepGate(state, { type: "tick" }, 600).state, refused(1), 650).effects;
		expect(again).toEqual({ type: "rate_limited", retryAfterMs: 1000 });
	});

	it("a later refusal that asks for less does not shorten the wait; after a success the next one is the first", () => {
		const refused = (id: number, retryAfterMs?: number): GateInput => ({
			type: "failed",
			id,
			fault: "rate_limited",
			random: 0,
			retryAfterMs,
		});
		const { state } = play([
			[0, { type: "add", job: wish(1, "final", "a") }],
			[10, { type: "add", job: wish(2, "final", "b") }],
			[50, refused(1, 1000)],
			[60, refused(2, 10)],
		]);
		expect(state.blockedUntil).toBe(1050);
		const { all } = play([
			[0, { type: "add", job: wish(1, "final", "a") }],
			[1, refused(1)],
			[501, { type: "tick" }],
			[502, { type: "succeeded", id: 1 }],
			[600, { type: "add", job: wish(2, "final", "b") }],
			[601, refused(2)],
		]);
		expect(all.flatMap(({ effect }) => (effect.type === "rate_limited" ? [effect.retryAfterMs] : []))).toEqual([
			500, 500,
		]);
	});

	it("what a refusal would make wait beyond its patience is given up; a final waits", () => {
		const given = (rank: Rank, retryAfterMs: number) =>
			play([
				[0, { type: "add", job: wish(1, rank) }],
				[1, { type: "failed", id: 1, fault: "rate_limited", retryAfterMs, random: 0 }],
			]).all.some(({ effect }) => effect.type === "give_up");
		expect([given("preview", 3000), given("preview", 3001), given("typing", 1)]).toEqual([false, true, true]);
		expect([given("final", 600_000), given("create", 600_000)]).toEqual([false, false]);
	});

	it("I11: so many calls at once and no more, however many targets there are; targets of long ago are forgotten", () => {
		const jobs = Array.from({ length: 200 }, (_, n) => ({
			...wish(n + 1, "final", `lane ${n}`),
			accountIntervalMs: 0,
		}));
		const added = jobs.map((job): [number, GateInput] => [0, { type: "add", job }]);
		expect(play(added).started).toHaveLength(16);
		expect(play([...added, [1, { type: "succeeded", id: 3 }]]).started.at(-1)).toBe(17);
		const { started, state } = play([
			...added,
			...jobs.map(({ id }): [number, GateInput] => [id * 1000, { type: "succeeded", id }]),
		]);
		expect(started).toHaveLength(200);
		expect(state.lanes.size).toBeLessThanOrEqual(64);
	});

	it("a rank only rises", () => {
		const { started } = play([
			[0, { type: "add", job: wish(1, "edit", "a") }],
			[1, { type: "add", job: wish(2, "edit", "b") }],
			[1, { type: "add", job: wish(3, "final", "c") }],
			[1, { type: "raise", id: 3, rank: "preview", paced: true }],
			[ACCOUNT_MS, { type: "tick" }],
		]);
		expect(started).toEqual([1, 3]);
	});

	it("failures are tried again ever later; what will never work is given up at once", () => {
		const fail = (at: number): [number, GateInput] => [at, { type: "failed", id: 1, fault: "unavailable", random: 1 }];
		const { all } = play([[0, { type: "add", job: wish(1, "final") }], fail(0), [500, { type: "tick" }], fail(500)]);
		const wakes = all.flatMap(({ at, effect }) => (effect.type === "wake" ? [effect.at - at] : []));
		expect(wakes).toEqual([500, 1000]);
		const refused = play([
			[0, { type: "add", job: wish(1, "final") }],
			[1, { type: "failed", id: 1, fault: "denied", random: 0 }],
		]);
		expect(refused.all.at(-1)?.effect).toEqual({ type: "give_up", id: 1 });
	});

	it("a final is tried for minutes, a preview for seconds, typing once", () => {
		let longest = 0;
		const patience = (rank: Rank) => {
			let state = stepGate(EMPTY_GATE, { type: "add", job: wish(1, rank) }, 0).state;
			let at = 0;
			for (let tries = 1; ; tries++) {
				const step = stepGate(state, { type: "failed", id: 1, fault: "unavailable", random: 0.5 }, at);
				if (step.effects.some(({ type }) => type === "give_up")) return { at, tries };
				const wake = step.effects.find((effect) => effect.type === "wake");
				const next = wake?.type === "wake" ? wake.at : at;
				longest = Math.max(longest, next - at);
				at = next;
				state = stepGate(step.state, { type: "tick" }, at).state;
			}
		};
		expect(patience("typing").tries).toBe(1);
		expect(patience("preview").at).toBeLessThan(5_000);
		expect(patience("final").at).toBeGreaterThan(600_000);
		expect(longest).toBeLessThanOrEqual(30_000);
	});
});

describe("gate, shell", () => {
	const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

	function rig() {
		const clock = manualClock();
		const told: number[] = [];
		const gate = new RateGate({
			clock,
			random: () => 0.5,
			onRateLimited: (ms) => told.push(ms),
			ready: async () => {},
		});
		const job = (run: () => Promise<void>, settled: GateJob["settled"] = () => {}): GateJob => ({
			lane: "a",
			rank: "edit",
			paced: true,
			pace: () => ({ targetIntervalMs: TARGET_MS }),
			run,
			settled,
		});
		return { clock, told, gate, job };
	}

	it("runs again what was refused, after the time the platform asked for", async () => {
		const { clock, told, gate, job } = rig();
		const runs: number[] = [];
		const ends: unknown[] = [];
		const run = async () => {
			runs.push(clock.now());
			if (runs.length === 1) throw new PlatformError("rate_limited", "slow down", { retryAfterMs: 3_000 });
		};
		gate.request(job(run, (error) => ends.push(error)));
		await tick();
		clock.advance(2_999);
		await tick();
		expect(runs).toEqual([0]);
		clock.advance(1);
		await tick();
		expect(runs).toEqual([0, 3_000]);
		expect(told).toEqual([3_000]);
		expect(ends).toEqual([undefined]);
	});

	it.each([Number.NaN, -5])(
		"a wait of %s does not count: the account slows down by itself, and obeys a later valid wait",
		async (wrong) => {
			const { clock, told, gate, job } = rig();
			const runs: number[] = [];
			const waits = [wrong, 3_000];
			const run = async () => {
				runs.push(clock.now());
				const retryAfterMs = waits.shift();
				if (retryAfterMs !== undefined) throw new PlatformError("rate_limited", "slow down", { retryAfterMs });
			};
			gate.request(job(run, () => {}));
			await tick();
			clock.advance(500);
			await tick();
			clock.advance(2_999);
			await tick();
			expect(runs).toEqual([0, 500]);
			clock.advance(1);
			await tick();
			expect(runs).toEqual([0, 500, 3_500]);
			expect(told).toEqual([500, 3_000]);
		},
	);

	it("I6: calls nothing while its reports are not read", async () => {
		const read = Promise.withResolvers<void>();
		const clock = manualClock();
		const gate = new RateGate({ clock, random: () => 0.5, onRateLimited() {}, ready: () => read.promise });
		let runs = 0;
		const run = async () => void runs++;
		const pace = () => ({ targetIntervalMs: 0 });
		gate.request({ lane: "a", rank: "final", paced: false, pace, run, settled() {} });
		await tick();
		expect(runs).toBe(0);
		read.resolve();
		await gate.quiet();
		expect(runs).toBe(1);
	});

	it("a cancelled call still has its target until it ends", async () => {
		const { gate, job } = rig();
		const first = Promise.withResolvers<void>();
		const order: string[] = [];
		const ticket = gate.request(
			job(async () => {
				await first.promise;
				order.push("first ended");
			}),
		);
		await tick();
		ticket.cancel();
		gate.request({ ...job(async () => void order.push("second")), paced: false });
		await tick();
		expect(order).toEqual([]);
		first.resolve();
		await tick();
		await gate.quiet();
		expect(order).toEqual(["first ended", "second"]);
	});

	it("what is due sooner does not wait for the timer of what is due later", async () => {
		const { clock, gate, job } = rig();
		const order: string[] = [];
		const quick = { ...job(async () => void order.push("b")), lane: "b" };
		gate.request({ ...job(async () => {}), pace: () => ({ targetIntervalMs: 1000, accountIntervalMs: 10 }) });
		await tick();
		clock.advance(1);
		gate.request(job(async () => void order.push("a")));
		clock.advance(1);
		gate.request(quick);
		clock.advance(8);
		await tick();
		expect(order).toEqual(["b"]);
		clock.advance(990);
		await tick();
		expect(order).toEqual(["b", "a"]);
	});

	it("hands over the error of what it gives up", async () => {
		const { gate, job } = rig();
		const ends: unknown[] = [];
		gate.request(
			job(
				async () => {
					throw new PlatformError("denied", "who are you");
				},
				(error) => ends.push(error?.fault),
			),
		);
		await tick();
		expect(ends).toEqual(["denied"]);
	});

	it("does not run what was cancelled while it waited, and is quiet when no call runs", async () => {
		const { clock, gate, job } = rig();
		let finish = () => {};
		const runs: string[] = [];
		gate.request(
			job(() => {
				runs.push("first");
				return new Promise((resolve) => {
					finish = resolve;
				});
			}),
		);
		const second = gate.request(job(async () => void runs.push("second")));
		await tick();
		let quiet = false;
		const waited = gate.quiet().then(() => {
			quiet = true;
		});
		await tick();
		expect(quiet).toBe(false);
		second.cancel();
		finish();
		await waited;
		clock.advance(10_000);
		await tick();
		expect(runs).toEqual(["first"]);
	});
});
