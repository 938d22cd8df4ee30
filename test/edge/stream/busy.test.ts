/** Every wire under a busy event loop: what readers get, and in how many writes. */

import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Bus, createBus, type LogWriter } from "../../../packages/daemon/src/bus/bus.ts";
import { EDGE_LIMITS } from "../../../packages/daemon/src/edge/edge.ts";
import {
	createReaders,
	createSockets,
	Flusher,
	NDJSON,
	type Readers,
	SSE,
} from "../../../packages/daemon/src/edge/stream/stream.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { chunkEncoder, encodeFrame } from "../../../packages/protocol/src/protocol.ts";
import { memoryStorage } from "../../bus/memory.ts";
import { type ManualClock, manualClock } from "../../clock.ts";
import { quiet } from "../../quiet.ts";
import { rawClient, waitFor } from "../rig.ts";
import { dial } from "../ws-client.ts";

let bus: Bus;
let log: LogWriter;
let clock: ManualClock;
let flusher: Flusher;
let readers: Readers;
let server: Server;
let port: number;

beforeEach(async () => {
	bus = createBus({ ...quiet, storage: memoryStorage() });
	log = await bus.create({ log: "run", kind: "run" }, ['"begin"']);
	clock = manualClock();
	flusher = new Flusher({ flushMsMax: 60, log: silentLog, clock, utilisation: () => 1 });
	readers = createReaders(silentLog, flusher);
	const cursorOf = () => bus.cursor({ log: "run" }, 0);
	const sources = { run: cursorOf, session: cursorOf };
	const sockets = createSockets({ sources, limits: EDGE_LIMITS, log: silentLog, flusher });
	server = createServer((request, response) => {
		const dialect = request.url === "/sse" ? SSE : NDJSON;
		void cursorOf().then((cursor) => readers.open(response, { cursor, dialect, closes: "A" }));
	});
	server.on("upgrade", (request, socket, head) => {
		void sockets.upgrade(request, socket as Socket, head);
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	port = (server.address() as AddressInfo).port;
});
afterEach(async () => {
	readers.cut();
	server.closeAllConnections();
	server.close();
	await bus.close();
});

const encode = chunkEncoder("m1");
/** Commits each payload separately. */
const say = async (...payloads: string[]) => {
	for (const payload of payloads) {
		log.append(encode(2, payload, 0));
		await log.flushed();
	}
};
const TOOL = encodeFrame({
	type: "stream.chunk",
	message_id: "m2",
	seq_no: 2,
	payload: "{}",
	is_partial: false,
	ts: 0,
});

/** The payloads of each write that a client got. */
const payloadsIn = (text: string) => [...text.matchAll(/"payload":"(\w+)"/g)].map(([, payload]) => payload!);
const writesOf = (received: string) =>
	received
		.split(/\r\n[0-9a-f]+\r\n/)
		.map(payloadsIn)
		.filter(({ length }) => length > 0);

it("I4, I6: SSE, NDJSON and WebSocket merge what waits into one write; tools and ends do not wait", async () => {
	const get = (path: string) => rawClient(port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
	const [sse, ndjson, socket] = [get("/sse"), get("/ndjson"), await dial(port)];
	socket.send({ type: "subscribe", id: "s", run: "run" });
	const framesOf = () => socket.messages.filter(({ type }) => type === "frames");
	const wires = [
		() => writesOf(sse.received()),
		() => writesOf(ndjson.received()),
		() =>
			framesOf()
				.map(({ frames }) => frames!.flatMap(({ payload }) => (/^\w+$/.test(payload ?? "") ? payload! : [])))
				.filter(({ length }) => length > 0),
	];
	const allGot = (payload: string) => waitFor(() => wires.every((writes) => writes().flat().includes(payload)));
	await waitFor(() => bus.stats.cursors === 3);
	for (let n = 0; flusher.spacingMs < 60 && n < 20; n++) {
		log.append(TOOL);
		await log.flushed();
		clock.advance(100);
	}
	await say("first", "a", "b", "c");
	await allGot("first");
	clock.advance(60);
	await allGot("c");
	await say("d");
	log.append(TOOL);
	await log.flushed();
	await allGot("d");
	await say("e", "f");
	await log.seal(['"end"']);
	await allGot("f");
	for (const writes of wires) expect(writes()).toEqual([["first"], ["a", "b", "c"], ["d"], ["e", "f"]]);
	await waitFor(() => socket.messages.at(-1)?.type === "ended");
	await waitFor(() => sse.received().endsWith("0\r\n\r\n") && ndjson.received().endsWith("0\r\n\r\n"));
	socket.ws.close();
});
