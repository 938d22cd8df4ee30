/** Which callers are admitted: token, cookie, sign-in codes, Host and Origin. */

import { createHmac } from "node:crypto";
import { request } from "node:http";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { EDGE_LIMITS } from "../../packages/daemon/src/edge/edge.ts";
import { type Auth, createAuth } from "../../packages/daemon/src/edge/http/auth.ts";
import { createAudit } from "../../packages/daemon/src/services/audit/record.ts";
import { createSignIns } from "../../packages/daemon/src/services/signins/signins.ts";
import { type Log, silentLog } from "../../packages/protocol/src/log.ts";
import { manualClock } from "../clock.ts";
import { storeForTest } from "../store.ts";
import { BEARER, expectError, type Rig, rawClient, rigForTest, TOKEN } from "./rig.ts";

interface Answer {
	status: number;
	headers: Record<string, string | string[] | undefined>;
	body: string;
}

/** Node's own client: fetch does not let one choose Host and Origin. */
function call(
	port: number,
	method: string,
	path: string,
	headers: Record<string, string>,
	body?: string,
): Promise<Answer> {
	return new Promise((resolve, reject) => {
		const call = request({ host: "127.0.0.1", port, method, path, headers }, (response) => {
			let text = "";
			response.setEncoding("utf8");
			response.on("data", (chunk: string) => {
				text += chunk;
			});
			response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
		});
		call.on("error", reject);
		call.end(body);
	});
}

const open = (url: string, headers: Record<string, string>): Promise<number> =>
	new Promise((resolve) => {
		const ws = new WebSocket(url, { headers });
		ws.on("open", () => {
			ws.terminate();
			resolve(101);
		});
		ws.on("unexpected-response", (_, response) => {
			response.resume();
			resolve(response.statusCode ?? 0);
		});
		ws.on("error", () => {});
	});

describe("gate", () => {
	let rig: Rig;
	const lines: string[] = [];
	const write = (facts: object, message: string) => void lines.push(JSON.stringify(facts) + message);
	const log: Log = { debug: write, info: write, warn: write, error: write };
	beforeEach(async () => {
		lines.length = 0;
		rig = await rigForTest({ deps: { allowedHosts: ["nexus.example"], log } });
	});
	const origin = () => `http://127.0.0.1:${rig.port}`;
	const signIn = async (): Promise<string> => {
		const code = rig.edge.signInUrl().split("#code=")[1];
		const response = await fetch(`${rig.url}/v1/sign-in`, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: JSON.stringify({ code }),
		});
		expect(response.status).toBe(200);
		return response.headers.get("set-cookie")!;
	};

	it.each([
		{},
		{ authorization: "Bearer wrong" },
		{ authorization: `Basic ${TOKEN}` },
		{ authorization: TOKEN },
		{ cookie: "nexus_1=v1.9.x" },
	])("P6.13: no or a wrong token is 401: %o", async (headers) => {
		const response = await fetch(`${rig.url}/v1/sessions`, { headers: headers as Record<string, string> });
		expect(response.headers.get("www-authenticate")).toBe("Bearer");
		await expectError(response, 401, "unauthenticated");
	});

	it("P6.13: a token in the address is not accepted", async () => {
		for (const name of ["token", "access_token", "code"]) {
			await expectError(await fetch(`${rig.url}/v1/sessions?${name}=${TOKEN}`), 401, "unauthenticated");
		}
	});

	it("P6.14: Host: addresses, localhost, the bound and the allowed names; anything else is DNS rebinding", async () => {
		const get = (host: string) => call(rig.port, "GET", "/v1/sessions", { ...BEARER, host });
		for (const host of [
			"127.0.0.1",
			`127.0.0.1:${rig.port}`,
			"localhost:1",
			"LOCALHOST",
			"[::1]:7777",
			"192.168.1.5",
			"Nexus.example:8080",
		]) {
			expect((await get(host)).status, host).toBe(200);
		}
		for (const host of ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "nexus.example.evil"]) {
			expect((await get(host)).status, host).toBe(403);
		}
		expect((await call(rig.port, "GET", "/healthz", { host: "evil.example" })).status).toBe(403);
		const whole = (host: string) =>
			`GET http://${host}/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
		for (const [host, status] of [["localhost", "200"] as const, ["evil.example", "403"] as const]) {
			const client = rawClient(rig.port, whole(host));
			await client.closed;
			expect(client.received().split(" ")[1]).toBe(status);
		}
		for (const head of ["HTTP/1.0\r\n", "HTTP/1.1\r\nHost: \r\n", "HTTP/1.1\r\n"]) {
			const client = rawClient(rig.port, `GET /healthz ${head}Connection: close\r\n\r\n`);
			await client.closed;
			expect(client.received()).toMatch(/^HTTP\/1\.1 40[03] /);
		}
	});

	it("P6.14: several Host headers are refused, whichever of them is ours", async () => {
		for (const second of ["localhost", "evil.example"]) {
			const head = `GET /healthz HTTP/1.1\r\nHost: localhost\r\nhOST: ${second}\r\nConnection: close\r\n\r\n`;
			const client = rawClient(rig.port, head);
			await client.closed;
			expect(client.received()).toMatch(/^HTTP\/1\.1 400 /);
			expect(client.received()).toContain('"code":"invalid"');
		}
	});

	it("P6.14: Origin: another site's page is refused, whatever it asks for, unless it has the token itself", async () => {
		for (const foreign of [
			"http://evil.example",
			"null",
			`http://127.0.0.1:${rig.port + 1}`,
			`https://127.0.0.1.evil:${rig.port}`,
			"garbage",
		]) {
			expect((await call(rig.port, "GET", "/healthz", { origin: foreign })).status, foreign).toBe(403);
			expect((await call(rig.port, "OPTIONS", "/v1/sessions", { origin: foreign })).status).toBe(403);
		}
		expect((await call(rig.port, "GET", "/healthz", { origin: origin() })).status).toBe(200);
		const own = await call(rig.port, "GET", "/v1/sessions", { ...BEARER, origin: "http://evil.example" });
		expect(own.status).toBe(200);
		expect(own.headers).not.toHaveProperty("access-control-allow-origin");
	});

	it("P6.14: an address that only begins like a webhook's is checked like any other", async () => {
		const target = "/v1/webhooks/../sign-in";
		const head = `POST ${target} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nConnection: close\r\n`;
		const body = JSON.stringify({ token: TOKEN });
		const type = "Content-Type: application/json\r\n";
		const client = rawClient(rig.port, `${head}${type}Content-Length: ${body.length}\r\n\r\n${body}`);
		await client.closed;
		expect(client.received()).toMatch(/^HTTP\/1\.1 403 /);
	});

	it("P6.13: a sign-in code gives a strict cookie, once", async () => {
		const url = rig.edge.signInUrl();
		expect(url).toMatch(new RegExp(`^${rig.url}/#code=[\\w-]{22}$`));
		const send = () => rig.post("/v1/sign-in", { code: url.split("#code=")[1] }, { authorization: "" });
		const response = await send();
		expect(await response.json()).toEqual({ signed_in: true });
		const cookie = response.headers.get("set-cookie")!;
		expect(cookie).toMatch(
			new RegExp(`^nexus_${rig.port}=v2\\.signin_\\w+\\.[\\w-]+; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict$`),
		);
		expect(cookie).not.toContain(TOKEN);
		await expectError(await send(), 401, "unauthenticated");
	});

	it("the token signs in too; behind https the cookie is Secure", async () => {
		const headers = { "content-type": "application/json", host: "nexus.example", origin: "https://nexus.example" };
		const answer = await call(rig.port, "POST", "/v1/sign-in", headers, JSON.stringify({ token: TOKEN }));
		expect(answer.status).toBe(200);
		expect(String(answer.headers["set-cookie"])).toMatch(/; Secure$/);
	});

	it("I11: of the codes that wait to be used the oldest goes first", async () => {
		const few = await rigForTest({ limits: { signInCodesMax: 2 } });
		const codes = [1, 2, 3].map(() => few.edge.signInUrl().split("#code=")[1]);
		const answers = codes.map((code) => few.post("/v1/sign-in", { code }, { authorization: "" }));
		expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([401, 200, 200]);
	});

	it("P6.13: POST /v1/sign-in-codes makes a code for who has the token", async () => {
		const response = await rig.post("/v1/sign-in-codes");
		expect(response.status).toBe(201);
		const { code, url } = (await response.json()) as { code: string; url: string };
		expect(url).toBe(`${rig.url}/#code=${code}`);
		expect((await rig.post("/v1/sign-in", { code })).status).toBe(200);
		expect((await fetch(`${rig.url}/v1/sign-in-codes`, { method: "POST" })).status).toBe(401);
	});

	it("P6.14: the cookie reads; it changes things only from its own page", async () => {
		const cookie = (await signIn()).split(";")[0]!;
		const get = (headers: Record<string, string>) => call(rig.port, "GET", "/v1/sessions", { cookie, ...headers });
		expect((await get({})).status).toBe(200);
		expect((await get({ cookie: `other=1; ${cookie}; z=2` })).status).toBe(200);
		expect((await get({ "sec-fetch-site": "same-origin" })).status).toBe(200);
		expect((await get({ "sec-fetch-site": "same-site" })).status).toBe(401);
		expect((await get({ "sec-fetch-site": "cross-site" })).status).toBe(401);
		expect((await get({ origin: "http://evil.example" })).status).toBe(403);
		expect((await get({ ...BEARER, origin: "http://evil.example" })).status).toBe(403);

		const post = (headers: Record<string, string>) =>
			call(
				rig.port,
				"POST",
				"/v1/sessions/s/messages",
				{ cookie, "content-type": "application/json", ...headers },
				'{"text":"x"}',
			);
		expect((await post({})).status).toBe(403);
		expect((await post({ origin: "http://evil.example" })).status).toBe(403);
		expect((await post({ host: `127.0.0.1:${rig.port}`, origin: origin() })).status).toBe(202);
	});

	it("P6.14: a WebSocket from another site's page is refused (cross-site hijacking)", async () => {
		const cookie = (await signIn()).split(";")[0]!;
		const url = `ws://127.0.0.1:${rig.port}/v1/ws`;
		expect(await open(url, { cookie, origin: "http://evil.example" })).toBe(403);
		expect(await open(url, { cookie })).toBe(403);
		expect(await open(url, {})).toBe(401);
		expect(await open(url, { ...BEARER, host: "evil.example" })).toBe(403);
		expect(await open(url, { cookie, origin: origin() })).toBe(101);
		expect(await open(url, BEARER)).toBe(101);
		expect(await open(`ws://127.0.0.1:${rig.port}/v1/other`, BEARER)).toBe(404);
	});

	it("tokens, codes and cookies are never logged", async () => {
		const cookie = await signIn();
		await rig.get("/v1/sessions?token=leak-me");
		await rig.post("/v1/sign-in", { code: "leak-me" });
		for (const secret of [TOKEN, "leak-me", cookie.split("=")[1]!.split(";")[0]!]) {
			expect(lines.filter((line) => line.includes(secret))).toEqual([]);
		}
	});
});

describe("auth", () => {
	/** On a store that the next process opens, too. */
	const make = async (token = TOKEN, store = storeForTest(), clock = manualClock(1_000_000)) => {
		const signIns = createSignIns({ ...store, clock, log: silentLog, audit: createAudit(clock) });
		await signIns.load();
		onTestFinished(() => signIns.close());
		const auth = createAuth({ token, limits: EDGE_LIMITS, clock, apps: { authenticate: () => undefined }, signIns });
		return { auth, clock, store, signIns };
	};
	const enter = ({ auth }: { auth: Auth }) => auth.signIn({ token: TOKEN }, "192.0.2.1");
	const OWNER = { owner: true, address: "192.0.2.1", isPrivate: true };

	it("Z24: a cookie is good until it expires, for the same token only, also in the next process", async () => {
		const first = await make();
		const { auth, clock, store } = first;
		const cookie = await enter(first);
		expect(auth.byCookie(cookie)).toMatchObject({ by: "sign-in", signInId: cookie.split(".")[1] });
		expect((await make(TOKEN, store, clock)).auth.byCookie(cookie)).toBeDefined();
		expect((await make("another-token", store, clock)).auth.byCookie(cookie)).toBeUndefined();
		const ended = auth.byCookie(cookie)?.ended;
		clock.advance(EDGE_LIMITS.signedInMs - 1);
		expect(auth.byCookie(cookie)).toBeDefined();
		expect(ended?.aborted).toBe(false);
		clock.advance(1);
		expect(auth.byCookie(cookie)).toBeUndefined();
		expect(ended?.aborted).toBe(true);
	});

	it("Z24: who signed out is out at once, also in the next process", async () => {
		const first = await make();
		const { auth, store, clock } = first;
		const [mine, other] = [await enter(first), await enter(first)];
		const proof = auth.byCookie(mine)!;
		await auth.signOut(proof.signInId!, OWNER);
		expect(auth.byCookie(mine)).toBeUndefined();
		expect(proof.ended?.aborted).toBe(true);
		const next = await make(TOKEN, store, clock);
		expect(next.auth.byCookie(mine)).toBeUndefined();
		expect(next.auth.byCookie(other)).toBeDefined();
	});

	it("a cookie that was changed is not good, nor is one that could not be signed out", async () => {
		const rig = await make();
		const cookie = await enter(rig);
		const [version, id, signature] = cookie.split(".");
		const expiry = "2000000";
		const stateless = createHmac("sha256", TOKEN).update(`nexus cookie ${expiry}`).digest("base64url");
		for (const wrong of [
			"",
			"v2..",
			`v1.${id}.${signature}`,
			`v1.${expiry}.${stateless}`,
			`v2.${id}0.${signature}`,
			`${cookie}.`,
			cookie.slice(0, -1),
			`${version}.${id}.`,
		]) {
			expect(rig.auth.byCookie(wrong), wrong).toBeUndefined();
		}
	});

	it("a code is good for ten minutes", async () => {
		const { auth, clock } = await make();
		const [early, late] = [auth.newCode(), auth.newCode()];
		clock.advance(10 * 60_000 - 1);
		await auth.signIn({ code: early }, "a");
		clock.advance(1);
		await expect(auth.signIn({ code: late }, "a")).rejects.toThrow(/too old/);
	});

	it("failures of one address are not another's, lock out no good token, and pass after a minute", async () => {
		const { auth, clock } = await make();
		for (let i = 0; i < 10; i++) await expect(auth.signIn({ token: "x" }, "a")).rejects.toThrow("wrong token");
		await expect(auth.signIn({ token: "x" }, "a")).rejects.toThrow(/too many/);
		await auth.signIn({ token: TOKEN }, "a");
		await auth.signIn({ code: auth.newCode() }, "a");
		await expect(auth.signIn({ token: "x" }, "b")).rejects.toThrow("wrong token");
		clock.advance(60_000);
		await expect(auth.signIn({ token: "x" }, "a")).rejects.toThrow("wrong token");
	});

	it("Z28: failed sign-ins are reported per address and minute", async () => {
		const { auth, clock, signIns } = await make();
		const told: [string, number][] = [];
		signIns.refused = (address, count) => void told.push([address, count]);
		const fresh = createAuth({
			token: TOKEN,
			limits: EDGE_LIMITS,
			clock,
			apps: { authenticate: () => undefined },
			signIns,
		});
		for (let i = 0; i < 4; i++) await fresh.signIn({ token: "x" }, "a").catch(() => {});
		await fresh.signIn({ token: "x" }, "b").catch(() => {});
		expect(told).toEqual([
			["a", 1],
			["b", 1],
		]);
		clock.advance(60_000);
		expect(told).toEqual([
			["a", 1],
			["b", 1],
			["a", 3],
		]);
		expect(auth.authenticate("x")).toBeUndefined();
	});

	it("without a token there is no edge", async () => await expect(make("")).rejects.toThrow(/token/));
});
