/** A model call without a session: its log, its clocks, and each way that it ends. */

import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { TextEvent } from "../../../packages/daemon/src/services/connectors/port.ts";
import { idempotencyWrites } from "../../../packages/daemon/src/services/kit/rows.ts";
import { noUserTokens } from "../../../packages/daemon/src/services/scenarios/metadata.ts";
import { SCENARIO_TIMEOUT_MS } from "../../../packages/daemon/src/services/scenarios/port.ts";
import { createScenarios } from "../../../packages/daemon/src/services/scenarios/scenarios.ts";
import { kindRetention, timeOfId } from "../../../packages/protocol/src/protocol.ts";
import { tempFile } from "../../broker/rig.ts";
import { manualClock } from "../../clock.ts";
import { refuseWrites, storeForTest } from "../../store.ts";
import { until } from "../../until.ts";
import { durableParts, rejectsWith } from "../parts.ts";
import {
	admittedOf,
	appPrincipal,
	connectorOf,
	fakeConnectors,
	finalOf,
	framesOf,
	OWNER,
	type Play,
	playedProvider,
	rig,
	saying,
	textOf,
} from "./rig.ts";

/** Says something, then nothing until it is stopped. */
const hanging: Play = async function* (signal) {
	yield { type: "text", delta: "so far" };
	await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
};

describe("Z4: a run without a session", () => {
	test("its log has the frames of an answer, and the facts of the call; there is no chain, no turn", async () => {
		const play: Play = async function* () {
			yield { type: "alive" };
			yield { type: "text", delta: "Hel" };
			yield { type: "text", delta: "lo" };
			yield { type: "usage", input: 3, output: 2 };
		};
		const { scenarios, frames, bus, look } = rig(play);
		const started = await scenarios.start(admittedOf());
		const all = await frames(started.runId);
		expect(all.map(({ type }) => type)).toEqual(["stream.begin", "stream.chunk", "stream.chunk", "stream.end"]);
		expect(all[0]).not.toHaveProperty("session");
		expect(finalOf(all)).toMatchObject({
			final: true,
			reason: "completed",
			usage: { input: 3, output: 2 },
			model: "small",
		});
		const info = await bus.describe(started.runId);
		expect(info).toMatchObject({
			kind: "scenario",
			meta: { appId: "shop", kind: "text", model: "small", connectorId: "main", demo: false },
		});
		expect(info?.chain).toBeUndefined();
		expect(look.turns({ session: "shop", limit: 9 })).toEqual([]);
		expect(await started.outcome()).toEqual({ status: "completed", text: "Hello", usage: { input: 3, output: 2 } });
	});

	test("a long delta is taken in portions, and an answer that never ends is cut", async () => {
		const long = "x".repeat(200_000);
		const { scenarios, frames } = rig(saying(long));
		const { runId } = await scenarios.start(admittedOf());
		const all = await frames(runId);
		expect(textOf(all)).toBe(long);
		expect(all.length).toBeGreaterThan(10);
		const endless: Play = async function* () {
			for (;;) yield { type: "text", delta: "y".repeat(1024 * 1024) };
		};
		const flooded = rig(endless);
		const outcome = await (await flooded.scenarios.start(admittedOf())).outcome();
		expect(outcome).toMatchObject({ status: "failed", error: { code: "too_large", reason: "TOO_LARGE" } });
	});

	test("another application's run is not there", async () => {
		const { scenarios, bus } = rig(hanging);
		const { runId } = await scenarios.start(admittedOf());
		const stranger = appPrincipal("desk");
		const gone = { code: "not_found" };
		await expect(scenarios.cursor(runId, 0, stranger)).rejects.toMatchObject(gone);
		await expect(scenarios.facts(runId, stranger)).rejects.toMatchObject(gone);
		expect(scenarios.abort(runId, stranger)).toBeUndefined();
		await expect(scenarios.facts("run_none", OWNER)).rejects.toMatchObject(gone);
		await bus.create({ log: "run_of_a_session", kind: "run", meta: {} }, ["{}"]);
		await expect(scenarios.facts("run_of_a_session", OWNER)).rejects.toMatchObject(gone);
		expect(await scenarios.facts(runId, appPrincipal("shop"))).toMatchObject({ appId: "shop", kind: "text" });
		await scenarios.abort(runId, OWNER);
	});

	test("Z1, Z3: retention removes it after its day, and its readers learn so", async () => {
		const clock = manualClock(1000);
		const { scenarios, bus, frames } = rig(saying("a"), { clock });
		const { runId } = await scenarios.start(admittedOf());
		await frames(runId);
		const day = kindRetention().scenario!;
		expect(day.ageMsMax).toBe(86_400_000);
		expect(await bus.retain({ ageMsMax: 0, kinds: kindRetention() })).toBe(0);
		expect(await bus.retain({ kinds: { scenario: { ageMsMax: -1 } } })).toBe(1);
		await rejectsWith(scenarios.cursor(runId, 0, OWNER), "not_found");
		clock.advance(timeOfId(runId)! + day.ageMsMax - clock.now());
		await rejectsWith(scenarios.cursor(runId, 0, OWNER), "expired");
	});

	test("abort ends it with what was said, and counts it no more", async () => {
		const { scenarios, frames } = rig(hanging);
		const { runId } = await scenarios.start(admittedOf());
		expect(scenarios.live).toBe(1);
		const outcome = await scenarios.abort(runId, appPrincipal("shop"));
		expect(outcome).toMatchObject({ status: "aborted", text: "so far", error: { reason: "ABORTED" } });
		expect(finalOf(await frames(runId))).toMatchObject({ reason: "aborted", final: true });
		expect(scenarios.live).toBe(0);
		expect(scenarios.abort(runId, OWNER)).toBeUndefined();
	});
});

describe("Z14, R4-55: two clocks, neither is reset", () => {
	test("nothing within 60 s is a timeout, whatever the request allows", async () => {
		const clock = manualClock(1000);
		const silent: Play = async function* (signal) {
			await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
			yield { type: "alive" };
		};
		const { scenarios, frames, connectors } = rig(silent, { clock });
		const { runId } = await scenarios.start(admittedOf());
		clock.advance(59_999);
		await turn();
		expect(scenarios.live).toBe(1);
		clock.advance(1);
		expect(finalOf(await frames(runId))).toMatchObject({
			reason: "timeout",
			error: { code: "timeout", reason: "AI_PROVIDER_TIMEOUT", message: expect.stringContaining("60000 ms") },
			usage: { input: -1, output: -1 },
		});
		await until("health is told", () => connectors.reports.length > 0);
		expect(connectors.reports).toEqual([["main", false]]);
	});

	test.each([
		["text", 120_000],
		["speech", 45_000],
	] as const)("%s ends after %i ms, although the provider keeps talking", async (kind, totalMs) => {
		const clock = manualClock(1000);
		let say = () => {};
		const talking: Play = async function* (signal) {
			while (!signal.aborted) {
				yield { type: "text", delta: "." };
				await new Promise<void>((resolve) => (say = resolve));
			}
		};
		const speak = async (_: unknown, signal: AbortSignal) => ({
			mimeType: "audio/wav",
			audio: (async function* () {
				for await (const _event of talking(signal)) yield new Uint8Array([1, 2]);
			})(),
		});
		const { scenarios, frames } = rig(talking, { clock, provider: { speak } });
		const spec = kind === "text" ? admittedOf().spec : { kind, text: "read this" };
		const { runId } = await scenarios.start(admittedOf({ spec, timeoutMs: SCENARIO_TIMEOUT_MS[kind] }));
		const beforeEnd = 1000 + totalMs - 1;
		while (clock.now() < beforeEnd) {
			await turn();
			clock.advance(Math.min(10_000, beforeEnd - clock.now()));
			say();
		}
		await turn();
		expect(scenarios.live).toBe(1);
		clock.advance(1);
		say();
		expect(finalOf(await frames(runId))).toMatchObject({
			reason: "timeout",
			error: { reason: "AI_PROVIDER_TIMEOUT", message: expect.stringContaining(`${totalMs} ms`) },
		});
	});

	test("any event of the provider is a first packet, and reading again starts no clock", async () => {
		const clock = manualClock(1000);
		const alive: Play = async function* (signal) {
			yield { type: "alive" };
			await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
		};
		const { scenarios, frames } = rig(alive, { clock });
		const { runId } = await scenarios.start(admittedOf());
		await turn();
		clock.advance(119_999);
		await turn();
		expect(scenarios.live).toBe(1);
		const late = await scenarios.cursor(runId, 0, OWNER);
		clock.advance(1);
		expect(finalOf(await frames(runId)).reason).toBe("timeout");
		late.close();
	});

	test("I12: a provider that ignores its signal is not waited for", async () => {
		const clock = manualClock(1000);
		const deaf: Play = async function* () {
			yield { type: "text", delta: "a" };
			await new Promise(() => {});
		};
		const { scenarios, frames } = rig(deaf, { clock, abortGraceMs: 500 });
		const { runId } = await scenarios.start(admittedOf());
		await turn();
		void scenarios.abort(runId, OWNER);
		clock.advance(500);
		expect(finalOf(await frames(runId)).reason).toBe("aborted");
	});
});

describe("I3: every log ends", () => {
	test("kill -9: recovery ends what was left, marked as its own; nothing is executed again", async () => {
		const path = tempFile();
		let calls = 0;
		const counted: Play = async function* (signal) {
			calls++;
			yield* hanging(signal);
		};
		const died = rig(counted, { path, dies: true });
		const { runId } = await died.scenarios.start(admittedOf(), { idempotencyKey: "k" });
		await until("it has said something", async () => ((await died.bus.describe(runId))?.head ?? 0) > 1);

		const store = storeForTest({ path });
		const connectors = fakeConnectors(playedProvider(counted), [connectorOf("main")]);
		const scenarios = createScenarios({ ...durableParts(store), connectors, verifyUser: noUserTokens });
		expect(await scenarios.recover()).toBe(1);
		const all = await framesOf(store.bus, runId);
		expect(textOf(all)).toBe("so far");
		expect(finalOf(all)).toMatchObject({ reason: "crashed", synthetic: true, usage: { input: -1, output: -1 } });
		// R4-58, Z15: the same key gives the run that crashed.
		const again = await scenarios.start(admittedOf(), { idempotencyKey: "k" });
		expect(again).toMatchObject({ runId, isFirst: false });
		expect(await again.outcome()).toMatchObject({ status: "failed", text: "so far", error: { reason: "CRASHED" } });
		expect(calls).toBe(1);
		expect(await scenarios.recover()).toBe(0);
	});

	test("refused writes that accompany its end cannot keep a log from ending", async () => {
		const audit = ({ operation }: { operation: string }) =>
			idempotencyWrites.forget(operation === "started" ? 0 : 1, 1);
		const { scenarios, frames, file } = rig(saying("all of it"), { audit });
		refuseWrites({ file }, ({ table, args }) => table === "idempotency" && args[0] === 1);
		const { runId } = await scenarios.start(admittedOf());
		expect(finalOf(await frames(runId))).toMatchObject({ reason: "completed", final: true });
	});

	test("a beginning that is refused leaves nothing, and no call", async () => {
		let calls = 0;
		const counted: Play = async function* () {
			calls++;
			yield { type: "alive" };
		};
		const { scenarios, bus, file } = rig(counted);
		refuseWrites({ file }, () => true);
		const begin = [idempotencyWrites.forget(0, 1)];
		await expect(scenarios.start(admittedOf(), { begin })).rejects.toMatchObject({ refusal: "conflict" });
		expect([await bus.list(), scenarios.live, calls]).toEqual([[], 0, 0]);
	});

	test("a run whose end cannot be read has failed, with what there is of it", async () => {
		const { scenarios, bus } = rig(hanging);
		const { runId } = await scenarios.start(admittedOf());
		const { outcome } = await scenarios.start(admittedOf(), { runId: "run_2" });
		await until("it has said something", async () => ((await bus.describe(runId))?.head ?? 0) > 1);
		await bus.close();
		expect(await outcome()).toMatchObject({ status: "failed", error: { reason: expect.any(String) } });
	});

	test("Z6: draining refuses new ones, waits, and aborts what is left with a real end", async () => {
		const clock = manualClock(1000);
		const { scenarios, frames } = rig(hanging, { clock });
		const { runId } = await scenarios.start(admittedOf());
		const drained = scenarios.drain(5000);
		await rejectsWith(scenarios.start(admittedOf()), "unavailable", "STOPPING");
		clock.advance(4999);
		await turn();
		expect(scenarios.live).toBe(1);
		clock.advance(1);
		await drained;
		expect(finalOf(await frames(runId))).toMatchObject({ reason: "aborted", error: { reason: "STOPPING" } });
	});

	test("Z6: one that ends by itself is waited for", async () => {
		let finish = () => {};
		const play: Play = async function* () {
			yield { type: "text", delta: "a" };
			await new Promise<void>((resolve) => (finish = resolve));
			yield { type: "text", delta: "b" };
		};
		const { scenarios, frames } = rig(play, { clock: manualClock() });
		const { runId } = await scenarios.start(admittedOf());
		await turn();
		const drained = scenarios.drain(5000);
		finish();
		await drained;
		expect(finalOf(await frames(runId)).reason).toBe("completed");
	});
});

describe("Z15: never executed twice", () => {
	test("two at once with one key are one run; another body is refused", async () => {
		let calls = 0;
		const play: Play = async function* () {
			calls++;
			yield { type: "text", delta: "once" } satisfies TextEvent;
		};
		const { scenarios } = rig(play);
		const options = { idempotencyKey: "k" };
		const [a, b] = await Promise.all([scenarios.start(admittedOf(), options), scenarios.start(admittedOf(), options)]);
		expect(a.runId).toBe(b.runId);
		expect([a.isFirst, b.isFirst].filter(Boolean)).toHaveLength(1);
		expect((await b.outcome()).text).toBe("once");
		expect(calls).toBe(1);
		const conflict = { code: "invalid", reason: "IDEMPOTENCY_CONFLICT" };
		await expect(scenarios.start(admittedOf({ model: "large" }), options)).rejects.toMatchObject(conflict);
		const other = await scenarios.start(admittedOf({ appId: "desk" }), options);
		expect(other.runId).not.toBe(a.runId);
	});
});

describe("R4-43: sound", () => {
	test("every chunk decodes alone, however the provider cuts its bytes", async () => {
		const bytes = Buffer.from(Array.from({ length: 40_001 }, (_, n) => n % 251));
		const cuts = [0, 1, 7, 12_289, 40_001];
		const audio = async function* () {
			for (const [n, from] of cuts.slice(0, -1).entries()) yield new Uint8Array(bytes.subarray(from, cuts[n + 1]));
		};
		const { scenarios, frames } = rig(saying(), {
			provider: { speak: async () => ({ mimeType: "audio/mpeg", audio: audio() }) },
		});
		const spec = { kind: "speech", text: "read this" } as const;
		const started = await scenarios.start(admittedOf({ spec, timeoutMs: 45_000 }));
		const chunks = (await frames(started.runId)).flatMap((frame) =>
			frame.type === "stream.chunk" ? [frame.payload] : [],
		);
		expect(chunks.length).toBeGreaterThan(4);
		expect(Buffer.concat(chunks.map((chunk) => Buffer.from(chunk, "base64")))).toEqual(bytes);
		expect(chunks.every((chunk) => Buffer.from(chunk, "base64").toString("base64") === chunk)).toBe(true);
		const { audio: heard } = await started.outcome();
		expect(heard?.mimeType).toBe("audio/mpeg");
		expect(heard?.data).toEqual(bytes);
	});
});

test("I11: an application has so many calls at a time, and takes none of the others'", async () => {
	const ending = Promise.withResolvers<void>();
	const { scenarios } = rig(
		async function* () {
			yield { type: "text", delta: "so far" };
			await ending.promise;
		},
		{ livePerAppMax: 1 },
	);
	const start = (appId: string) => scenarios.start({ ...admittedOf(), appId });
	const first = await start("shop");
	await rejectsWith(start("shop"), "busy");
	await start("till");
	ending.resolve();
	await first.outcome();
	await until("room again", () =>
		start("shop").then(
			() => true,
			() => false,
		),
	);
});
