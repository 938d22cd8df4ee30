import { describe, expect, it, vi } from "vitest";
import { follow, type LogWriter } from "../../packages/daemon/src/bus/bus.ts";
import type { Audit } from "../../packages/daemon/src/services/audit/port.ts";
import type { Provider } from "../../packages/daemon/src/services/connectors/port.ts";
import { textSoFar } from "../../packages/daemon/src/services/scenarios/outcome.ts";
import { encodeFrame, NexusError, newRunId } from "../../packages/protocol/src/protocol.ts";
import { manualClock } from "../clock.ts";
import { until } from "../until.ts";
import { admittedOf, appPrincipal, jobsRig, OWNER, outcomeOf, playedScenarios, tempPath, typesOf } from "./jobs-rig.ts";
import { rejectsWith } from "./parts.ts";

const called = (rig: ReturnType<typeof jobsRig>, count: number) =>
	until(`${count} calls`, () => rig.calls.length >= count);

describe("a job", () => {
	it("R4-45: is submitted, runs and completes, each with its row in one commit", async () => {
		const rig = jobsRig();
		const { id, state } = await rig.jobs.submit(admittedOf({ inputs: ["abc"] }));
		expect(["submitted", "running"]).toContain(state);
		await called(rig, 1);
		expect(await rig.get(id)).toMatchObject({ state: "running", attempt: 1, connectorId: "main", progress: -1 });
		rig.calls[0]!.answer();
		const settled = await rig.jobs.settled(id);
		expect(settled).toMatchObject({
			state: "completed",
			embeddings: [[3]],
			progress: 100,
			usage: { input: 1, output: 0 },
		});
		expect(await rig.get(id)).toEqual(settled);
		expect(typesOf(await rig.events(id))).toEqual(["submitted", "running", "completed"]);
		expect((await rig.bus.describe(id))?.sealedAt).toBeDefined();
	});

	it("I11: waits for a slot with its place in the queue, applications in turn", async () => {
		const rig = jobsRig({ limits: { runningMax: 1 } });
		const submit = (appId: string) => rig.jobs.submit(admittedOf({}, { appId }));
		const first = await submit("a");
		const [second, third, other] = [await submit("a"), await submit("a"), await submit("b")];
		expect(second).toMatchObject({ state: "queued", queuePosition: 0 });
		expect(await rig.get(other.id)).toMatchObject({ state: "queued", queuePosition: 0 });
		expect(await rig.get(second.id)).toMatchObject({ queuePosition: 1 });
		expect(await rig.get(third.id)).toMatchObject({ queuePosition: 2 });
		expect(rig.jobs.counts).toEqual({ queued: 3, running: 1 });
		const order: string[] = [];
		for (let n = 1; n <= 4; n++) {
			await called(rig, n);
			const { jobs } = await rig.jobs.list({ states: ["running"], limit: 9 }, OWNER);
			order.push(jobs[0]!.id);
			rig.calls[n - 1]!.answer();
			await rig.jobs.settled(order.at(-1)!);
		}
		expect(order).toEqual([first.id, other.id, second.id, third.id]);
	});

	it("I11: is refused when the queue is full, for one application and for all", async () => {
		const rig = jobsRig({ limits: { runningMax: 1, queuedMax: 2, queuedPerAppMax: 1 } });
		const submit = (appId: string) => rig.jobs.submit(admittedOf({}, { appId }));
		await submit("a");
		await submit("a");
		await rejectsWith(submit("a"), "busy");
		await submit("b");
		await rejectsWith(submit("c"), "busy");
		expect((await rig.jobs.list({ limit: 9 }, OWNER)).jobs).toHaveLength(3);
	});

	it("Z15: the same idempotency key is the same job, another body is refused", async () => {
		const rig = jobsRig();
		const submit = (inputs: string[]) => rig.jobs.submit(admittedOf({ inputs }), { idempotencyKey: "k" });
		const [one, two] = await Promise.all([submit(["a"]), submit(["a"])]);
		expect(two.id).toBe(one.id);
		expect((await submit(["a"])).id).toBe(one.id);
		await expect(submit(["b"])).rejects.toMatchObject({ reason: "IDEMPOTENCY_CONFLICT" });
		await called(rig, 1);
		expect(rig.calls).toHaveLength(1);
	});

	it("Z26: a key that came with the request is refused, and nothing of it is stored", async () => {
		const rig = jobsRig();
		const inline = { providerType: "openai", apiKey: "sk-secret" };
		await rejectsWith(rig.jobs.submit(admittedOf({}, { source: { inline } })), "precondition");
		expect((await rig.jobs.list({ limit: 9 }, OWNER)).jobs).toEqual([]);
	});

	it("FIELD §8: takes too long and ends as TIMEOUT, also when its provider does not heed the signal", async () => {
		const clock = manualClock(1000);
		const rig = jobsRig({ clock, deps: deafProvider().deps });
		const { id } = await rig.jobs.submit(admittedOf({}, { timeoutMs: 500 }));
		await until("it runs", async () => (await rig.get(id)).state === "running");
		await until("the clock is set", () => {
			clock.advance(500);
			return rig.jobs.counts.running === 1;
		});
		clock.advance(5000);
		await until("it is settled", async () => {
			clock.advance(5000);
			return (await rig.get(id)).state === "timeout";
		});
		expect((await rig.get(id)).error).toMatchObject({ code: "timeout", reason: "TIMEOUT" });
	});

	it("R4-50: another application cannot see, cancel or read it", async () => {
		const rig = jobsRig();
		const { id } = await rig.jobs.submit(admittedOf());
		const other = appPrincipal("other");
		expect(await rig.jobs.find(id, other)).toBeUndefined();
		await rejectsWith(rig.jobs.cancel(id, "", other), "not_found");
		await rejectsWith(rig.jobs.cursor(id, undefined, other), "not_found");
		await rejectsWith(rig.jobs.list({ appId: "app", limit: 9 }, other), "forbidden");
		expect(await rig.jobs.list({ limit: 9 }, other)).toEqual({ jobs: [], queued: 0, running: 0 });
		expect((await rig.jobs.list({ limit: 9 }, appPrincipal("app"))).jobs).toHaveLength(1);
	});

	it("Z13: has a result that is too large for a message as an artifact", async () => {
		const rig = jobsRig({ limits: { inlineBytesMax: 8 } });
		const { id } = await rig.jobs.submit(admittedOf({ inputs: ["a", "bc", "def"] }));
		await called(rig, 1);
		rig.calls[0]!.answer();
		const { embeddings, artifacts } = await rig.jobs.settled(id);
		expect(embeddings).toBeUndefined();
		expect(artifacts).toMatchObject([{ name: "embeddings.json", mimeType: "application/json", appId: "app" }]);
		expect(JSON.parse(Buffer.from(rig.stored[0]!.data).toString())).toEqual([[1], [2], [3]]);
	});

	it("R4-47: tells how far it is, again and again", async () => {
		const clock = manualClock(1000);
		const rig = jobsRig({ clock });
		const { id } = await rig.jobs.submit(
			admittedOf({ inputs: Array.from({ length: 160 }, () => "x") }, { timeoutMs: 1e9 }),
		);
		for (const percent of [40, 80]) {
			await until("the next call", () => rig.calls.length > 0);
			rig.calls.splice(0)[0]!.answer();
			await until(`${percent} %`, async () => {
				clock.advance(1000);
				return (await rig.get(id)).progress === percent;
			});
		}
		await until("the last call", () => rig.calls.length > 0);
		rig.calls[0]!.answer();
		expect(await rig.jobs.settled(id)).toMatchObject({ progress: 100, usage: { input: 160, output: 0 } });
		const told = (await rig.events(id)).filter(({ type }) => type === "progress").map(({ job }) => job.progress);
		expect(told).toEqual(expect.arrayContaining([40, 80]));
	});

	it("writes audit entries in its commits", async () => {
		const told: string[] = [];
		const audit: Audit = ({ operation, payload }) => {
			told.push(`${operation} ${payload?.kind}`);
			return { table: "artifacts", op: "remove", args: ["none"] };
		};
		const rig = jobsRig({ deps: { audit } });
		const { id } = await rig.jobs.submit(admittedOf());
		await called(rig, 1);
		rig.calls[0]!.answer();
		await rig.jobs.settled(id);
		expect(told).toEqual(["submitted embed", "completed embed"]);
	});
});

/** A provider that never answers and heeds nothing, and the signal that it does not heed. */
function deafProvider() {
	const told: { signal?: AbortSignal } = {};
	const embed = (_: unknown, signal: AbortSignal) => {
		told.signal = signal;
		return new Promise<never>(() => {});
	};
	return { told, deps: { scenarios: playedScenarios({ demo: false, embed } as unknown as Provider) } };
}

describe("cancelling", () => {
	it("ends one that waits at once, and one that runs within its grace (I12)", async () => {
		const rig = jobsRig({ limits: { runningMax: 1 } });
		const [running, waiting] = [await rig.jobs.submit(admittedOf()), await rig.jobs.submit(admittedOf())];
		await called(rig, 1);
		expect(await rig.jobs.cancel(waiting.id, "not needed", OWNER)).toMatchObject({
			state: "canceled",
			error: { code: "aborted", message: "it was cancelled: not needed", reason: "ABORTED" },
		});
		expect(await rig.jobs.cancel(running.id, "", OWNER)).toMatchObject({ state: "canceled" });
		expect(rig.calls[0]!.signal.aborted).toBe(true);
		expect(rig.calls).toHaveLength(1);
		expect(typesOf(await rig.events(waiting.id))).toEqual(["submitted", "queued", "canceled"]);
	});

	it("I12: does not wait for a provider that heeds nothing", async () => {
		const rig = jobsRig({ limits: { cancelGraceMs: 1 }, deps: deafProvider().deps });
		const { id } = await rig.jobs.submit(admittedOf());
		expect(await rig.jobs.cancel(id, "", OWNER)).toMatchObject({ state: "canceled" });
	});

	it("changes nothing of what has ended", async () => {
		const rig = jobsRig();
		const { id } = await rig.jobs.submit(admittedOf());
		await called(rig, 1);
		rig.calls[0]!.answer();
		const settled = await rig.jobs.settled(id);
		expect(await rig.jobs.cancel(id, "late", OWNER)).toEqual(settled);
		await rejectsWith(rig.jobs.cancel("job_none", "", OWNER), "not_found");
	});
});

describe("retrying", () => {
	const failed = new NexusError("engine_failed", "502", { reason: "AI_PROVIDER_FAILED" });

	it("happens after a failure that may pass, as often as its submitter said, with growing pauses", async () => {
		const clock = manualClock(1000);
		const rig = jobsRig({ clock });
		const { id } = await rig.jobs.submit(admittedOf(), { attemptsMax: 3, backoffMs: 100 });
		await called(rig, 1);
		rig.calls[0]!.fail(failed);
		await until("it waits", async () => (await rig.get(id)).attempt === 2);
		expect(await rig.get(id)).toMatchObject({
			state: "queued",
			afterCrash: false,
			error: { reason: "AI_PROVIDER_FAILED" },
		});
		clock.advance(99);
		expect(rig.jobs.counts).toEqual({ queued: 1, running: 0 });
		clock.advance(1);
		await called(rig, 2);
		rig.calls[1]!.fail(failed);
		await until("it waits again", async () => (await rig.get(id)).attempt === 3);
		clock.advance(199);
		expect(rig.jobs.counts.running).toBe(0);
		clock.advance(1);
		await called(rig, 3);
		rig.calls[2]!.fail(failed);
		expect(await rig.jobs.settled(id)).toMatchObject({ state: "failed", attempt: 3, error: { message: "502" } });
		expect(typesOf(await rig.events(id))).toEqual([
			...["submitted", "running", "retrying", "running", "retrying", "running", "failed"],
		]);
	});

	it("does not happen without leave, nor after a failure that would come again", async () => {
		const rig = jobsRig();
		const [once, bad] = [await rig.jobs.submit(admittedOf()), await rig.jobs.submit(admittedOf(), { attemptsMax: 5 })];
		await called(rig, 2);
		rig.calls[0]!.fail(failed);
		rig.calls[1]!.fail(new NexusError("invalid", "no such size"));
		expect(await rig.jobs.settled(once.id)).toMatchObject({ state: "failed", attempt: 1 });
		expect(await rig.jobs.settled(bad.id)).toMatchObject({ state: "failed", attempt: 1 });
		await rejectsWith(rig.jobs.submit(admittedOf(), { attemptsMax: 11 }), "invalid");
	});
});

it("Z27: a job that waited is admitted again when it runs", async () => {
	const scenarios = playedScenarios({} as Provider);
	const gone = new NexusError("not_found", "there is no connector main", { reason: "AI_CONNECTOR_NOT_FOUND" });
	const rig = jobsRig({ deps: { scenarios: { ...scenarios, readmit: () => Promise.reject(gone) } } });
	const { id } = await rig.jobs.submit(admittedOf());
	expect(await rig.jobs.settled(id)).toMatchObject({ state: "failed", error: { reason: "AI_CONNECTOR_NOT_FOUND" } });
});

const HELLO = { kind: "text", messages: [{ role: "user", text: "hi" }] } as const;

/** A text whose run the test writes: it has `words` chunks, and ends when the test says so. */
function textRig(options: Parameters<typeof jobsRig>[0] = {}) {
	const { promise, resolve } = Promise.withResolvers<ReturnType<typeof outcomeOf>>();
	const run: { id: string; writer?: LogWriter; aborted: number } = { id: "", aborted: 0 };
	/** The outcome that the test gives; reports every batch of the run's log until then. */
	const outcome = async (grew = () => {}) => {
		const over = new AbortController();
		void promise.then(() => over.abort());
		for await (const _ of follow(await rig.bus.cursor({ log: run.id }, 0), over.signal)) grew();
		return promise;
	};
	const rig: ReturnType<typeof jobsRig> = jobsRig({
		...options,
		deps: {
			scenarios: {
				async start(_, { runId = newRunId(), begin: writes = [] } = {}) {
					run.id = runId;
					run.writer = await rig.bus.create({ log: runId, kind: "scenario" }, [begin(runId)], { with: writes });
					return { runId, isFirst: true, outcome, abort: () => void run.aborted++ };
				},
				readmit: playedScenarios({ demo: true } as Provider).readmit,
				textSoFar: async (id) => textSoFar(await rig.bus.cursor({ log: id }, 0), Number.POSITIVE_INFINITY),
			},
		},
	});
	return { ...rig, run, end: resolve };
}

const said = async (run: { id: string; writer?: LogWriter }, seq: number, words: string) => {
	run.writer!.append(chunk(run.id, seq, words));
	await run.writer!.flushed();
};

describe("a text", () => {
	it("R4-47: is a run that can be read meanwhile, and its progress comes again and again", async () => {
		const clock = manualClock(1000);
		const rig = textRig({ clock });
		const { run } = rig;
		const { id } = await rig.jobs.submit(admittedOf(HELLO, { timeoutMs: 1e9 }));
		await until("its run is known", async () => (await rig.get(id)).runId === run.id);
		const progress = async () => (await rig.events(id)).filter(({ type }) => type === "progress");
		for (const [n, words] of ["Hello", " world"].entries()) {
			await said(run, n + 1, words);
			await until("it is told", async () => {
				clock.advance(1000);
				return (await progress()).length >= n + 2 && (await rig.get(id)).text?.endsWith(words) === true;
			});
		}
		rig.end(outcomeOf({ text: "Hello world" }));
		const settled = await rig.jobs.settled(id);
		expect(settled).toMatchObject({ state: "completed", text: "Hello world", runId: run.id, demo: true });
		expect(await rig.get(id)).toEqual(settled);
		expect((await progress()).length).toBeGreaterThanOrEqual(3);
	});

	it("I11: stands in the last record of its job alone, however often progress is reported", async () => {
		const clock = manualClock(1000);
		const rig = textRig({ clock });
		const { id } = await rig.jobs.submit(admittedOf(HELLO, { timeoutMs: 1e9 }));
		await until("its run is known", async () => (await rig.get(id)).runId !== undefined);
		const words = "word ".repeat(2000);
		for (let n = 1; n <= 5; n++) {
			await said(rig.run, n, words);
			await until("progress is told", async () => {
				clock.advance(1000);
				return (await rig.events(id)).length >= n + 2;
			});
		}
		rig.end(outcomeOf({ text: words.repeat(5) }));
		await rig.jobs.settled(id);
		const { bytes } = (await rig.bus.describe(id))!;
		expect(bytes).toBeGreaterThan(5 * words.length);
		expect(bytes).toBeLessThan(6 * words.length);
		expect(await rig.rows.jobs.bytes("app")).toBeLessThan(6 * words.length);
	});
});

const begin = (runId: string) =>
	encodeFrame({
		type: "stream.begin",
		message_id: `${runId}.1`,
		run_id: runId,
		trace_id: "0",
		correlation_group: runId,
		modality: "text",
		content_type: "text/plain",
		ts: 1,
	});
const chunk = (runId: string, seq_no: number, payload: string) =>
	encodeFrame({ type: "stream.chunk", message_id: `${runId}.1`, seq_no, payload, is_partial: true, ts: 1 });

describe("after a crash (Z18)", () => {
	it("a waiting job resumes; a running one ends as crashed, unless another attempt is allowed, which is flagged", async () => {
		const path = tempPath();
		const dead = jobsRig({ path, dies: true, limits: { runningMax: 2 } });
		const ran = await dead.jobs.submit(admittedOf());
		const again = await dead.jobs.submit(admittedOf(), { attemptsMax: 2 });
		const waited = await dead.jobs.submit(admittedOf());
		await called(dead, 2);
		const rig = jobsRig({ path });
		expect(await rig.jobs.recover()).toBe(2);
		expect(await rig.get(ran.id)).toMatchObject({ state: "failed", error: { code: "crashed", reason: "CRASHED" } });
		await called(rig, 2);
		expect(await rig.get(again.id)).toMatchObject({ state: "running", attempt: 2, afterCrash: true });
		expect(await rig.get(waited.id)).toMatchObject({ state: "running", attempt: 1, afterCrash: false });
		for (const { answer } of rig.calls) answer();
		expect(await rig.jobs.settled(again.id)).toMatchObject({ state: "completed", attempt: 2, afterCrash: true });
		expect(await rig.jobs.settled(waited.id)).toMatchObject({ state: "completed" });
		expect(typesOf(await rig.events(again.id))).toEqual(["submitted", "running", "retrying", "running", "completed"]);
	});

	it("I3: what cannot be taken up for want of a store ends as soon as it can be", async () => {
		const path = tempPath();
		const dead = jobsRig({ path, dies: true });
		const { id } = await dead.jobs.submit(admittedOf(), { attemptsMax: 2 });
		await called(dead, 1);
		const next = jobsRig({ path });
		const reopen = next.bus.reopen.bind(next.bus);
		next.bus.reopen = async (log) =>
			Object.assign(await reopen(log), { appendWith: () => Promise.reject(new NexusError("unavailable", "full")) });
		expect(await next.jobs.recover()).toBe(1);
		expect(await next.get(id)).toMatchObject({ state: "failed", error: { code: "unavailable" } });
	});

	it("what another daemon runs is its own: it is seen and awaited here, and neither taken over nor cancelled", async () => {
		const path = tempPath();
		const one = jobsRig({ path, shared: true });
		const two = jobsRig({ path, shared: true });
		const { id } = await one.jobs.submit(admittedOf());
		await called(one, 1);
		expect(await two.jobs.recover()).toBe(0);
		expect(await two.get(id)).toMatchObject({ state: "running" });
		await rejectsWith(two.jobs.cancel(id, "", OWNER), "unavailable");
		const awaited = two.jobs.settled(id);
		one.calls[0]!.answer();
		expect(await awaited).toMatchObject({ state: "completed" });
		expect(two.calls).toHaveLength(0);
	});

	it("R4-50: a subscriber gets what happened, the terminal, and a clean end", async () => {
		const path = tempPath();
		const dead = jobsRig({ path, dies: true });
		const { id } = await dead.jobs.submit(admittedOf());
		await called(dead, 1);
		const rig = jobsRig({ path });
		await rig.jobs.recover();
		const cursor = await rig.jobs.cursor(id, 0, OWNER);
		const types = [];
		for await (const batch of follow(cursor)) types.push(...batch.records.map((record) => JSON.parse(record).type));
		expect([types, cursor.ended]).toEqual([["submitted", "running", "failed"], true]);
	});

	it("a text is what the log of its run has, also when nothing was recorded of it", async () => {
		const path = tempPath();
		const dead = textRig({ path, dies: true });
		const { id } = await dead.jobs.submit(admittedOf(HELLO));
		await until("its run has begun", () => dead.run.writer !== undefined);
		await said(dead.run, 1, "Hello");
		await said(dead.run, 2, " there");
		const rig = jobsRig({
			path,
			deps: {
				scenarios: {
					...playedScenarios({} as Provider),
					textSoFar: async (run) => textSoFar(await rig.bus.cursor({ log: run }, 0), Number.POSITIVE_INFINITY),
				},
			},
		}) as ReturnType<typeof jobsRig>;
		await rig.jobs.recover();
		expect(await rig.get(id)).toMatchObject({
			state: "failed",
			error: { reason: "CRASHED" },
			text: "Hello there",
			runId: dead.run.id,
		});
	});

	it("I11: a start reads the requests of those that run, and of no other; a list reads none", async () => {
		const path = tempPath();
		const limits = { runningMax: 1 };
		const dead = jobsRig({ path, dies: true, limits });
		const inputs = ["x".repeat(50_000)];
		for (let n = 0; n < 6; n++) await dead.jobs.submit(admittedOf({ inputs }));
		await called(dead, 1);
		const parse = vi.spyOn(JSON, "parse");
		const parsed = () => parse.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
		const rig = jobsRig({ path, limits });
		await rig.jobs.recover();
		await called(rig, 1);
		expect(parsed()).toBeGreaterThan(50_000);
		expect(parsed()).toBeLessThan(2 * 50_000);
		parse.mockClear();
		expect((await rig.jobs.list({ limit: 9 }, OWNER)).jobs).toHaveLength(6);
		expect(parsed()).toBeLessThan(50_000);
		parse.mockRestore();
	});
});

describe("when the daemon stops", () => {
	it("what did not end in time ends as STOPPING, or is begun again by the next one, which calls it no crash", async () => {
		const path = tempPath();
		const dead = jobsRig({ path, dies: true });
		const once = await dead.jobs.submit(admittedOf());
		const again = await dead.jobs.submit(admittedOf(), { attemptsMax: 2 });
		await called(dead, 2);
		await dead.jobs.close(0);
		expect(dead.calls.map(({ signal }) => signal.aborted)).toEqual([true, true]);
		await expect(dead.jobs.submit(admittedOf())).rejects.toMatchObject({ reason: "STOPPING" });
		await dead.close();
		const rig = jobsRig({ path });
		expect(await rig.get(once.id)).toMatchObject({
			state: "failed",
			error: { code: "unavailable", reason: "STOPPING" },
		});
		expect(await rig.get(again.id)).toMatchObject({
			state: "queued",
			attempt: 2,
			afterCrash: false,
			error: { reason: "STOPPING" },
		});
		expect(await rig.jobs.recover()).toBe(0);
		await called(rig, 1);
		rig.calls[0]!.answer();
		expect(await rig.jobs.settled(again.id)).toMatchObject({ state: "completed", attempt: 2, afterCrash: false });
		expect(typesOf(await rig.events(once.id))).toEqual(["submitted", "running", "failed"]);
		expect(typesOf(await rig.events(again.id))).toEqual(["submitted", "running", "retrying", "running", "completed"]);
	});

	it("I12: a provider that never settles is waited for within the time of the stop, and its job ends as STOPPING", async () => {
		const clock = manualClock(1000);
		const { deps, told } = deafProvider();
		const rig = jobsRig({ clock, deps });
		const { id } = await rig.jobs.submit(admittedOf());
		await until("it is asked", () => told.signal !== undefined);
		const closing = rig.jobs.close(1000, 300);
		clock.advance(1000);
		await until("it is asked to stop", () => told.signal!.aborted);
		clock.advance(150);
		await closing;
		expect(clock.now()).toBeLessThanOrEqual(1000 + 1000 + 300);
		expect(await rig.get(id)).toMatchObject({ state: "failed", error: { reason: "STOPPING" }, afterCrash: false });
	});

	it("I12: nor does a stop wait longer for a store that takes no last record", async () => {
		const clock = manualClock(1000);
		const { deps, told } = deafProvider();
		const rig = jobsRig({ clock, deps });
		const create = rig.bus.create.bind(rig.bus);
		const sealed = Promise.withResolvers<void>();
		const seal = vi.fn(() => sealed.promise);
		rig.bus.create = async (...args) => Object.assign(await create(...args), { seal });
		await rig.jobs.submit(admittedOf());
		await until("it is asked", () => told.signal !== undefined);
		const closing = rig.jobs.close(1000, 300);
		clock.advance(1000);
		await until("it is asked to stop", () => told.signal!.aborted);
		clock.advance(150);
		await until("its end is to be recorded", () => seal.mock.calls.length === 1);
		clock.advance(150);
		await closing;
		sealed.resolve();
	});

	it("a text whose run does not end in time ends as STOPPING with what its run has said", async () => {
		const clock = manualClock(1000);
		const rig = textRig({ clock });
		const { id } = await rig.jobs.submit(admittedOf(HELLO));
		await until("its run is known", async () => (await rig.get(id)).runId !== undefined);
		await said(rig.run, 1, "Hel");
		const closing = rig.jobs.close(0, 300);
		await until("it is closed", () => {
			clock.advance(10);
			return rig.jobs.counts.running === 0;
		});
		await closing;
		expect(await rig.get(id)).toMatchObject({ state: "failed", text: "Hel", error: { reason: "STOPPING" } });
	});

	it("the run of a job is not aborted: the daemon's stop ends it, and the job has what it said", async () => {
		const rig = textRig();
		const { id } = await rig.jobs.submit(admittedOf(HELLO));
		await until("its run is known", async () => (await rig.get(id)).runId !== undefined);
		const closed = rig.jobs.close(0);
		const error = { code: "unavailable", message: "Nexus was shut down.", reason: "STOPPING" } as const;
		rig.end(outcomeOf({ status: "aborted", text: "Hel", error }));
		await closed;
		expect(await rig.get(id)).toMatchObject({ state: "failed", text: "Hel", error: { reason: "STOPPING" } });
		expect(rig.run.aborted).toBe(0);
	});

	it("P8.6: jobs are cancelled all the same, those that wait and those that run", async () => {
		const rig = jobsRig({ limits: { runningMax: 1 } });
		const [running, waiting, late] = [
			await rig.jobs.submit(admittedOf()),
			await rig.jobs.submit(admittedOf()),
			await rig.jobs.submit(admittedOf()),
		];
		await called(rig, 1);
		const closed = rig.jobs.close(60_000);
		expect(await rig.jobs.cancel(waiting.id, "", OWNER)).toMatchObject({ state: "canceled" });
		expect(await rig.jobs.cancel(running.id, "", OWNER)).toMatchObject({ state: "canceled" });
		await closed;
		expect(await rig.jobs.cancel(late.id, "", OWNER)).toMatchObject({ state: "canceled" });
		expect(await rig.get(late.id)).toMatchObject({ state: "canceled" });
	});

	it("a job that ends while the daemon stops has its own end", async () => {
		const rig = jobsRig();
		const { id } = await rig.jobs.submit(admittedOf());
		await called(rig, 1);
		const closed = rig.jobs.close(60_000);
		rig.calls[0]!.answer();
		await closed;
		expect(await rig.get(id)).toMatchObject({ state: "completed" });
	});
});
