import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
	afterOutcome,
	HEALTH_TIMES,
	type HealthOutcome,
	HealthWatch,
	newHealth,
	nextProbeAt,
} from "../../../packages/daemon/src/services/connectors/health.ts";
import type { ProviderHealth } from "../../../packages/daemon/src/services/connectors/port.ts";
import { ProviderFailure } from "../../../packages/daemon/src/services/connectors/wire.ts";
import { manualClock } from "../../clock.ts";
import { atEffort } from "../../effort.ts";
import { until } from "../../until.ts";
import { fakeProvider, refuse } from "./fake-provider.ts";
import { all, ask, KEY, OWNER, open, rig, signal } from "./rig.ts";

const OK: HealthOutcome = { ok: true };
const DOWN: HealthOutcome = { ok: false, fault: "unavailable", reason: "down" };
const REFUSED: HealthOutcome = { ok: false, fault: "unauthorized", reason: "wrong key" };

describe("provider health: the state as a value", () => {
	const after = (...outcomes: HealthOutcome[]) =>
		outcomes.reduce((health, outcome, n) => afterOutcome(health, outcome, 100 + n), newHealth("c", 0));

	test("it is degraded by one failure, unavailable by three, and well by one success", () => {
		expect(newHealth("c", 7)).toEqual({ name: "c", state: "unknown", consecutiveFailures: 0, changedAt: 7 });
		expect(after(DOWN)).toMatchObject({ state: "degraded", consecutiveFailures: 1, reason: "down", changedAt: 100 });
		expect(after(DOWN, DOWN, DOWN)).toMatchObject({ state: "unavailable", consecutiveFailures: 3, changedAt: 102 });
		const well = after(DOWN, DOWN, DOWN, OK);
		expect(well).toEqual({ name: "c", state: "healthy", consecutiveFailures: 0, changedAt: 103, checkedAt: 103 });
		expect(after(OK, REFUSED)).toMatchObject({ state: "unauthorized", reason: "wrong key" });
		expect(after(OK, OK, OK), "since when it is so").toMatchObject({ changedAt: 100, checkedAt: 102 });
	});

	test("for all histories: it is looked at no sooner after more failures, and at the latest after the maximum", () => {
		const outcome = fc.constantFrom(OK, DOWN, REFUSED);
		fc.assert(
			fc.property(fc.array(outcome, { minLength: 1, maxLength: 60 }), (history) => {
				const health = after(...history);
				const wait = nextProbeAt(health) - health.checkedAt!;
				expect(wait).toBeGreaterThanOrEqual(HEALTH_TIMES.backOffMs);
				expect(wait).toBeLessThanOrEqual(HEALTH_TIMES.backOffMsMax);
				const again = afterOutcome(health, DOWN, health.checkedAt! + wait);
				if (!history.at(-1)!.ok && health.state !== "unauthorized")
					expect(nextProbeAt(again) - again.checkedAt!).toBeGreaterThanOrEqual(wait);
				expect(health.consecutiveFailures === 0).toBe(history.at(-1)!.ok);
			}),
			{ numRuns: atEffort(1000) },
		);
	});
});

describe("provider health: who looks when", () => {
	function watched(outcomes: HealthOutcome[] = []) {
		const clock = manualClock(1_000_000);
		const probes: { name: string; at: number }[] = [];
		const watch = new HealthWatch({
			clock,
			async probe(name) {
				probes.push({ name, at: clock.now() - 1_000_000 });
				return outcomes.shift() ?? OK;
			},
		});
		watch.know("c", true);
		return { clock, probes, watch, settled: () => new Promise((resolve) => setImmediate(resolve)) };
	}

	test("Z2: without a subscriber and without use it is never probed", async () => {
		const { clock, probes, watch } = watched();
		clock.advance(3_600_000);
		expect(probes).toEqual([]);
		expect(watch.list()).toEqual([{ name: "c", state: "unknown", consecutiveFailures: 0, changedAt: 1_000_000 }]);
	});

	test("with a subscriber: at once, then each minute, backed off when it fails, and no more once it left", async () => {
		const { clock, probes, watch, settled } = watched([OK, DOWN, DOWN, OK]);
		const seen: string[] = [];
		const leave = watch.subscribe(({ state }) => seen.push(state));
		for (const ms of [0, 60_000, 5_000, 10_000, 60_000]) {
			clock.advance(ms);
			await settled();
		}
		expect(probes.map(({ at }) => at)).toEqual([0, 60_000, 65_000, 75_000, 135_000]);
		expect(seen).toEqual(["healthy", "degraded", "degraded", "healthy"]);
		leave();
		clock.advance(3_600_000);
		expect(probes).toHaveLength(5);
	});

	test("in use it is looked after for a while, but not before a minute without news", async () => {
		const { clock, probes, watch, settled } = watched();
		watch.used("c");
		clock.advance(59_000);
		expect(probes).toEqual([]);
		watch.report("c", { ok: true });
		clock.advance(59_000);
		expect(probes).toEqual([]);
		clock.advance(1_000);
		await settled();
		expect(probes).toEqual([{ name: "c", at: 119_000 }]);
		for (let minute = 0; minute < 30; minute++) {
			clock.advance(60_000);
			await settled();
		}
		expect(probes.length).toBeLessThanOrEqual(5);
	});

	test("a removed connector is reported as such once, and not probed again", async () => {
		const { clock, probes, watch, settled } = watched();
		const seen: ProviderHealth[] = [];
		watch.subscribe((health) => seen.push(health));
		clock.advance(0);
		await settled();
		watch.forget("c");
		watch.report("c", { ok: false, error: new ProviderFailure("unavailable", "unavailable", "down") });
		clock.advance(3_600_000);
		expect(seen.map(({ state }) => state)).toEqual(["healthy", "removed"]);
		expect(watch.list()).toEqual([]);
		expect(probes).toHaveLength(1);
	});

	test("a look that comes back after its provider was removed changes nothing", async () => {
		const clock = manualClock();
		let answer = (_: HealthOutcome) => {};
		const watch = new HealthWatch({ clock, probe: () => new Promise<HealthOutcome>((resolve) => (answer = resolve)) });
		watch.know("c", true);
		const seen: string[] = [];
		watch.subscribe(({ state }) => seen.push(state));
		clock.advance(0);
		watch.forget("c");
		answer(DOWN);
		await new Promise((resolve) => setImmediate(resolve));
		expect(seen).toEqual(["removed"]);
	});
});

describe("provider health: real calls", () => {
	async function connected() {
		const fake = await fakeProvider();
		const { connectors } = rig();
		await connectors.create(
			{ id: "c", providerType: "openai-compatible", endpoint: `${fake.url}/v1`, apiKey: KEY },
			OWNER,
		);
		const state = () => connectors.health.list().find(({ name }) => name === "c");
		return { fake, connectors, state, provider: await open(connectors, "c") };
	}

	test("their outcomes count, each once, and a request that was wrong does not", async () => {
		const { fake, connectors, state, provider } = await connected();
		expect(state()).toMatchObject({ state: "unknown" });
		await all(provider.text(ask("hi"), signal()));
		expect(state()).toMatchObject({ state: "healthy" });
		fake.on("/v1/chat/completions", refuse(503, "down"));
		const error = await all(provider.text(ask("hi"), signal())).catch((cause: unknown) => cause as Error);
		connectors.report("c", { ok: false, error: error as Error });
		expect(state()).toMatchObject({ state: "degraded", consecutiveFailures: 1 });
		fake.on("/v1/embeddings", refuse(400, "bad"));
		await provider.embed({ model: "e", inputs: ["a"] }, signal()).catch(() => {});
		expect(state()).toMatchObject({ state: "degraded", consecutiveFailures: 1 });
		const stopped = new AbortController();
		stopped.abort();
		await all(provider.text(ask("hi"), stopped.signal)).catch(() => {});
		expect(state()).toMatchObject({ consecutiveFailures: 1 });
		fake.on("/v1/audio/speech", refuse(401, "no"));
		await provider.speak({ model: "m", text: "x" }, signal()).catch(() => {});
		expect(state()).toMatchObject({ state: "unauthorized" });
		await provider.image({ model: "m", prompt: "x" }, signal());
		expect(state()).toMatchObject({ state: "healthy", consecutiveFailures: 0 });
	});

	test("a subscriber has it looked at with GET /models and nothing of a user's", async () => {
		const { fake, connectors } = await connected();
		const seen: ProviderHealth[] = [];
		connectors.health.subscribe((health) => seen.push(health));
		await until("both are well", () => seen.filter(({ state }) => state === "healthy").length === 2);
		expect(fake.seen.map(({ method, path, body }) => [method, path, body.length])).toEqual([["GET", "/v1/models", 0]]);
		await connectors.update("c", { enabled: false }, OWNER);
		await connectors.remove("c", OWNER);
		expect(seen.filter(({ name }) => name === "c").map(({ state }) => state)).toEqual([
			"healthy",
			"unknown",
			"removed",
		]);
	});
});
