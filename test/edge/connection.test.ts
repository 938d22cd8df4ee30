/** Limits on connections and requests (I11), and how the edge listens and closes. */

import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { BEARER, expectError, rawClient, rigForTest, waitFor } from "./rig.ts";

describe("limits", () => {
	it("P6.15: slow-loris: headers that trickle are answered 408 and hung up on", async () => {
		const rig = await rigForTest({ limits: { headersTimeoutMs: 200, requestTimeoutMs: 600_000 } });
		const client = rawClient(rig.port, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n");
		const trickle = setInterval(() => client.socket.write("X-A: b\r\n"), 20);
		await client.closed;
		clearInterval(trickle);
		expect(client.received()).toMatch(/^HTTP\/1\.1 408 /);
		expect(client.received()).toContain('"code":"timeout"');
	});

	it("P6.15: slow-loris: a body that trickles is cut off", async () => {
		const rig = await rigForTest({ limits: { headersTimeoutMs: 200, requestTimeoutMs: 400 } });
		const head = `POST /v1/sessions/s/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${BEARER.authorization}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n`;
		const client = rawClient(rig.port, head);
		const trickle = setInterval(() => client.socket.write(" "), 20);
		await client.closed;
		clearInterval(trickle);
		expect(client.received()).toMatch(/^HTTP\/1\.1 408 /);
		expect(rig.broker.liveRuns()).toEqual([]);
	});

	it("P6.15: headers that are too large are 431", async () => {
		const rig = await rigForTest({ limits: { headersBytesMax: 2048 } });
		const client = rawClient(
			rig.port,
			`GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Big: ${"x".repeat(4096)}\r\n\r\n`,
		);
		await client.closed;
		expect(client.received()).toMatch(/^HTTP\/1\.1 431 /);
		expect(client.received()).toContain('"code":"too_large"');
	});

	it("an offer to speak h2c, as some clients make with every request, is ignored", async () => {
		const rig = await rigForTest();
		const offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n";
		const client = rawClient(rig.port, `GET /healthz HTTP/1.1\r\nHost: localhost\r\n${offer}\r\n`);
		await waitFor(() => client.received().includes('{"status":"ok"}'));
	});

	it("a request that is not HTTP is 400", async () => {
		const rig = await rigForTest();
		const client = rawClient(rig.port, "HELLO nexus\r\n\r\n");
		await client.closed;
		expect(client.received()).toMatch(/^HTTP\/1\.1 400 /);
		expect((await fetch(`${rig.url}/healthz`)).status).toBe(200);
	});

	it("P6.1: a request without a Host is refused, a strange expectation is not, both with a body", async () => {
		const rig = await rigForTest();
		const hostless = rawClient(rig.port, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n");
		await hostless.closed;
		expect(hostless.received()).toMatch(/^HTTP\/1\.1 400 .*"code":"invalid"/s);
		const expecting = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nExpect: a-miracle\r\nConnection: close\r\n\r\n";
		const client = rawClient(rig.port, expecting);
		await client.closed;
		expect(client.received()).toMatch(/^HTTP\/1\.1 200 .*\{"status":"ok"\}/s);
	});

	it("I11: a request may be given less time than its headers have by default", async () => {
		const rig = await rigForTest({ limits: { requestTimeoutMs: 5000 } });
		expect((await fetch(`${rig.url}/healthz`)).status).toBe(200);
	});

	it("P6.15: connections from one address beyond the limit are refused with 429", async () => {
		const rig = await rigForTest({ limits: { connectionsPerClientMax: 3 } });
		const clients = [1, 2, 3].map(() => rawClient(rig.port, ""));
		await waitFor(() => rig.edge.stats().connections === 3);
		const refused = rawClient(rig.port, "");
		await refused.closed;
		expect(refused.received()).toMatch(/^HTTP\/1\.1 429 /);
		clients[0]!.socket.destroy();
		await waitFor(() => rig.edge.stats().connections === 2);
		expect((await fetch(`${rig.url}/healthz`)).status).toBe(200);
	});

	it("P6.15: connections beyond the limit for all are not taken", async () => {
		const rig = await rigForTest({ limits: { connectionsMax: 2 } });
		const clients = [1, 2].map(() => rawClient(rig.port, ""));
		await waitFor(() => rig.edge.stats().connections === 2);
		const refused = rawClient(rig.port, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
		await refused.closed;
		expect(refused.received()).toBe("");
		for (const { socket } of clients) socket.destroy();
		await waitFor(() => rig.edge.stats().connections === 0);
		expect((await fetch(`${rig.url}/healthz`)).status).toBe(200);
	});

	it("an idle connection is closed after keepAliveMs", async () => {
		const rig = await rigForTest({ limits: { keepAliveMs: 100 } });
		const client = rawClient(rig.port, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
		await client.closed;
		expect(client.received()).toMatch(/^HTTP\/1\.1 200 /);
	});
});

describe("lifecycle", () => {
	it("a port that is taken is a conflict that says so", async () => {
		const rig = await rigForTest();
		const other = await rigForTest();
		await other.edge.close(100);
		await expect(other.edge.listen("127.0.0.1", rig.port)).rejects.toThrow(
			expect.objectContaining({ code: "conflict", message: expect.stringContaining("choose another port") }),
		);
	});

	it("closing lets a request in flight finish and accepts no new one", async () => {
		const rig = await rigForTest();
		const { runId, puppet } = await rig.start("s");
		const settle = Promise.withResolvers<void>();
		const abort = rig.broker.abort.bind(rig.broker);
		rig.broker.abort = (id) => settle.promise.then(() => abort(id)) as ReturnType<typeof abort>;
		const answer = rig.post(`/v1/runs/${runId}/abort`);
		await waitFor(() => rig.edge.stats().requests === 2);
		const closed = rig.edge.close(60_000);
		// A connection that was still taken is closed: the edge would wait for it until the deadline.
		const refused = () =>
			new Promise<boolean>((resolve) => {
				const socket = connect(rig.port, "127.0.0.1");
				socket.on("connect", () => resolve(!socket.destroy()));
				socket.on("error", ({ code }: NodeJS.ErrnoException) => resolve(code === "ECONNREFUSED"));
			});
		await waitFor(refused);
		settle.resolve();
		expect(await (await answer).json()).toEqual({ run_id: runId, status: "aborted" });
		await closed;
		puppet.finish();
	});

	it("closing does not wait for a request beyond the deadline, nor for a client that says nothing", async () => {
		const rig = await rigForTest();
		const { runId } = await rig.start("s");
		rig.broker.abort = () => new Promise(() => {});
		const answer = rig.post(`/v1/runs/${runId}/abort`).catch((cause: unknown) => cause);
		const silent = rawClient(rig.port, "");
		await waitFor(() => rig.edge.stats().requests === 2);
		// Without the deadline this would wait forever.
		await rig.edge.close(150);
		expect(await answer).toBeInstanceOf(Error);
		await silent.closed;
	});

	it("a request on a kept connection while closing is 503", async () => {
		const rig = await rigForTest();
		const { runId, puppet } = await rig.start("s");
		const release = Promise.withResolvers<void>();
		const abort = rig.broker.abort.bind(rig.broker);
		rig.broker.abort = (id) => release.promise.then(() => abort(id)) as ReturnType<typeof abort>;
		const head = `Host: localhost\r\nAuthorization: ${BEARER.authorization}\r\n\r\n`;
		const client = rawClient(rig.port, `POST /v1/runs/${runId}/abort HTTP/1.1\r\nContent-Length: 0\r\n${head}`);
		await waitFor(() => rig.edge.stats().requests === 2);
		const closed = rig.edge.close(60_000);
		client.socket.write(`GET /v1/sessions HTTP/1.1\r\n${head}`);
		await waitFor(() => rig.edge.stats().requests === 3);
		release.resolve();
		await client.closed;
		expect(client.received()).toMatch(/^HTTP\/1\.1 200 [\s\S]*HTTP\/1\.1 503 [\s\S]*"unavailable"/);
		await closed;
		puppet.finish();
	});

	it("every answer carries the headers that keep a browser from guessing", async () => {
		const rig = await rigForTest();
		for (const path of ["/healthz", "/v1/sessions", "/none", "/"]) {
			const { headers } = await rig.get(path);
			expect(headers.get("x-content-type-options")).toBe("nosniff");
			expect(headers.get("referrer-policy")).toBe("no-referrer");
			expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
		}
		await expectError(await fetch(`${rig.url}/v1/sessions`), 401, "unauthenticated");
	});
});
