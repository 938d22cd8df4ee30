/** One router on two ports: gRPC on its own, gRPC-web and Connect on the main one. */

import { connect as http2Connect, type Settings } from "node:http2";
import { connect } from "node:net";
import { expect, it } from "vitest";
import {
	Health,
	HealthCheckResponse_ServingStatus as Status,
} from "../../../packages/client/src/gen/grpc/health/v1/health_pb.ts";
import { manualClock } from "../../clock.ts";
import { waitFor } from "../rig.ts";
import { errorOf, healthFeed, kitForTest, PROTOCOLS, statusOf } from "./kit.ts";

it.each(PROTOCOLS)("P8.1, Z11: %s carries a unary call and a stream", async (protocol) => {
	const { set, listeners, health } = healthFeed();
	const kit = await kitForTest({ deps: { health } });
	const client = kit.client(Health, protocol, "");
	expect((await client.check({ service: "" })).status).toBe(Status.SERVING);
	expect(statusOf(await errorOf(client.check({ service: "none" })))).toEqual({
		code: "NotFound",
		reason: "REASON_CODE_NOT_FOUND",
	});
	const abort = new AbortController();
	const seen: number[] = [];
	const reading = (async () => {
		for await (const { status } of client.watch({ service: "" }, { signal: abort.signal })) {
			seen.push(status);
			if (seen.length === 1) set("STOPPING");
			else abort.abort();
		}
	})();
	await expect(reading).rejects.toMatchObject({ code: 1 });
	expect(seen).toEqual([Status.SERVING, Status.NOT_SERVING]);
	await expect.poll(() => listeners.size).toBe(0);
});

it("P8.5, Z13: connections are pinged, and one whose peer does not answer is dropped", async () => {
	const clock = manualClock();
	const kit = await kitForTest({ clock, limits: { heartbeatMs: 1000 } });
	const { port } = new URL(kit.grpcUrl);
	// Says hello and reads, but never answers.
	const mute = connect(Number(port), "127.0.0.1");
	const closed = new Promise<void>((resolve) => mute.on("close", () => resolve()));
	mute.on("error", () => {});
	mute.resume();
	mute.write(
		Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])]),
	);
	const client = kit.client(Health);
	await client.check({});
	await waitFor(() => kit.rig.edge.stats().grpcConnections === 2);
	clock.advance(1000);
	// A client that answers the ping has done so by the end of another call.
	await client.check({});
	clock.advance(1000);
	await closed;
	await client.check({});
	expect(kit.rig.edge.stats().grpcConnections).toBe(1);
});

it("Z13: one address has so many connections, and one connection so many calls", async () => {
	const kit = await kitForTest({ limits: { connectionsPerClientMax: 3, grpcStreamsPerConnectionMax: 7 } });
	const session = http2Connect(kit.grpcUrl);
	const settings = await new Promise<Settings>((resolve) => session.on("remoteSettings", resolve));
	expect(settings).toMatchObject({ maxConcurrentStreams: 7, maxHeaderListSize: 16_384 });
	const others = Array.from({ length: 3 }, () => connect(Number(new URL(kit.grpcUrl).port), "127.0.0.1"));
	await Promise.race(others.map((socket) => new Promise<void>((resolve) => socket.on("close", () => resolve()))));
	expect(kit.rig.edge.stats().grpcConnections).toBe(3);
	for (const socket of others) socket.destroy();
	session.destroy();
});
