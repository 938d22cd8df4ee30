/** A reader that the daemon reset because it took nothing (Z8), over Node's HTTP/2. */

import { once } from "node:events";
import { constants, createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, it, onTestFinished } from "vitest";
import {
	AgentEventType,
	SubscribeAgentEventsResponseSchema,
} from "../../packages/client/src/gen/nexus/runtime/v1/agent_pb.ts";
import { Code, createRuntime, type RuntimeEvent } from "../../packages/client/src/runtime/runtime-client.ts";

function send(stream: ServerHttp2Stream, sequence: bigint): void {
	const message = toBinary(
		SubscribeAgentEventsResponseSchema,
		create(SubscribeAgentEventsResponseSchema, { sequence, eventType: AgentEventType.STARTED }),
	);
	const head = Buffer.alloc(5);
	head.writeUInt32BE(message.length, 1);
	stream.write(Buffer.concat([head, message]));
}

it("Z5, Z8: is a cut, RESOURCE_EXHAUSTED, however often it happens, and is read on", async () => {
	// More often than a fault that may be there for good is tried again.
	const RESETS = 8;
	let calls = 0;
	const server = createServer();
	server.on("stream", (stream) => {
		stream.on("error", () => {});
		stream.respond({ ":status": 200, "content-type": "application/grpc" });
		calls++;
		if (calls <= RESETS) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
		else send(stream, 1n);
	});
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(() => void server.close());
	const { port } = server.address() as AddressInfo;
	const events: RuntimeEvent[] = [];
	const runtime = createRuntime({
		transport: createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` }),
		limits: { retryFirstMs: 1, retryMaxMs: 1 },
	});
	onTestFinished(() => runtime.close());
	runtime.on("runtime.disconnected", (event) => events.push(event));
	for await (const { sequence } of runtime.agents.subscribeAgentEvents({})) {
		expect(sequence).toBe(1n);
		break;
	}
	expect([calls, events]).toMatchObject([RESETS + 1, [{ code: Code.ResourceExhausted }]]);
});
