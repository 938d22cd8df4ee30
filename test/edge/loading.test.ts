/** The first request loads the request listener: a load that fails, and clients that hang up meanwhile. */

import type { AddressInfo, Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import type { WebSocketServer } from "ws";
import { EDGE_LIMITS } from "../../packages/daemon/src/edge/edge.ts";
import { guardConnections } from "../../packages/daemon/src/edge/http/connection.ts";
import { Lobby } from "../../packages/daemon/src/edge/http/lobby.ts";
import { createProxies } from "../../packages/daemon/src/edge/http/proxies.ts";
import { createHttpServer, type HttpListener, serve } from "../../packages/daemon/src/edge/http/server.ts";
import { Flusher } from "../../packages/daemon/src/edge/stream/flusher.ts";
import { createSockets } from "../../packages/daemon/src/edge/stream/websocket.ts";
import { systemClock } from "../../packages/protocol/src/clock.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { expectError, rawClient, waitFor } from "./rig.ts";
import { dial } from "./ws-client.ts";

const GONE = "Cannot find module '/opt/nexus/dist/listener-Bx1.js'";
const GENERAL = "the daemon failed at this request; its log says why. Was the package replaced? Then restart it";

async function start(load: () => Promise<HttpListener>, upgrade: (...args: [never, Socket, never]) => void = () => {}) {
	const logged: unknown[] = [];
	const log = { ...silentLog, error: (facts: object) => void logged.push(facts) };
	const limits = { ...EDGE_LIMITS, connectionsPerClientMax: 1 };
	const server = createHttpServer(limits);
	const connections = guardConnections(
		server,
		limits,
		createProxies(["127.0.0.1"]),
		new Lobby(limits, systemClock, () => false),
	);
	serve(server, {
		load,
		upgrade: (request, socket, head) => upgrade(request as never, socket, head as never),
		closing: () => false,
		clientOf: () => "1.2.3.4",
		log,
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	onTestFinished(() => {
		connections.destroy();
		server.close();
	});
	const { port } = server.address() as AddressInfo;
	return { port, url: `http://127.0.0.1:${port}`, connections, logged, log };
}

it("a load that fails is a 500 that says what to do and names no path, and the next request loads again", async () => {
	let loads = 0;
	const { url, logged } = await start(async () => {
		if (++loads < 3) throw new Error(GONE);
		return async (_, outgoing) => void outgoing.end("answered");
	});
	const failed = await fetch(url);
	expect(failed.headers.get("content-type")).toBe("application/json");
	expect(await failed.clone().json()).toMatchObject({ error: { message: GENERAL } });
	await expectError(failed, 500, "internal");
	const head = await fetch(url, { method: "HEAD" });
	expect([head.status, await head.text()]).toEqual([500, ""]);
	expect(logged).toMatchObject([{ err: { message: GONE } }, { err: { message: GONE } }]);
	expect(await (await fetch(url)).text()).toBe("answered");
});

it("what fails after its head was sent is cut off, without a second answer", async () => {
	const { port } = await start(async () => async (_, outgoing) => {
		outgoing.writeHead(200);
		outgoing.write("begun");
		await new Promise((resolve) => setImmediate(resolve));
		throw new Error("in between");
	});
	const client = rawClient(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
	await client.closed;
	expect(client.received()).toMatch(/^HTTP\/1\.1 200 /);
	expect(client.received()).not.toContain("500");
});

it("P6.15: who hangs up while the answer is loaded leaves no slot of its client taken", async () => {
	const loaded = Promise.withResolvers<void>();
	const asked: string[] = [];
	const { port, url, connections } = await start(async () => {
		await loaded.promise;
		return async (incoming, outgoing) => {
			asked.push(incoming.url!);
			connections.enter("1.2.3.4", outgoing);
			outgoing.end("answered");
		};
	});
	const gone = rawClient(port, "GET /gone HTTP/1.1\r\nHost: localhost\r\n\r\n");
	await waitFor(() => connections.count === 1);
	gone.socket.destroy();
	await waitFor(() => connections.count === 0);
	loaded.resolve();
	expect(await (await fetch(`${url}/first`)).text()).toBe("answered");
	expect(await (await fetch(`${url}/second`)).text()).toBe("answered");
	expect(asked).toEqual(["/first", "/second"]);
});

it("a handshake whose library cannot be loaded is refused in general words, logged, and the next one works", async () => {
	const { WebSocketServer: Server } = await import("ws");
	let isGone = true;
	const load = async (): Promise<WebSocketServer> => {
		if (isGone) throw new Error(GONE);
		return new Server({ noServer: true });
	};
	const logged: unknown[] = [];
	const log = { ...silentLog, error: (facts: object) => void logged.push(facts) };
	const never = () => Promise.reject(new Error("nobody subscribes"));
	const flusher = new Flusher({ flushMsMax: 0, log });
	const sockets = createSockets({ sources: { run: never, session: never }, limits: EDGE_LIMITS, log, flusher }, load);
	const { port } = await start(
		() => Promise.reject(new Error("nobody asks")),
		(...args) => void sockets.upgrade(...args),
	);
	const handshake = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
	const refused = rawClient(port, `GET /v1/ws HTTP/1.1\r\nHost: localhost\r\n${handshake}\r\n`);
	await refused.closed;
	expect(refused.received()).toMatch(/^HTTP\/1\.1 500 /);
	expect(refused.received()).toContain(GENERAL);
	expect(refused.received()).not.toContain("/opt");
	expect(logged).toMatchObject([{ err: { message: GONE } }]);
	isGone = false;
	const { ws, closed } = await dial(port);
	ws.close();
	await closed;
});

it("a handshake that fails at once is refused in general words, too", async () => {
	const { port, logged } = await start(
		() => Promise.reject(new Error("nobody asks")),
		() => {
			throw new Error(GONE);
		},
	);
	const refused = rawClient(
		port,
		"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	);
	await refused.closed;
	expect(refused.received()).toContain(GENERAL);
	expect(logged).toMatchObject([{ err: { message: GONE } }]);
});
