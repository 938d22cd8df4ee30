/** Limits of callers without a token on the main port: requests, bodies, connections, guesses (I11). */

import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { EDGE_LIMITS } from "../../packages/daemon/src/edge/edge.ts";
import { Lobby } from "../../packages/daemon/src/edge/http/lobby.ts";
import { clientKey, createStrangers } from "../../packages/daemon/src/edge/http/strangers.ts";
import { manualClock } from "../clock.ts";
import { BEARER, expectError, type RigOptions, rawClient, rigForTest, TOKEN, waitFor } from "./rig.ts";

async function start(options?: RigOptions) {
	const rig = await rigForTest(options);
	return rig;
}

describe("strangers", () => {
	const setup = (limits: Partial<typeof EDGE_LIMITS> = {}) => {
		const clock = manualClock(1000);
		const strangers = createStrangers({ ...EDGE_LIMITS, ...limits }, clock);
		const cut: string[] = [];
		const enter = (address: string, name: string) => {
			const ended = new EventEmitter();
			strangers.enter(address, ended, () => cut.push(name));
			return () => ended.emit("close");
		};
		return { clock, strangers, cut, enter };
	};

	it("I11: at the limit of a client, or of all, the oldest request makes room", () => {
		const { cut, enter, strangers } = setup({ tokenlessRequestsMax: 4, tokenlessRequestsPerClientMax: 2 });
		enter("10.0.0.1", "a1");
		const leave = enter("10.0.0.1", "a2");
		enter("10.0.0.1", "a3");
		expect(cut).toEqual(["a1"]);
		leave();
		enter("10.0.0.1", "a4");
		expect(cut).toEqual(["a1"]);
		enter("10.0.0.2", "b1");
		enter("10.0.0.3", "c1");
		enter("10.0.0.4", "d1");
		expect(cut).toEqual(["a1", "a3"]);
		expect(strangers.refused).toBe(2);
	});

	it("I11: a client with too many calls is refused for a while, and no other one", () => {
		const { clock, strangers } = setup({ tokenlessCallsPerSecondMax: 10, tokenlessRefusedMs: 500 });
		const calls = (count: number) => Array.from({ length: count }, () => strangers.calls("10.0.0.1")).filter(Boolean);
		expect(calls(30)).toHaveLength(20);
		expect([strangers.refuses("10.0.0.1"), strangers.refuses("10.0.0.2")]).toEqual([true, false]);
		expect(strangers.calls("10.0.0.2")).toBe(true);
		clock.advance(499);
		expect(calls(1)).toEqual([]);
		clock.advance(1);
		expect(calls(30)).toHaveLength(4);
		clock.advance(60_000);
		expect(calls(30)).toHaveLength(20);
	});

	it("a client of an IPv6 network is counted by its /64", () => {
		expect(clientKey("2001:db8:1:2:3:4:5:6")).toBe(clientKey("2001:db8:1:2::9"));
		expect(clientKey("2001:db8::9")).toBe("2001:db8:0:0");
		expect(clientKey("2001:db8:1:2::1")).not.toBe(clientKey("2001:db8:1:3::1"));
		expect(clientKey("::1")).toBe("0:0:0:0");
		expect([clientKey("10.0.0.1"), clientKey("::ffff:10.0.0.1")]).toEqual(["10.0.0.1", "::ffff:10.0.0.1"]);
		expect(clientKey("?10.0.0.1")).toBe("?10.0.0.1");
	});
});

describe("lobby", () => {
	class FakeSocket extends EventEmitter {
		destroyed = false;
		served = false;
		readonly remoteAddress: string;
		constructor(remoteAddress: string) {
			super();
			this.remoteAddress = remoteAddress;
		}
		destroy() {
			this.destroyed = true;
			this.emit("close");
		}
	}
	const setup = (isRefused: (key: string) => boolean = () => false) => {
		const clock = manualClock(1000);
		const limits = { tokenlessConnectionsMax: 4, tokenlessConnectionsPerClientMax: 2 };
		const lobby = new Lobby(limits, clock, isRefused);
		const enter = (address: string) => {
			const socket = new FakeSocket(address);
			lobby.enter(socket as unknown as Socket, () => {
				socket.served = true;
			});
			return socket;
		};
		const leave = (socket: FakeSocket) => lobby.leave(socket as unknown as Socket);
		return { clock, lobby, enter, leave };
	};
	const turn = () => new Promise((resolve) => setImmediate(resolve));

	it("I11: further connections of a client wait until one has sent a token or is gone; the last to come is next", async () => {
		const { enter, leave } = setup();
		const [first, second, third, fourth] = [enter("a"), enter("a"), enter("a"), enter("a")];
		expect([first, second, third, fourth].map(({ served }) => served)).toEqual([true, true, false, false]);
		expect(enter("b").served).toBe(true);
		leave(first);
		await turn();
		expect([third, fourth].map(({ served }) => served)).toEqual([false, true]);
		second.destroy();
		await turn();
		expect(third.served).toBe(true);
	});

	it("one that sends no token for a second makes room, of the client that has the most", () => {
		const { clock, enter, lobby } = setup();
		const old = [enter("a"), enter("a"), enter("b")];
		clock.advance(1000);
		expect(enter("a").served).toBe(true);
		expect(old.map(({ destroyed }) => destroyed)).toEqual([true, false, false]);
		enter("c");
		const young = enter("d");
		expect(young.served).toBe(true);
		expect(old.map(({ destroyed }) => destroyed)).toEqual([true, true, false]);
		expect(lobby.refused).toBe(2);
	});

	it("of a client that is refused one connection at a time is read, and those that wait are soon closed", () => {
		const { clock, enter } = setup((key) => key === "a");
		const waiting = [enter("a"), enter("a"), enter("a")];
		expect(enter("b").served).toBe(true);
		const served = () => waiting.map((socket) => socket.served);
		expect(served()).toEqual([false, false, false]);
		clock.advance(5);
		expect(served()).toEqual([false, false, true]);
		clock.advance(5);
		expect(served()).toEqual([false, true, true]);
		expect(waiting.map(({ destroyed }) => destroyed)).toEqual([false, false, false]);
		const many = Array.from({ length: 80 }, () => enter("a"));
		clock.advance(600);
		expect(waiting[0]!.destroyed).toBe(true);
		expect(many.filter(({ destroyed }) => destroyed).length).toBeGreaterThan(0);
	});
});

describe("P6.15: the main port", () => {
	const head = (path: string, length: number) =>
		`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

	it.each(["/v1/sign-in", "/grpc.health.v1.Health/Check"])(
		"a large body of %s is refused before it comes",
		async (path) => {
			const rig = await start({ services: () => ({}) });
			const client = rawClient(rig.port, head(path, 4 * 1024 * 1024));
			await waitFor(() => client.received().includes("\r\n\r\n{"));
			// Connect says it by the status of HTTP that its code has.
			expect(client.received()).toMatch(
				path === "/v1/sign-in" ? /^HTTP\/1\.1 413 / : /^HTTP\/1\.1 429 .*resource_exhausted/s,
			);
			client.socket.destroy();
		},
	);

	it.each(["/v1/sign-in", "/grpc.health.v1.Health/Check"])(
		"a body of %s that does not come is not waited for",
		async (path) => {
			const clock = manualClock(1000);
			const rig = await start({ clock, services: () => ({}) });
			const client = rawClient(rig.port, `${head(path, 100)}{`);
			await waitFor(() => rig.edge.stats().requests === 1);
			// The handler is loaded by the first request.
			while (client.received() === "") {
				clock.advance(1000);
				await new Promise((resolve) => setImmediate(resolve));
			}
			expect(client.received()).toMatch(/^HTTP\/1\.1 (400|408|504) /);
			// Nor for what is left of it.
			clock.advance(1000);
			await client.closed;
		},
	);

	it("requests whose bodies do not come leave room to sign in", async () => {
		const rig = await start({ limits: { tokenlessRequestsMax: 4, tokenlessRequestsPerClientMax: 3 } });
		for (let n = 0; n < 5; n++) rawClient(rig.port, `${head("/v1/sign-in", 100)}{`);
		await waitFor(() => rig.edge.stats().requests === 5);
		expect(rig.edge.stats().tokenlessRefused).toBe(2);
		const page = await fetch(rig.url);
		expect(page.status).toBe(200);
		await page.text();
		expect((await rig.post("/v1/sign-in", { token: TOKEN }, { authorization: "" })).status).toBe(200);
	});

	it("connections that say nothing leave room for others", async () => {
		const limits = { tokenlessConnectionsMax: 4, tokenlessConnectionsPerClientMax: 3 };
		const rig = await start({ limits });
		for (let n = 0; n < 12; n++) rawClient(rig.port, "GET / HTTP/1.1\r\nHost: localhost\r\n");
		await waitFor(() => rig.edge.stats().connections === 12);
		expect((await rig.get("/v1/sessions")).status).toBe(200);
		expect((await fetch(`${rig.url}/healthz`)).status).toBe(200);
	});

	it("many connections with a token are served, however few may be without one", async () => {
		const rig = await start({ limits: { tokenlessConnectionsMax: 2, tokenlessConnectionsPerClientMax: 2 } });
		const request = `GET /v1/health/none HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${BEARER.authorization}\r\n\r\n`;
		const clients = Array.from({ length: 40 }, () => rawClient(rig.port, request));
		await waitFor(() => clients.every((client) => client.received().startsWith("HTTP/1.1 404")));
		expect(rig.edge.stats()).toMatchObject({ connections: 40, tokenlessRefused: 0 });
	});
});

describe("P6.13: wrong tokens", () => {
	it("too many are answered late and counted; a good token of the same address is not held back", async () => {
		const clock = manualClock(1_000_000);
		const rig = await start({ clock, limits: { tokenFailuresPerMinuteMax: 3, tokenFailureDelayMs: 1000 } });
		const guess = () => rig.get("/v1/sessions", { authorization: "Bearer guess" });
		for (let i = 0; i < 3; i++) await expectError(await guess(), 401, "unauthenticated");
		let isAnswered = false;
		const late = guess().finally(() => {
			isAnswered = true;
		});
		await waitFor(() => rig.edge.stats().tokenFailures === 4);
		expect((await rig.get("/v1/sessions")).status).toBe(200);
		expect((await fetch(`${rig.url}/healthz`)).status).toBe(200);
		expect(isAnswered).toBe(false);
		clock.advance(1000);
		await expectError(await late, 401, "unauthenticated");
		clock.advance(60_000);
		await expectError(await guess(), 401, "unauthenticated");
	});

	it("Z28: they are recorded once for each address and minute, with how many there were", async () => {
		const told: [string, number][] = [];
		const clock = manualClock(1_000_000);
		const rig = await start({
			clock,
			deps: { signIns: { refused: (...words: [string, number]) => void told.push(words) } as never },
		});
		for (let i = 0; i < 5; i++) await rig.get("/v1/sessions", { authorization: `Bearer ${i}` });
		expect(told).toEqual([["127.0.0.1", 1]]);
		clock.advance(60_000);
		expect(told).toEqual([
			["127.0.0.1", 1],
			["127.0.0.1", 4],
		]);
	});
});

describe("P6.15: JSON that costs more than it says", () => {
	const list = (count: number) => JSON.stringify({ text: "x", channels: Array(count).fill(1) });
	const deep = (depth: number) => `{"definition":${"[".repeat(depth)}${"]".repeat(depth)}}`;

	it.each([
		["/v1/lab", list(100_000), /more than 20000 values/],
		["/v1/workflows", deep(100_000), /nested deeper than 64 levels/],
		["/v1/sessions/s/messages", deep(65), /nested deeper than 64 levels/],
		["/v1/sign-in", deep(100), /nested deeper than 64 levels/],
	])("%s is 400, whatever the route is", async (path, body, words) => {
		const rig = await start();
		const response = await fetch(rig.url + path, {
			method: "POST",
			headers: { ...BEARER, "content-type": "application/json" },
			body,
		});
		expect(await response.clone().text()).toMatch(words);
		await expectError(response, 400, "invalid");
	});

	it("brackets, commas and quotes in a text are not structure", async () => {
		const rig = await start();
		const text = `${'[{"\\'.repeat(10_000)}${",".repeat(30_000)}\\`;
		expect((await rig.post("/v1/sessions/s/messages", { text })).status).toBe(202);
	});

	it("a message of a remote procedure is read with the same limits", async () => {
		const rig = await start({ services: () => ({}) });
		const call = (body: string) =>
			fetch(`${rig.url}/nexus.runtime.v1.RuntimeMemoryService/Recall`, {
				method: "POST",
				headers: { ...BEARER, "content-type": "application/json" },
				body,
			});
		for (const body of [`{"x":${"[".repeat(100_000)}`, list(100_000)]) {
			const answer = await call(body);
			expect([answer.status, await answer.json()]).toMatchObject([400, { code: "invalid_argument" }]);
		}
	});
});
