/** A call whose request does not arrive, or whose client takes no byte of the answer, loses its place (P6.15, P8.5). */

import { constants } from "node:http2";
import { Code } from "@connectrpc/connect";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { RuntimeMemoryService } from "../../../packages/client/src/gen/nexus/runtime/v1/memory_pb.ts";
import { type ManualClock, manualClock } from "../../clock.ts";
import { TOKEN, waitFor } from "../rig.ts";
import { strings, textLog, textRecord } from "./fake-methods.ts";
import { errorOf, type GrpcKit, kitForTest, PROTOCOLS, statusOf } from "./kit.ts";
import { callHeaders, END_STREAM, FRAME, framed, type RawHttp2, rawHttp2, readingRun, STREAM_SCENARIO } from "./raw.ts";

vi.mock("../../../packages/daemon/src/services/scenarios/rpc.ts", () => import("./fake-methods.ts"));
vi.mock("../../../packages/daemon/src/services/audit/rpc.ts", () => import("./fake-methods.ts"));
vi.mock("../../../packages/daemon/src/services/memory/rpc.ts", () => import("./fake-methods.ts"));

const SERVICES = "/nexus.runtime.v1";
const EXPORT = `${SERVICES}.RuntimeAuditService/ExportAuditEvents`;
const RECALL = `${SERVICES}.RuntimeMemoryService/Recall`;
const WATCH = "/grpc.health.v1.Health/Watch";
const EMPTY = framed(new Uint8Array());

let clock: ManualClock;
beforeEach(() => {
	clock = manualClock();
	strings.recall = () => {};
	strings.eof = Promise.resolve();
});

async function start(windowBytes: number): Promise<{ kit: GrpcKit; raw: RawHttp2 }> {
	const limits = { stalledReaderMs: 4000, requestTimeoutMs: 1000, heartbeatMs: 1_000_000 };
	const kit = await kitForTest({ clock, limits });
	const raw = rawHttp2(kit.grpcTarget, windowBytes);
	onTestFinished(() => raw.destroy());
	return { kit, raw };
}

const call = (raw: RawHttp2, kit: GrpcKit, stream: number, path: string, body = EMPTY, end = true) =>
	raw.request(stream, callHeaders(path, kit.grpcTarget), body, end);

/** The code of the reset that a stream got. */
const resetOf = (raw: RawHttp2, stream: number): number | undefined =>
	raw
		.of(stream)
		.find(({ type }) => type === FRAME.reset)
		?.payload.readUInt32BE();

const hasHeaders = (raw: RawHttp2, stream: number) => raw.of(stream).some(({ type }) => type === FRAME.headers);

it("P8.2: an unknown method or service is one frame of headers that ends the stream: UNIMPLEMENTED, Trailers-Only", async () => {
	const { kit, raw } = await start(65_535);
	call(raw, kit, 1, `${SERVICES}.RuntimeAiService/Nothing`);
	call(raw, kit, 3, "/nexus.runtime.v1.Absent/Nothing");
	for (const stream of [1, 3]) {
		await waitFor(() => hasHeaders(raw, stream));
		const frames = raw.of(stream);
		expect(frames.map(({ type }) => type)).toEqual([FRAME.headers]);
		expect(frames[0]!.flags & END_STREAM).toBe(END_STREAM);
	}
});

it("P8.5: who takes no byte is reset, though all of it fits the buffers: a feed, an export that has ended, an answer", async () => {
	const { kit, raw } = await start(0);
	const calls = [WATCH, EXPORT, `${SERVICES}.RuntimeMemoryService/Recall`];
	for (const [n, path] of calls.entries()) call(raw, kit, 1 + 2 * n, path);
	await waitFor(() => calls.every((_, n) => hasHeaders(raw, 1 + 2 * n)));
	expect(kit.rig.edge.stats().grpcStreams).toBe(2);
	for (let sweeps = 0; sweeps < 4; sweeps++) clock.advance(1000);
	expect(kit.rig.edge.stats().stalledReaders).toBe(0);
	clock.advance(1000);
	expect(kit.rig.edge.stats()).toMatchObject({ stalledReaders: 3, grpcStreams: 0 });
	await waitFor(() => calls.every((_, n) => resetOf(raw, 1 + 2 * n) === constants.NGHTTP2_ENHANCE_YOUR_CALM));
});

it("P8.5: a slow reader that does read is not cut, however small its steps; once it stops, it is", async () => {
	const { kit, raw } = await start(300);
	const log = await textLog(kit.rig.bus, "s1");
	for (let n = 0; n < 40; n++) log.append(textRecord("x".repeat(16_000)));
	await log.flushed();
	const body = readingRun("s1");
	call(raw, kit, 1, STREAM_SCENARIO, body);
	const taken = () =>
		raw
			.of(1)
			.filter(({ type }) => type === FRAME.data)
			.reduce((sum, { payload }) => sum + payload.length, 0);
	let granted = 300;
	await waitFor(() => taken() === granted);
	for (let sweeps = 0; sweeps < 20; sweeps++) {
		raw.grant(1, 300);
		granted += 300;
		await waitFor(() => taken() === granted);
		clock.advance(1000);
	}
	expect(kit.rig.edge.stats()).toMatchObject({ stalledReaders: 0, grpcStreams: 1 });
	for (let sweeps = 0; sweeps < 5; sweeps++) clock.advance(1000);
	expect(kit.rig.edge.stats()).toMatchObject({ stalledReaders: 1, grpcStreams: 0 });
});

it("P8.5: one stream that is not read is cut, though another one of its connection moves", async () => {
	const { kit, raw } = await start(0);
	const log = await textLog(kit.rig.bus, "s1", "first");
	const body = readingRun("s1");
	call(raw, kit, 1, STREAM_SCENARIO, body);
	call(raw, kit, 3, STREAM_SCENARIO, body);
	raw.grant(3, 60_000);
	const read = () => raw.of(3).filter(({ type }) => type === FRAME.data).length;
	for (let sweeps = 0; sweeps < 6; sweeps++) {
		const before = read();
		log.append(textRecord("more"));
		await waitFor(() => read() > before);
		clock.advance(1000);
	}
	await waitFor(() => resetOf(raw, 1) === constants.NGHTTP2_ENHANCE_YOUR_CALM);
	expect(kit.rig.edge.stats()).toMatchObject({ stalledReaders: 1, grpcStreams: 1 });
	expect(resetOf(raw, 3)).toBeUndefined();
});

it.each([RECALL, STREAM_SCENARIO, `${SERVICES}.RuntimeAiService/Nothing`])(
	"P6.15: a request to %s that is not whole in time is DEADLINE_EXCEEDED, and its place is free",
	async (path) => {
		const { kit, raw } = await start(65_535);
		// A message of ten bytes, of which two come.
		call(raw, kit, 1, path, Buffer.from([0, 0, 0, 0, 10, 1, 2]), false);
		// The answer to the other one says that this one has arrived, too.
		call(raw, kit, 3, RECALL);
		await waitFor(() => hasHeaders(raw, 3));
		clock.advance(1000);
		await waitFor(() => resetOf(raw, 1) !== undefined);
		const [headers] = raw.of(1);
		expect([headers!.type, headers!.flags & END_STREAM]).toEqual([FRAME.headers, END_STREAM]);
		expect(resetOf(raw, 1)).toBe(constants.NGHTTP2_NO_ERROR);
		await waitFor(() => kit.rig.edge.stats().grpcStreams === 0);
	},
);

it.each(PROTOCOLS)("P8.3: over %s a unary call keeps its caller's deadline", async (protocol) => {
	const kit = await kitForTest();
	const called = Promise.withResolvers<void>();
	const finish = Promise.withResolvers<void>();
	strings.recall = () => {
		called.resolve();
		return finish.promise;
	};
	const late = errorOf(kit.client(RuntimeMemoryService, protocol, TOKEN).recall({}, { headers: timeoutOf(protocol) }));
	await called.promise;
	expect(statusOf(await late)).toEqual({ code: Code[Code.DeadlineExceeded], reason: "REASON_CODE_TIMEOUT" });
	finish.resolve();
});

/** A deadline that only the daemon knows of: the client would keep its own. */
const timeoutOf = (protocol: (typeof PROTOCOLS)[number]): Record<string, string> =>
	protocol === "connect" ? { "connect-timeout-ms": "50" } : { "grpc-timeout": "50m" };
