/** Streams of remote procedures: they follow logs, end as their close mode says, and a cut is never an end. */

import { connect, constants } from "node:http2";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import {
	Health,
	HealthCheckResponse_ServingStatus as Status,
} from "../../../packages/client/src/gen/grpc/health/v1/health_pb.ts";
import { RuntimeAiService } from "../../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { RuntimeAuditService } from "../../../packages/client/src/gen/nexus/runtime/v1/audit_pb.ts";
import { RuntimeMemoryService } from "../../../packages/client/src/gen/nexus/runtime/v1/memory_pb.ts";
import { NexusError } from "../../../packages/protocol/src/protocol.ts";
import { manualClock } from "../../clock.ts";
import { waitFor, watchCursors } from "../rig.ts";
import { strings, textLog, textRecord } from "./fake-methods.ts";
import { errorOf, healthFeed, kitForTest, PROTOCOLS, readStream, statusOf } from "./kit.ts";
import { callHeaders, readingRun, STREAM_SCENARIO } from "./raw.ts";

vi.mock("../../../packages/daemon/src/services/scenarios/rpc.ts", () => import("./fake-methods.ts"));
vi.mock("../../../packages/daemon/src/services/jobs/rpc.ts", () => import("./fake-methods.ts"));
vi.mock("../../../packages/daemon/src/services/audit/rpc.ts", () => import("./fake-methods.ts"));
vi.mock("../../../packages/daemon/src/services/memory/rpc.ts", () => import("./fake-methods.ts"));

const STOPPED = { code: "Canceled", reason: "REASON_CODE_STOPPING" };
const TURNED_AWAY = { code: "Unavailable", reason: "REASON_CODE_STOPPING" };

/** A call whose client does not read the answer. */
function openRaw(url: string, runId: string) {
	const session = connect(url);
	onTestFinished(() => session.destroy());
	const stream = session.request(callHeaders(STREAM_SCENARIO, new URL(url).host));
	stream.on("error", () => {});
	stream.end(readingRun(runId));
	return { session, stream };
}

beforeEach(() => {
	strings.recall = () => {};
	strings.eof = Promise.resolve();
});

it.each(PROTOCOLS)(
	"R4-63, I4: %s follows a log, ends with OK after its terminal, and resumes after a sequence",
	async (protocol) => {
		const { rig, client } = await kitForTest();
		const log = await textLog(rig.bus, "s1", "a", "b");
		const ai = client(RuntimeAiService, protocol);
		const reading = readStream(ai.streamScenario({ runId: "s1" }), ({ textDelta }) => {
			if (textDelta === "b") log.append(textRecord("c"));
			if (textDelta === "c") void log.seal([textRecord("", true)]);
		});
		const { messages, error } = await reading;
		expect(error).toBeUndefined();
		expect(messages.map(({ sequence, textDelta, done }) => [Number(sequence), textDelta, done])).toEqual([
			[1, "a", false],
			[2, "b", false],
			[3, "c", false],
			[4, "", true],
		]);
		const again = await readStream(ai.streamScenario({ runId: "s1", after: 3n }));
		expect(again.messages.map(({ sequence }) => Number(sequence))).toEqual([4]);
		expect(rig.bus.stats.cursors).toBe(0);
		await waitFor(() => rig.edge.stats().grpcStreams === 0);
	},
);

it.each(PROTOCOLS)(
	"P5.7: %s sends the headers before the first message, so that a subscriber knows that it is one",
	async (protocol) => {
		const { client } = await kitForTest();
		const abort = new AbortController();
		const established = Promise.withResolvers<void>();
		const onHeader = () => established.resolve();
		const reading = readStream(
			client(RuntimeMemoryService, protocol).subscribeMemoryEvents({}, { signal: abort.signal, onHeader }),
			() => abort.abort(),
		);
		await established.promise;
		expect(strings.subscribed).toBe(1);
		for (const tell of strings.tell) tell("b1");
		expect((await reading).messages.map(({ bank, sequence }) => [bank, sequence])).toEqual([["b1", 1n]]);
		await waitFor(() => strings.subscribed === 0);
	},
);

it.each(PROTOCOLS)(
	"P8.3, Z5: over %s a deadline and a log that cannot be read have their own statuses",
	async (protocol) => {
		const { rig, client } = await kitForTest();
		const ai = client(RuntimeAiService, protocol);
		await textLog(rig.bus, "s1", "a");
		const late = await readStream(ai.streamScenario({ runId: "s1" }, { timeoutMs: 100 }));
		expect(late.messages.length).toBeLessThanOrEqual(1);
		expect(late.error?.code).toBe(4);
		await waitFor(() => rig.bus.stats.cursors === 0);
		const cursorOf = rig.bus.cursor.bind(rig.bus);
		rig.bus.cursor = async (...source) => {
			const cursor = await cursorOf(...source);
			let reads = 0;
			const next = cursor.next.bind(cursor);
			cursor.next = () => {
				if (reads++ > 0) throw new NexusError("data_loss", "record 2 is damaged");
				return next();
			};
			return cursor;
		};
		const damaged = await readStream(ai.streamScenario({ runId: "s1" }));
		expect(damaged.messages).toHaveLength(1);
		expect(statusOf(damaged.error)).toEqual({ code: "DataLoss", reason: "REASON_CODE_DATA_LOSS" });
	},
);

it("P8.6, Z6, K-DAEMON-003, R4-23, R4-46: stopping tells the health streams, cancels B and D, lets A and C end, and turns new work away", async () => {
	const { set, health } = healthFeed();
	const { rig, client } = await kitForTest({ deps: { health } });
	const run = await textLog(rig.bus, "a1", "a");
	await textLog(rig.bus, "b1", "b");
	const eof = Promise.withResolvers<void>();
	strings.eof = eof.promise;
	const ai = client(RuntimeAiService);
	const probe = client(Health);
	const audit = client(RuntimeAuditService);
	const memory = client(RuntimeMemoryService);
	let begun = 0;
	const begin = () => void begun++;
	const a = readStream(ai.streamScenario({ runId: "a1" }), begin);
	const b = readStream(ai.subscribeScenarioJobEvents({ jobId: "b1" }), begin);
	const liar = readStream(ai.subscribeScenarioJobEvents({ jobId: "liar" }), begin);
	const c = readStream(audit.exportAuditEvents({}), begin);
	const d = readStream(memory.subscribeMemoryEvents({}, { onHeader: begin }));
	const watched = readStream(probe.watch({}), begin);
	await waitFor(() => begun === 6);

	set("STOPPING");
	await rig.edge.stop();
	expect(statusOf((await b).error)).toEqual(STOPPED);
	expect((await b).messages).toHaveLength(1);
	expect(statusOf((await liar).error), "Z7: a method that returns at a cut").toEqual(STOPPED);
	expect(statusOf((await d).error)).toEqual(STOPPED);
	expect((await watched).messages.map(({ status }) => status)).toEqual([Status.SERVING, Status.NOT_SERVING]);
	expect(statusOf((await watched).error)).toEqual(STOPPED);

	expect((await memory.recall({})).items).toEqual([]);
	expect((await probe.check({})).status).toBe(Status.NOT_SERVING);
	expect(statusOf(await errorOf(memory.retain({})))).toEqual(TURNED_AWAY);
	expect(statusOf((await readStream(ai.streamScenario({ runId: "a1" }))).error)).toEqual(TURNED_AWAY);
	expect(statusOf((await readStream(memory.subscribeMemoryEvents({}))).error)).toEqual(TURNED_AWAY);

	const closed = rig.edge.close(20_000);
	await run.seal([textRecord("", true)]);
	expect((await a).error).toBeUndefined();
	expect((await a).messages.at(-1)?.done).toBe(true);
	eof.resolve();
	expect((await c).error).toBeUndefined();
	expect((await c).messages.at(-1)?.eof).toBe(true);
	await closed;
	await waitFor(() => rig.edge.stats().grpcConnections === 0);
	expect((await errorOf(probe.check({}))).code).toBe(14);
});

it.each(PROTOCOLS)(
	"Z6, Z7: over %s what has not ended by the deadline is cancelled, with its trailers",
	async (protocol) => {
		const { rig, client } = await kitForTest();
		await textLog(rig.bus, "a1", "a");
		const begun = Promise.withResolvers<void>();
		const reading = readStream(client(RuntimeAiService, protocol).streamScenario({ runId: "a1" }), () =>
			begun.resolve(),
		);
		await begun.promise;
		await rig.edge.close(600);
		expect(statusOf((await reading).error)).toEqual(STOPPED);
		expect(rig.bus.stats.cursors).toBe(0);
	},
);

it("P8.5, Z8, I6, R4-56: a reader that takes nothing is read for by one batch, and then reset: RESOURCE_EXHAUSTED", async () => {
	const clock = manualClock();
	const { rig, grpcUrl } = await kitForTest({ clock, limits: { stalledReaderMs: 4000 } });
	const cursors = watchCursors(rig.bus);
	const log = await textLog(rig.bus, "s1", "first");
	const { stream } = openRaw(grpcUrl, "s1");
	await waitFor(() => cursors.length === 1);
	const big = "x".repeat(16 * 1024);
	const fill = async () => {
		for (let at = 0; at < 64; at++) {
			log.append(textRecord(big));
			if (log.crowded) await log.room();
		}
		await log.flushed();
	};
	await fill();
	let offset = 0;
	await waitFor(() => {
		const isSame = offset > 1 && offset === cursors[0]!.offset;
		offset = cursors[0]!.offset;
		return isSame;
	});
	await fill();
	expect(cursors[0]!.offset).toBe(offset);
	expect(offset).toBeLessThan(log.offset);
	clock.advance(4000);
	expect(rig.edge.stats().stalledReaders).toBe(0);
	clock.advance(1000);
	expect(rig.edge.stats()).toMatchObject({ stalledReaders: 1, grpcStreams: 0 });
	await waitFor(() => rig.bus.stats.cursors === 0);
	// A client of gRPC makes RESOURCE_EXHAUSTED of it.
	await waitFor(() => stream.rstCode === constants.NGHTTP2_ENHANCE_YOUR_CALM);
});

it("Z13: a stream beyond the limit of all streams is RESOURCE_EXHAUSTED, whatever the wire of the others", async () => {
	const { rig, client } = await kitForTest({ limits: { streamsMax: 2 } });
	await textLog(rig.bus, "s1", "a");
	const abort = new AbortController();
	const sse = await rig.get("/v1/sessions/s/stream");
	const first = Promise.withResolvers<void>();
	const open = readStream(client(RuntimeAiService).streamScenario({ runId: "s1" }, { signal: abort.signal }), () =>
		first.resolve(),
	);
	await first.promise;
	const { error } = await readStream(client(RuntimeAiService, "connect").streamScenario({ runId: "s1" }));
	expect(statusOf(error)).toEqual({ code: "ResourceExhausted", reason: "REASON_CODE_BUSY" });
	expect((await rig.get("/v1/sessions/s/stream")).status).toBe(429);
	abort.abort();
	await open;
	await sse.body?.cancel();
});

it("a client that goes away lets go of its cursor", async () => {
	const { rig, grpcUrl } = await kitForTest();
	await textLog(rig.bus, "s1", "a");
	const { session } = openRaw(grpcUrl, "s1");
	await waitFor(() => rig.bus.stats.cursors === 1);
	session.destroy();
	await waitFor(() => rig.bus.stats.cursors === 0 && rig.edge.stats().grpcStreams === 0);
});
