/** Limits of callers without a token on the gRPC port (I11): a few streams, small bodies, and no connection of the owner. */

import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { gzipSync } from "node:zlib";
import { expect, it, onTestFinished } from "vitest";
import { Health } from "../../../packages/client/src/gen/grpc/health/v1/health_pb.ts";
import { manualClock } from "../../clock.ts";
import { CERT, KEY } from "../../runtime/certificate.ts";
import { BEARER, waitFor } from "../rig.ts";
import { type GrpcKitOptions, kitForTest } from "./kit.ts";

const CHECK = "/grpc.health.v1.Health/Check";
const RECALL = "/nexus.runtime.v1.RuntimeMemoryService/Recall";
const CALM = constants.NGHTTP2_ENHANCE_YOUR_CALM;

async function start(options?: GrpcKitOptions) {
	const kit = await kitForTest(options);
	const session = (): ClientHttp2Session => {
		const opened = connect(kit.grpcUrl, { rejectUnauthorized: false });
		opened.on("error", () => {});
		onTestFinished(() => opened.destroy());
		return opened;
	};
	return { ...kit, session, stats: () => kit.rig.edge.stats() };
}

interface Call {
	stream: ClientHttp2Stream;
	/** The gRPC status, once it is known. */
	status(): string | undefined;
	/** The status of gRPC, or the code of the reset. */
	ended: Promise<string | number>;
}

/** A call whose body is what the test writes. */
function open(session: ClientHttp2Session, path: string, headers: Record<string, string> = {}): Call {
	const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc", ...headers });
	let status: string | undefined;
	stream.on("response", (got) => (status = got["grpc-status"] as string | undefined));
	stream.on("trailers", (got) => (status = got["grpc-status"] as string | undefined));
	stream.on("error", () => {});
	stream.resume();
	const ended = new Promise<string | number>((resolve) => stream.on("close", () => resolve(status ?? stream.rstCode)));
	return { stream, ended, status: () => status };
}

const EMPTY = Buffer.alloc(5);
/** Answered with a status, or how it was cut. */
const whole = (session: ClientHttp2Session, path: string, headers?: Record<string, string>) => {
	const { stream, ended } = open(session, path, headers);
	stream.end(EMPTY);
	return ended;
};

it("P8.5: of the calls whose bodies do not end the oldest are cut, and the owner is answered", async () => {
	const { session, stats } = await start({ limits: { tokenlessRequestsPerClientMax: 3 } });
	const stranger = session();
	const calls = Array.from({ length: 10 }, () => open(stranger, CHECK));
	expect(await Promise.all(calls.slice(0, 7).map(({ ended }) => ended))).toEqual(Array(7).fill(CALM));
	expect(stats().tokenlessRefused).toBe(7);
	expect(calls.slice(7).map(({ stream }) => stream.closed)).toEqual([false, false, false]);
	expect(await whole(session(), RECALL, BEARER)).toBe("0");
	expect(await whole(stranger, CHECK)).toBe("0");
});

it("P8.5: a body that is late, large or compressed is refused", async () => {
	const clock = manualClock(1000);
	const { session } = await start({ clock });
	const stranger = session();
	expect(await whole(stranger, CHECK)).toBe("0");
	const late = open(stranger, CHECK);
	late.stream.write(EMPTY.subarray(0, 3));
	// A later call is answered, so the daemon is waiting for the body of the first.
	expect(await whole(stranger, CHECK)).toBe("0");
	clock.advance(5000);
	await waitFor(() => late.status() === "4");
	// The daemon does not wait for the rest of its body.
	clock.advance(1000);
	await late.ended;
	const large = open(stranger, CHECK);
	large.stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0x20, 0]), Buffer.alloc(8192)]));
	expect(await large.ended).toBe("8");
	const packed = gzipSync(Buffer.alloc(1000));
	const compressed = open(stranger, CHECK, { "grpc-encoding": "gzip" });
	compressed.stream.end(Buffer.concat([Buffer.from([1, 0, 0, 0, packed.length]), packed]));
	expect(await compressed.ended).toBe("3");
});

it("P8.5: long headers are for callers with a token", async () => {
	const { session } = await start();
	const long = { "x-long": "x".repeat(5000) };
	expect(await whole(session(), CHECK, long)).toBe(CALM);
	expect(await whole(session(), RECALL, { ...long, ...BEARER })).toBe("0");
});

it("P8.5: an address with too many calls is refused for a while; with the token it is answered", async () => {
	const limits = { tokenlessCallsPerSecondMax: 5, tokenlessRefusedMs: 500 };
	const { session, stats } = await start({ limits });
	const owner = session();
	expect(await whole(owner, RECALL, BEARER)).toBe("0");
	const stranger = session();
	const gone = new Promise<void>((resolve) => stranger.on("close", () => resolve()));
	for (let i = 0; i < 40; i++) open(stranger, CHECK).stream.close(constants.NGHTTP2_CANCEL);
	await gone;
	expect(stats().tokenlessRefused).toBeGreaterThan(0);
	expect(await whole(owner, RECALL, BEARER)).toBe("0");
	expect(await whole(session(), RECALL, BEARER)).toBe("0");
	// The time of the refusal passes.
	await waitFor(async () => (await whole(session(), CHECK)) === "0");
});

it("P8.5: calls without a token on the owner's connection are refused one by one", async () => {
	const { session } = await start({ limits: { tokenlessCallsPerSecondMax: 5, tokenlessRefusedMs: 60_000 } });
	const shared = session();
	expect(await whole(shared, RECALL, BEARER)).toBe("0");
	const ends: (string | number)[] = [];
	for (let i = 0; i < 20; i++) ends.push(await whole(shared, CHECK));
	expect(new Set(ends)).toEqual(new Set(["0", CALM]));
	expect(await whole(shared, RECALL, BEARER)).toBe("0");
});

it("P8.5: behind a trusted proxy each client is refused for itself", async () => {
	const { session } = await start({
		limits: { tokenlessCallsPerSecondMax: 5, tokenlessRefusedMs: 60_000 },
		deps: { trustedProxies: ["127.0.0.1"] },
	});
	const proxy = session();
	const from = (address: string) => whole(proxy, CHECK, { "x-forwarded-for": address });
	const ends: (string | number)[] = [];
	for (let i = 0; i < 20; i++) ends.push(await from("1.2.3.4"));
	expect(ends.at(-1)).toBe(CALM);
	expect(await from("5.6.7.8")).toBe("0");
});

it("P8.5: connections that send nothing keep the owner's out neither in clear text nor with TLS", async () => {
	for (const tls of [undefined, { cert: CERT, key: KEY }]) {
		const limits = { tokenlessConnectionsMax: 3, tokenlessConnectionsPerClientMax: 2 };
		const { session, stats } = await start({ limits, tls });
		const idle = Array.from({ length: 6 }, session);
		await waitFor(() => stats().grpcConnections === idle.length);
		expect(await whole(session(), RECALL, BEARER)).toBe("0");
	}
});

it("P6.13: wrong tokens are counted here, too, and answered late after too many", async () => {
	const clock = manualClock(1_000_000);
	const { session, stats, client } = await start({ clock, limits: { tokenFailuresPerMinuteMax: 2 } });
	const stranger = session();
	const guess = () => whole(stranger, RECALL, { authorization: "Bearer guess" });
	expect([await guess(), await guess()]).toEqual(["16", "16"]);
	const late = open(stranger, RECALL, { authorization: "Bearer guess" });
	await waitFor(() => stats().tokenFailures === 3);
	expect((await client(Health).check({})).status).toBe(1);
	expect(late.stream.closed).toBe(false);
	clock.advance(1000);
	expect(await late.ended).toBe("16");
});
