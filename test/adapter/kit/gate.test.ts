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
import type { PlatformFault } from "../../../packages/adapter/src/port.ts";
import { seeded } from "../../../packages/lab/src/fake.ts";
import { manualClock } from "../../clock.ts";
import { atEffort } from "../../effort.ts";
import { turn } from "./context.ts";

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

type Played = [at: number, input: GateInput];

const add = (at: number, ...job: Parameters<typeof wish>): Played => [at, { type: "add", job: wish(...job) }];
const tick = (at: number): Played => [at, { type: "tick" }];
const succeed = (at: number, id: number): Played => [at, { type: "succeeded", id }];
const fail = (at: number, id: number, fault: PlatformFault, retryAfterMs?: number, random = 0): Played => [
	at,
	{ type: "failed", id, fault, retryAfterMs, random },
];
const refuse = (at: number, id: number, retryAfterMs?: number): Played => fail(at, id, "rate_limited", retryAfterMs);

function play(...inputs: readonly Played[]) {
	let state = EMPTY_GATE;
	const all: { at: number; effect: GateEffect }[] = [];
	for (const [at, input] of inputs) {
		const step = stepGate(state, input, at);
		state = step.state;
		all.push(...step.effects.map((effect) => ({ at, effect })));
	}
	const started = all.flatMap(({ effect }) => (effect.type === "start" ? [effect.id] : []));
	const slowed = all.flatMap(({ effect }) => (effect.type === "rate_limited" ? [effect.retryAfterMs] : []));
	const gaveUp = all.some(({ effect }) => effect.type === "give_up");
	return { state, all, started, slowed, gaveUp };
}

/** Jobs of all ranks come at random; calls take a while, fail, are refused. Everything that starts is written down. */
function simulate(seed: number, jobCount: number) {
	const random = seeded(seed);
	const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
	const jobs = new Map<number, JobRequest>();
	const runs: (JobRequest & { at: number; blockedUntil: number })[] = [];
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
				runs.push({ ...jobs.get(effect.id)!, at: now, blockedUntil: state.blockedUntil });
				busy.push({ id: effect.id, until: now + 1 + Math.floor(random() * 80) });
			}
		}
	};
	for (let id = 1; id <= jobCount || busy.length > 0 || state.jobs.size > 0; id++) {
		if (id <= jobCount) {
			const job = wish(id, pick(RANKS), pick(["a", "b", "c"]));
			jobs.set(id, job);
			apply({ type: "add", job });
		}
		// Time moves to the next thing that happens.
		const arrival = id < jobCount ? now + Math.floor(random() * 30) : Number.POSITIVE_INFINITY;
		const next = Math.min(arrival, wake, ...busy.map(({ until }) => until));
		if (next === Number.POSITIVE_INFINITY) break;
		now = Math.max(now, next);
		if (wake <= now) {
			wake = Number.POSITIVE_INFINITY;
			apply({ type: "tick" });
		}
		for (const call of busy.filter(({ until }) => until <= now)) {
			busy.splice(busy.indexOf(call), 1);
			const roll = random();
			if (roll < 0.1) apply(fail(now, call.id, "rate_limited", 200, random())[1]);
			else if (roll < 0.25) apply(fail(now, call.id, "unavailable", undefined, random())[1]);
			else {
				ended.set(call.id, "succeeded");
				apply({ type: "succeeded", id: call.id });
			}
		}
	}
	return { runs, ended, jobs, state };
}

const simulations = (check: (result: ReturnType<typeof simulate>) => void) =>
	fc.assert(
		fc.property(fc.nat(), fc.integer({ min: 1, max: 60 }), (seed, count) => check(simulate(seed, count))),
		{ numRuns: atEffort(200, 100) },
	);

describe("gate, rules", () => {
	it("nothing is lost: every job succeeds, or is given up if it is a preview or typing", () => {
		simulations(({ ended, jobs, state }) => {
			expect(state.jobs.size).toBe(0);
			expect(ended.size).toBe(jobs.size);
			for (const [id, end] of ended)
				if (end === "given up") expect(["preview", "typing"]).toContain(jobs.get(id)?.rank);
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
		const added = [add(1, 2, "preview", "b"), add(1, 3, "edit", "c"), add(1, 4, "final", "d")];
		const ticks = [1, 2, 3].map((count) => tick(count * ACCOUNT_MS));
		expect(play(add(0, 1, "edit", "a"), ...added, ...ticks).started).toEqual([1, 4, 3, 2]);
	});

	it("calls of one target do not overlap", () => {
		const added = [add(0, 1, "create"), add(500, 2, "final"), tick(1000)];
		expect(play(...added).started).toEqual([1]);
		expect(play(...added, succeed(1000, 1)).started).toEqual([1, 2]);
	});

	it("a job that is raised no longer waits for its target's interval", () => {
		const raise: Played = [21, { type: "raise", id: 2, rank: "final", paced: false }];
		expect(play(add(0, 1, "edit"), succeed(1, 1), add(20, 2, "edit"), raise).started).toEqual([1, 2]);
	});

	it("a refusal stops the whole account for exactly as long as it says, and is reported", () => {
		const refused = [add(0, 1, "edit", "a"), refuse(50, 1, 700), add(60, 2, "final", "b")];
		const { all, started, slowed } = play(...refused, tick(749), tick(750));
		expect(slowed).toEqual([700]);
		expect(started).toEqual([1, 2]);
		expect(all.filter(({ effect }) => effect.type === "start").at(-1)?.at).toBe(750);
	});

	it("calls that were refused together slow the account down once", () => {
		const ids = [1, 2, 3, 4, 5, 6];
		const added = ids.map((id) => add(id * 10, id, "final", `lane ${id}`));
		const { slowed, state } = play(...added, ...ids.map((id) => refuse(100, id)));
		expect(state.blockedUntil).toBe(600);
		expect(slowed).toEqual(ids.map(() => 500));
		// A refusal after the wait is another one in a row.
		const [again] = stepGate(stepGate(state, { type: "tick" }, 600).state, refuse(650, 1)[1], 650).effects;
		expect(again).toEqual({ type: "rate_limited", retryAfterMs: 1000 });
	});

	it("a later refusal that asks for less does not shorten the wait; after a success the next one is the first", () => {
		const both = [add(0, 1, "final", "a"), add(10, 2, "final", "b")];
		expect(play(...both, refuse(50, 1, 1000), refuse(60, 2, 10)).state.blockedUntil).toBe(1050);
		const first = [add(0, 1, "final", "a"), refuse(1, 1), tick(501), succeed(502, 1)];
		expect(play(...first, add(600, 2, "final", "b"), refuse(601, 2)).slowed).toEqual([500, 500]);
	});

	it("what a refusal would make wait beyond its patience is given up; a final waits", () => {
		const given = (rank: Rank, retryAfterMs: number) => play(add(0, 1, rank), refuse(1, 1, retryAfterMs)).gaveUp;
		expect([given("preview", 3000), given("preview", 3001), given("typing", 1)]).toEqual([false, true, true]);
		expect([given("final", 600_000), given("create", 600_000)]).toEqual([false, false]);
	});

	it("I11: so many calls at once and no more, however many targets there are; targets of long ago are forgotten", () => {
		const jobs = Array.from({ length: 200 }, (_, n) => ({
			...wish(n + 1, "final", `lane ${n}`),
			accountIntervalMs: 0,
		}));
		const added = jobs.map((job): Played => [0, { type: "add", job }]);
		expect(play(...added).started).toHaveLength(16);
		expect(play(...added, succeed(1, 3)).started.at(-1)).toBe(17);
		const { started, state } = play(...added, ...jobs.map(({ id }) => succeed(id * 1000, id)));
		expect(started).toHaveLength(200);
		expect(state.lanes.size).toBeLessThanOrEqual(64);
	});

	it("a rank only rises", () => {
		const lowered: Played = [1, { type: "raise", id: 3, rank: "preview", paced: true }];
		const added = [add(0, 1, "edit", "a"), add(1, 2, "edit", "b"), add(1, 3, "final", "c")];
		expect(play(...added, lowered, tick(ACCOUNT_MS)).started).toEqual([1, 3]);
	});

	it("failures are tried again ever later; what will never work is given up at once", () => {
		const broken = (at: number) => fail(at, 1, "unavailable", undefined, 1);
		const { all } = play(add(0, 1, "final"), broken(0), tick(500), broken(500));
		const wakes = all.flatMap(({ at, effect }) => (effect.type === "wake" ? [effect.at - at] : []));
		expect(wakes).toEqual([500, 1000]);
		expect(play(add(0, 1, "final"), fail(1, 1, "denied")).gaveUp).toBe(true);
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
	function rig(ready = async () => {}) {
		const clock = manualClock();
		const told: number[] = [];
		const gate = new RateGate({ clock, random: () => 0.5, onRateLimited: (ms) => told.push(ms), ready });
		const job = (run: () => Promise<void>, settled: GateJob["settled"] = () => {}): GateJob => ({
			lane: "a",
			rank: "edit",
			paced: true,
			targetIntervalMs: TARGET_MS,
			run,
			settled,
		});
		const pass = async (ms: number) => {
			clock.advance(ms);
			await turn();
		};
		return { clock, pass, told, gate, job };
	}

	it("runs again what was refused, after the time the platform asked for", async () => {
		const { clock, pass, told, gate, job } = rig();
		const runs: number[] = [];
		const ends: unknown[] = [];
		const run = async () => {
			runs.push(clock.now());
			if (runs.length === 1) throw new PlatformError("rate_limited", "slow down", { retryAfterMs: 3_000 });
		};
		gate.request(job(run, (error) => ends.push(error)));
		await turn();
		await pass(2_999);
		expect(runs).toEqual([0]);
		await pass(1);
		expect(runs).toEqual([0, 3_000]);
		expect(told).toEqual([3_000]);
		expect(ends).toEqual([undefined]);
	});

	it.each([Number.NaN, -5])(
		"a wait of %s does not count: the account slows down by itself, and obeys a later valid wait",
		async (wrong) => {
			const { clock, pass, told, gate, job } = rig();
			const runs: number[] = [];
			const waits = [wrong, 3_000];
			const run = async () => {
				runs.push(clock.now());
				const retryAfterMs = waits.shift();
				if (retryAfterMs !== undefined) throw new PlatformError("rate_limited", "slow down", { retryAfterMs });
			};
			gate.request(job(run, () => {}));
			await turn();
			await pass(500);
			await pass(2_999);
			expect(runs).toEqual([0, 500]);
			await pass(1);
			expect(runs).toEqual([0, 500, 3_500]);
			expect(told).toEqual([500, 3_000]);
		},
	);

	it("I6: calls nothing while its reports are not read", async () => {
		const read = Promise.withResolvers<void>();
		const { gate, job } = rig(() => read.promise);
		let runs = 0;
		gate.request(job(async () => void runs++));
		await turn();
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
		await turn();
		ticket.cancel();
		gate.request({ ...job(async () => void order.push("second")), paced: false });
		await turn();
		expect(order).toEqual([]);
		first.resolve();
		await turn();
		await gate.quiet();
		expect(order).toEqual(["first ended", "second"]);
	});

	it("what is due sooner does not wait for the timer of what is due later", async () => {
		const { clock, pass, gate, job } = rig();
		const order: string[] = [];
		const quick = { ...job(async () => void order.push("b")), lane: "b" };
		gate.request({ ...job(async () => {}), targetIntervalMs: 1000, accountIntervalMs: 10 });
		await turn();
		clock.advance(1);
		gate.request(job(async () => void order.push("a")));
		clock.advance(1);
		gate.request(quick);
		await pass(8);
		expect(order).toEqual(["b"]);
		await pass(990);
		expect(order).toEqual(["b", "a"]);
	});

	it("hands over the error of what it gives up", async () => {
		const { gate, job } = rig();
		const ends: unknown[] = [];
		const run = () => Promise.reject(new PlatformError("denied", "who are you"));
		gate.request(job(run, (error) => ends.push(error?.fault)));
		await turn();
		expect(ends).toEqual(["denied"]);
	});

	it("does not run what was cancelled while it waited, and is quiet when no call runs", async () => {
		const { pass, gate, job } = rig();
		const first = Promise.withResolvers<void>();
		const runs: string[] = [];
		gate.request(
			job(() => {
				runs.push("first");
				return first.promise;
			}),
		);
		const second = gate.request(job(async () => void runs.push("second")));
		await turn();
		let quiet = false;
		const waited = gate.quiet().then(() => {
			quiet = true;
		});
		await turn();
		expect(quiet).toBe(false);
		second.cancel();
		first.resolve();
		await waited;
		await pass(10_000);
		expect(runs).toEqual(["first"]);
	});
});
