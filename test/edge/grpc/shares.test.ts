/** The shares of strangers and of single applications in common resources: streams, time and lines of the log. */

import { connect as connectTls } from "node:tls";
import { expect, it, onTestFinished } from "vitest";
import { Health } from "../../../packages/client/src/gen/grpc/health/v1/health_pb.ts";
import { RuntimeAppService } from "../../../packages/client/src/gen/nexus/runtime/v1/app_pb.ts";
import { type Log, silentLog } from "../../../packages/protocol/src/log.ts";
import { CERT, KEY } from "../../runtime/certificate.ts";
import { OWNER } from "../../services/parts.ts";
import { appMessagesOf } from "../audit-kit.ts";
import { TOKEN, waitFor } from "../rig.ts";
import { errorOf, kitForTest, statusOf } from "./kit.ts";

/** Opens a stream and keeps it; rejects when it is refused. Returns how to leave it. */
async function held(open: (signal: AbortSignal) => AsyncIterable<unknown>): Promise<() => void> {
	const leaving = new AbortController();
	const stream = open(leaving.signal)[Symbol.asyncIterator]();
	await stream.next();
	onTestFinished(() => leaving.abort());
	return () => {
		leaving.abort();
		stream.next().catch(() => {});
	};
}

it("Z12, I11: who has no token opens few streams, and takes none of those who have one", async () => {
	const kit = await kitForTest({ limits: { streamsTokenlessMax: 2, streamsMax: 10 } });
	const stranger = kit.client(Health, "grpc", "");
	const owner = kit.client(Health, "grpc", TOKEN);
	const leave = await held((signal) => stranger.watch({}, { signal }));
	await held((signal) => stranger.watch({}, { signal }));
	const refused = await errorOf(held((signal) => stranger.watch({}, { signal })));
	expect(statusOf(refused)).toEqual({ code: "ResourceExhausted", reason: "REASON_CODE_BUSY" });
	await held((signal) => owner.watch({}, { signal }));
	expect((await stranger.check({})).status).toBe(1);
	leave();
	await waitFor(() => kit.rig.edge.stats().grpcStreams === 2);
	await held((signal) => stranger.watch({}, { signal }));
});

it("Z25, I11: one application's streams leave room for the others'", async () => {
	const kit = await kitForTest({
		limits: { streamsPerAppMax: 1, streamsMax: 10 },
		services: (store) => ({ appMessages: appMessagesOf({ ...store, apps: { has: () => true } }) }),
	});
	const tokenOf = async (id: string) => (await kit.rig.apps.add({ id }, OWNER)).token;
	const [shop, till] = [await tokenOf("shop"), await tokenOf("till")];
	for (const [id, token] of [
		["shop", shop],
		["till", till],
	] as const) {
		const sender = kit.client(RuntimeAppService);
		await sender.sendAppMessage({ fromAppId: "owner", toAppId: id, messageType: "hello" });
		await held((signal) =>
			kit.client(RuntimeAppService, "grpc", token).subscribeAppMessages({ after: 0n }, { signal }),
		);
	}
	const again = held((signal) =>
		kit.client(RuntimeAppService, "connect", shop).subscribeAppMessages({ after: 0n }, { signal }),
	);
	expect(statusOf(await errorOf(again))).toEqual({ code: "ResourceExhausted", reason: "REASON_CODE_BUSY" });
});

it("P8.1: a call that the gate refuses leaves no error in the log", async () => {
	const errors: unknown[] = [];
	const log: Log = { ...silentLog, error: (...words: unknown[]) => void errors.push(words) };
	const { rig } = await kitForTest({ deps: { log } });
	const answer = await fetch(`${rig.url}/grpc.health.v1.Health/Check`, {
		method: "POST",
		headers: { origin: "https://elsewhere.example", "content-type": "application/json" },
		body: "{}",
	});
	expect(answer.status).toBe(403);
	expect(errors).toEqual([]);
});

it.each([
	["headers", "POST /x HTTP/1.1\r\nHost: x\r\n"],
	["a body", "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc"],
])("Z13: on the gRPC port with TLS, HTTP/1.1 %s that never arrive in full end the connection", async (_, sent) => {
	const limits = { headersTimeoutMs: 40, requestTimeoutMs: 60 };
	const kit = await kitForTest({ limits, tls: { cert: CERT, key: KEY } });
	const { port } = new URL(kit.grpcUrl);
	const socket = connectTls({ port: Number(port), rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] });
	onTestFinished(() => void socket.destroy());
	socket.on("error", () => {});
	socket.write(sent);
	socket.resume();
	await new Promise<void>((resolve) => socket.once("close", () => resolve()));
	await waitFor(() => kit.rig.edge.stats().grpcConnections === 0);
});
