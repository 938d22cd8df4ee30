/** Clients behind reverse proxies: whom the headers name, and that limits, sign-ins and cookies go by it. */

import { request } from "node:http";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { createProxies } from "../../packages/daemon/src/edge/http/proxies.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { character } from "../character.ts";
import { createRig, type Rig, rawClient, TOKEN, waitFor } from "./rig.ts";

const TRUSTED = ["127.0.0.1", "::1", "10.0.0.0/8", "2001:db8:aa::/48"];
const proxies = createProxies(TRUSTED);

const clientOf = (peer: string, headers: Record<string, string>) =>
	proxies.clientOf({ headers, socket: { remoteAddress: peer } as never });
const addressOf = (peer: string, headers: Record<string, string>) => clientOf(peer, headers).address;

describe("the client of a request", () => {
	it.each([
		["no proxy", "198.51.100.7", { "x-forwarded-for": "1.2.3.4" }, "198.51.100.7"],
		["no header", "127.0.0.1", {}, "127.0.0.1"],
		["one hop", "127.0.0.1", { "x-forwarded-for": "1.2.3.4" }, "1.2.3.4"],
		["a spoofed hop before it", "127.0.0.1", { "x-forwarded-for": "9.9.9.9, 1.2.3.4" }, "1.2.3.4"],
		["two proxies", "::1", { "x-forwarded-for": "9.9.9.9, 1.2.3.4, 10.1.2.3" }, "1.2.3.4"],
		["only proxies", "127.0.0.1", { "x-forwarded-for": "10.0.0.1, 10.0.0.2" }, "10.0.0.1"],
		["IPv4 in IPv6", "::ffff:127.0.0.1", { "x-forwarded-for": "::ffff:1.2.3.4" }, "1.2.3.4"],
		["a port", "127.0.0.1", { "x-forwarded-for": "1.2.3.4:5678" }, "1.2.3.4"],
		["IPv6 in a block", "2001:db8:aa::9", { "x-forwarded-for": "2001:db8:bb::1" }, "2001:db8:bb::1"],
		["Forwarded", "127.0.0.1", { forwarded: "for=1.2.3.4;proto=https;by=10.0.0.1" }, "1.2.3.4"],
		["Forwarded, IPv6", "127.0.0.1", { forwarded: 'For="[2001:db8:bb::1]:4711"' }, "2001:db8:bb::1"],
		["Forwarded, two", "127.0.0.1", { forwarded: "for=9.9.9.9, for=1.2.3.4;proto=http, for=10.0.0.1" }, "1.2.3.4"],
		["unknown", "127.0.0.1", { forwarded: "for=9.9.9.9, for=unknown" }, "?127.0.0.1"],
		["hidden behind a proxy", "127.0.0.1", { "x-forwarded-for": "9.9.9.9, _hidden, 10.0.0.1" }, "?10.0.0.1"],
		["an open quote", "127.0.0.1", { forwarded: 'for="9.9.9.9, for=1.2.3.4' }, "?127.0.0.1"],
		["both, the same", "127.0.0.1", { forwarded: "for=1.2.3.4", "x-forwarded-for": "1.2.3.4" }, "1.2.3.4"],
		["both, different", "127.0.0.1", { forwarded: "for=9.9.9.9", "x-forwarded-for": "1.2.3.4" }, "?127.0.0.1"],
	])("%s", (_name, peer, headers, address) => {
		expect(addressOf(peer, headers as Record<string, string>)).toBe(address);
	});

	it("https is believed from a trusted proxy only", () => {
		const both: Record<string, string>[] = [{ "x-forwarded-proto": "https" }, { forwarded: "for=1.2.3.4;proto=HTTPS" }];
		for (const headers of both) {
			expect(clientOf("127.0.0.1", headers).https).toBe(true);
			expect(clientOf("198.51.100.7", headers).https).toBe(false);
		}
		expect(clientOf("127.0.0.1", { "x-forwarded-proto": "http" }).https).toBe(false);
		expect(clientOf("127.0.0.1", { forwarded: "for=1.2.3.4;proto=http" }).https).toBe(false);
	});

	const garbage = fc.oneof(
		fc.string({ unit: character }),
		fc
			.array(
				fc.constantFrom('"', "\\", ";", ",", "for=", "proto=https", "1.2.3.4", "10.0.0.1", "[::1]", " ", "=", "for"),
				{
					maxLength: 30,
				},
			)
			.map((parts) => parts.join("")),
	);
	const address = fc.oneof(fc.ipV4(), fc.ipV6()).filter((each) => !proxies.isTrusted(each) && !/^::ffff:/i.test(each));

	it("whatever a client writes, the address is the one that the nearest proxy added, or unclear", () => {
		fc.assert(
			fc.property(garbage, garbage, address, address, (written, other, added, stranger) => {
				const v6 = added.includes(":");
				expect(addressOf("127.0.0.1", { "x-forwarded-for": `${written}, ${added}` })).toBe(added.toLowerCase());
				const node = v6 ? `"[${added}]"` : added;
				expect([added.toLowerCase(), "?127.0.0.1"]).toContain(
					addressOf("127.0.0.1", { forwarded: `${written}, for=${node};proto=http` }),
				);
				const both = { forwarded: other, "x-forwarded-for": `${written}, ${added}` };
				expect([added.toLowerCase(), "?127.0.0.1"]).toContain(addressOf("127.0.0.1", both));
				expect(clientOf(stranger, both)).toEqual({ address: stranger, proxied: false, https: false });
			}),
		);
	});

	it("what is neither an address nor a block is refused", () => {
		for (const entry of ["proxy.example", "10.0.0.0/33", "::/129", "1.2.3.4/", "1.2.3.4/8/8", "fe80::1%eth0", ""])
			expect(() => createProxies([entry])).toThrow(expect.objectContaining({ code: "config" }));
		createProxies(["0.0.0.0/0", "::/0", "192.0.2.1"]);
	});
});

interface Answer {
	status: number;
	cookie: string;
}

const call = (rig: Rig, path: string, headers: Record<string, string>, body?: string): Promise<Answer> =>
	new Promise((resolve, reject) => {
		const method = body === undefined ? "GET" : "POST";
		const sent = request(rig.url + path, { method, headers, agent: false }, (response) => {
			response.resume();
			response.on("end", () =>
				resolve({ status: response.statusCode ?? 0, cookie: response.headers["set-cookie"]?.[0] ?? "" }),
			);
		});
		sent.on("error", reject);
		sent.end(body);
	});

describe("P6.15: behind a trusted proxy", () => {
	const rigWith = async (trustedProxies: string[], limits = {}) => {
		const logged: object[] = [];
		const log = { ...silentLog, warn: (facts: object) => void logged.push(facts) };
		const rig = await createRig({ deps: { trustedProxies, log }, limits });
		onTestFinished(() => rig.close());
		return { rig, logged };
	};
	const signIn = (rig: Rig, client: string, token: string, more = {}) => {
		const headers = { "content-type": "application/json", "x-forwarded-for": client, ...more };
		return call(rig, "/v1/sign-in", headers, JSON.stringify({ token }));
	};

	it("failed sign-ins with headers that contradict each other do not lock out who sits at the proxy", async () => {
		const { rig } = await rigWith(["127.0.0.1"], { signInFailuresPerMinuteMax: 1 });
		const spoofed = { forwarded: "for=9.9.9.9" };
		for (const status of [401, 429]) expect((await signIn(rig, "1.2.3.4", "wrong", spoofed)).status).toBe(status);
		const local = await call(
			rig,
			"/v1/sign-in",
			{ "content-type": "application/json" },
			JSON.stringify({ token: TOKEN }),
		);
		expect(local.status).toBe(200);
	});

	it("failed sign-ins count against the client that made them, and keep no good token out", async () => {
		const { rig, logged } = await rigWith(["127.0.0.0/8"], { signInFailuresPerMinuteMax: 2 });
		for (const status of [401, 401, 429]) expect((await signIn(rig, "1.2.3.4", "wrong")).status).toBe(status);
		expect(logged).toMatchObject([{ client: "1.2.3.4" }, { client: "1.2.3.4" }]);
		expect((await signIn(rig, "5.6.7.8", "wrong")).status).toBe(401);
		expect((await signIn(rig, "5.6.7.8", TOKEN)).status).toBe(200);
		const { rig: direct } = await rigWith([], { signInFailuresPerMinuteMax: 2 });
		for (const status of [401, 401, 429]) expect((await signIn(direct, "1.2.3.4", "wrong")).status).toBe(status);
		expect((await signIn(direct, "5.6.7.8", "wrong")).status).toBe(429);
		expect((await signIn(direct, "5.6.7.8", TOKEN)).status).toBe(200);
	});

	it("the cookie is secure when the proxy says https", async () => {
		const { rig } = await rigWith(["127.0.0.1"]);
		const https = { "x-forwarded-proto": "https" };
		expect((await signIn(rig, "1.2.3.4", TOKEN, https)).cookie).toContain("; Secure");
		expect((await signIn(rig, "1.2.3.4", TOKEN)).cookie).not.toContain("Secure");
		const { rig: direct } = await rigWith([]);
		expect((await signIn(direct, "1.2.3.4", TOKEN, https)).cookie).not.toContain("Secure");
	});

	it("connections are counted for each client, not for the proxy", async () => {
		const { rig } = await rigWith(["127.0.0.1"], { connectionsPerClientMax: 2 });
		const stream = (client: string) => {
			const head = `GET /v1/sessions/s/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKEN}\r\n`;
			const opened = rawClient(rig.port, `${head}X-Forwarded-For: ${client}\r\n\r\n`);
			onTestFinished(() => void opened.socket.destroy());
			return opened;
		};
		const open = [stream("1.2.3.4"), stream("1.2.3.4"), stream("5.6.7.8"), stream("5.6.7.8")];
		for (const { received } of open) await waitFor(() => received().startsWith("HTTP/1.1 200 "));
		expect((await call(rig, "/healthz", { "x-forwarded-for": "1.2.3.4" })).status).toBe(429);
		expect((await call(rig, "/healthz", { "x-forwarded-for": "9.9.9.9" })).status).toBe(200);
		open[0]!.socket.destroy();
		await waitFor(async () => (await call(rig, "/healthz", { "x-forwarded-for": "1.2.3.4" })).status === 200);
	});
});
