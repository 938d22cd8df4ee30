/** Streams across cuts, by close mode: every event once and in order, wherever and however often the connection breaks. */

import { Code } from "@connectrpc/connect";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	bytesOf,
	lastOf,
	outcomeOf,
	ReasonCode,
	type Runtime,
} from "../../packages/client/src/runtime/runtime-client.ts";
import { atEffort } from "../effort.ts";
import { type Cut, type FakeDaemon, fakeDaemon, RUN } from "./fake-daemon.ts";
import "../seed.ts";

const LENGTH = 5;
const CUT_CODES = [Code.Canceled, Code.Unavailable, Code.ResourceExhausted, Code.Unknown, Code.Aborted, undefined];

const cuts = fc.array(
	fc.record({ messages: fc.integer({ min: 0, max: LENGTH }), code: fc.constantFrom(...CUT_CODES) }),
	{ maxLength: 6 },
);

const scenario = { head: { appId: "app" }, spec: { case: "textGenerate", value: {} } } as const;

type Reads = (runtime: Runtime) => AsyncIterable<{ sequence: bigint } | { lastAuditSequence: bigint }>;
const READS: Record<"A" | "B" | "C", Reads> = {
	A: ({ ai }) => ai.streamScenario({ scenario }),
	B: ({ ai }) => ai.subscribeScenarioJobEvents({ jobId: "job_1", after: 0n }),
	C: ({ audit }) => audit.exportAuditEvents({}),
};

const sequenceOf = (event: Awaited<ReturnType<typeof lastOf<{ sequence: bigint } | { lastAuditSequence: bigint }>>>) =>
	Number("lastAuditSequence" in event ? event.lastAuditSequence : event.sequence);

async function sequences(stream: ReturnType<Reads>, count = Number.POSITIVE_INFINITY): Promise<number[]> {
	const seen: number[] = [];
	for await (const event of stream) {
		seen.push(sequenceOf(event));
		if (seen.length === count) break;
	}
	return seen;
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

/** A clean close without the terminal may repeat only so often before it counts as a fault for good. */
const inBounds = (all: readonly Cut[]) => all.filter(({ code }) => code === undefined).length <= 5;

describe("runtime client: modes with a terminal", () => {
	for (const mode of ["A", "B", "C"] as const) {
		it(`K-STREAM-001: mode ${mode}: for all cuts a reader sees every event once, in order, and then the end`, async () => {
			await fc.assert(
				fc.asyncProperty(cuts.filter(inBounds), async (drawn) => {
					const daemon = fakeDaemon({ cuts: drawn, length: LENGTH });
					expect(await sequences(READS[mode](daemon.runtime))).toEqual(upTo(LENGTH));
					expect(daemon.executions.size).toBe(mode === "A" ? 1 : 0);
				}),
				{ numRuns: atEffort(1000) },
			);
		});
	}

	it("R4-58: before the first packet the same key is sent again, after it the run is read, never executed", async () => {
		const daemon = fakeDaemon({
			cuts: [
				{ messages: 0, code: Code.Unavailable },
				{ messages: 2, code: Code.Canceled, reason: "STOPPING" },
			],
		});
		await sequences(READS.A(daemon.runtime));
		const [first, second, third] = daemon.asked;
		expect(first!.idempotencyKey).not.toBe("");
		expect(second).toMatchObject({ idempotencyKey: first!.idempotencyKey, runId: "" });
		expect(third).toMatchObject({ runId: RUN, after: 2n, idempotencyKey: "" });
		expect(daemon.executions.size).toBe(1);
	});

	it("Z15: the caller's own key is kept; a run that is read again has none", async () => {
		const daemon = fakeDaemon();
		await sequences(daemon.runtime.ai.streamScenario({ scenario, idempotencyKey: "mine" }));
		expect(daemon.asked[0]!.idempotencyKey).toBe("mine");
		expect(await sequences(daemon.runtime.ai.streamScenario({ runId: RUN, after: 3n }))).toEqual([4, 5]);
		expect(daemon.asked[1]!.idempotencyKey).toBe("");
	});

	it("R4-50: a subscription to a job without a position resumes after the last event", async () => {
		const daemon = fakeDaemon({ cuts: [{ messages: 3, code: Code.Canceled, reason: "STOPPING" }] });
		expect(await sequences(daemon.runtime.ai.subscribeScenarioJobEvents({ jobId: "job_1" }))).toEqual(upTo(LENGTH));
		expect(daemon.asked.map(({ after }) => after)).toEqual([undefined, 3n]);
	});

	it("R4-50: where the position is not kept any more, the current snapshot takes its place", async () => {
		const daemon = fakeDaemon({
			cuts: [
				{ messages: 2, code: Code.Unavailable },
				{ messages: 0, code: Code.OutOfRange, reason: "EXPIRED" },
			],
		});
		expect((await sequences(daemon.runtime.ai.subscribeScenarioJobEvents({ jobId: "job_1" }))).at(-1)).toBe(LENGTH);
		expect(daemon.asked.map(({ after }) => after)).toEqual([undefined, 2n, undefined]);
	});

	it("a position that the caller gave and that is gone is the caller's error", async () => {
		const daemon = fakeDaemon({ cuts: [{ messages: 0, code: Code.OutOfRange, reason: "EXPIRED" }] });
		const reading = sequences(daemon.runtime.ai.subscribeScenarioJobEvents({ jobId: "job_1", after: 1n }));
		await expect(reading).rejects.toMatchObject({ code: Code.OutOfRange });
	});

	it("R4-53: a close without eof is incomplete: the export resumes after its last event", async () => {
		const daemon = fakeDaemon({ cuts: [{ messages: 2, code: undefined }] });
		const bytes = await bytesOf(daemon.runtime.audit.exportAuditEvents({}));
		expect(new TextDecoder().decode(bytes)).toBe("1\n2\n3\n4\n");
		expect(daemon.asked.map(({ after }) => after)).toEqual([undefined, 2n]);
	});

	it("K-STREAM-003: an outcome is one value, with the text of all connections", async () => {
		const daemon = fakeDaemon({ cuts: [{ messages: 2, code: Code.Unknown }] });
		const answer = await outcomeOf(daemon.runtime.ai.streamScenario({ scenario }));
		expect(answer).toMatchObject({ runId: RUN, text: "1 2 3 4 5 ", reasonCode: ReasonCode.UNSPECIFIED });
		expect(answer.usage).toMatchObject({ inputTokens: -1n });
	});

	it("K-STREAM-005: the last event of a job is its terminal snapshot", async () => {
		const { runtime } = fakeDaemon();
		const { job } = await lastOf(runtime.ai.subscribeScenarioJobEvents({ jobId: "job_1" }));
		expect(job!.progressPercent).toBe(LENGTH);
	});

	it("a stream that closes cleanly without its terminal again and again is given up", async () => {
		const daemon = fakeDaemon({ cuts: Array.from({ length: 9 }, () => ({ messages: 0, code: undefined })) });
		await expect(sequences(READS.A(daemon.runtime))).rejects.toMatchObject({ code: Code.Internal });
		expect(daemon.asked).toHaveLength(6);
	});
});

describe("runtime client: mode D", () => {
	it("K-STREAM-010, R4-22, R4-25, R4-26: for all cuts a log resumes after the last sequence, without waiting for a terminal", async () => {
		await fc.assert(
			fc.asyncProperty(cuts, async (drawn) => {
				const withCode = drawn.filter(({ code }) => code !== undefined);
				const daemon = fakeDaemon({ cuts: withCode, length: LENGTH });
				const reading = daemon.runtime.realtime.readRealtimeEvents({ realtimeSessionId: "rt_1", after: 0n });
				expect(await sequences(reading, LENGTH)).toEqual(upTo(LENGTH));
			}),
			{ numRuns: atEffort(500) },
		);
	});

	it("K-STREAM-010: a feed begins again with the current state", async () => {
		const daemon = fakeDaemon({ cuts: [{ messages: 2, code: Code.Canceled, reason: "STOPPING" }], length: 3 });
		const reading = daemon.runtime.accounts.subscribeAccountSessionEvents({});
		expect(await sequences(reading, 5)).toEqual([1, 2, 1, 2, 3]);
	});

	it("Z3: a reader from now on that is cut before its first event misses nothing", async () => {
		const daemon = fakeDaemon({ cuts: [{ messages: 0, code: Code.Unavailable }], now: 2n });
		expect(await sequences(daemon.runtime.realtime.readRealtimeEvents({ realtimeSessionId: "rt_1" }), 3)).toEqual([
			3, 4, 5,
		]);
		expect(daemon.asked.map(({ after }) => after)).toEqual([undefined, 2n]);
	});

	it("Z21: a clean close ends a realtime session's events", async () => {
		const daemon = fakeDaemon({ closesD: true });
		const reading = daemon.runtime.realtime.readRealtimeEvents({ realtimeSessionId: "rt_1", after: 2n });
		expect(await sequences(reading)).toEqual([3, 4, 5]);
	});
});

describe("runtime client: what it tells and when it stops", () => {
	const twoOutages: Cut[] = [
		{ messages: 1, code: Code.Canceled, reason: "STOPPING" },
		{ messages: 0, code: Code.Unavailable },
		{ messages: 0, code: Code.Unknown },
		{ messages: 1, code: Code.ResourceExhausted },
	];

	it("S-RUNTIME-028, R4-24: one runtime.disconnected and one runtime.reconnected for each outage, with the status", async () => {
		const daemon: FakeDaemon = fakeDaemon({ cuts: twoOutages });
		await sequences(READS.A(daemon.runtime));
		const where = { procedure: "nexus.runtime.v1.RuntimeAiService/StreamScenario", closes: "A" };
		expect(daemon.events).toMatchObject([
			{ type: "runtime.disconnected", ...where, code: Code.Canceled, reasonCode: ReasonCode.STOPPING },
			{ type: "runtime.reconnected", ...where, attempts: 3 },
			{ type: "runtime.disconnected", ...where, code: Code.ResourceExhausted, reasonCode: ReasonCode.UNSPECIFIED },
			{ type: "runtime.reconnected", ...where, attempts: 1 },
		]);
		expect(daemon.waits).toEqual([250, 500, 1000, 250]);
	});

	it("K-STREAM-002: a refusal is thrown at once and does not count as an outage", async () => {
		const daemon = fakeDaemon({ cuts: [{ messages: 0, code: Code.NotFound, reason: "AI_CONNECTOR_NOT_FOUND" }] });
		await expect(sequences(READS.A(daemon.runtime))).rejects.toMatchObject({ code: Code.NotFound });
		expect(daemon.asked).toHaveLength(1);
		expect(daemon.events).toEqual([]);
	});

	it("a call gives up when the daemon is silent for too long; a subscription does not", async () => {
		const gone: Cut[] = Array.from({ length: 200 }, () => ({ messages: 0, code: Code.Unavailable }));
		const call = fakeDaemon({ cuts: gone }, { limits: { giveUpMs: 10_000 } });
		await expect(sequences(READS.A(call.runtime))).rejects.toMatchObject({ code: Code.Unavailable });
		expect(call.asked.length).toBeLessThan(20);
		const subscription = fakeDaemon({ cuts: gone }, { limits: { giveUpMs: 10_000 } });
		expect(await sequences(READS.B(subscription.runtime))).toEqual(upTo(LENGTH));
	});

	it("close() ends subscriptions, and fails what has not ended", async () => {
		const daemon = fakeDaemon({ length: 2 });
		const seen: number[] = [];
		for await (const { sequence } of daemon.runtime.accounts.subscribeAccountSessionEvents({})) {
			if (seen.push(Number(sequence)) === 2) setImmediate(() => daemon.runtime.close());
		}
		expect(seen).toEqual([1, 2]);
		await expect(sequences(READS.A(daemon.runtime))).rejects.toMatchObject({ code: "aborted" });
		await expect(daemon.runtime.ai.getScenarioJob({ jobId: "job_1" })).rejects.toMatchObject({ code: "aborted" });
	});

	it("a caller's signal ends its stream with its reason, also in mode D", async () => {
		const daemon = fakeDaemon({ length: 1 });
		const leaving = new AbortController();
		const reading = async () => {
			const stream = daemon.runtime.accounts.subscribeAccountSessionEvents({}, { signal: leaving.signal });
			for await (const _ of stream) setImmediate(() => leaving.abort(new Error("enough")));
		};
		await expect(reading()).rejects.toThrow("enough");
	});
});

describe("runtime client: unary calls", () => {
	it("carry the token, and a header of the caller", async () => {
		const daemon = fakeDaemon();
		await sequences(READS.A(daemon.runtime));
		await sequences(daemon.runtime.ai.streamScenario({ scenario }, { headers: { authorization: "Bearer other" } }));
		expect(daemon.authorizations).toEqual(["Bearer secret", "Bearer other"]);
	});

	it("Z15: one that would execute is made again with the same key after a cut; another is not", async () => {
		const cut = [{ messages: 0, code: Code.Unavailable }];
		const daemon = fakeDaemon({ cuts: cut });
		expect(await daemon.runtime.ai.executeScenario({ scenario })).toMatchObject({ text: "once" });
		expect(daemon.executions.size).toBe(1);
		const other = fakeDaemon({ cuts: cut });
		await expect(other.runtime.ai.getScenarioJob({ jobId: "job_1" })).rejects.toMatchObject({ code: Code.Unavailable });
		expect(await other.runtime.ai.getScenarioJob({ jobId: "job_1" })).toMatchObject({ job: { jobId: "job_1" } });
	});
});
