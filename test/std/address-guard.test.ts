import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import {
	type AddressKind,
	AddressRefused,
	addressKind,
	isAllowEntry,
	urlProblem,
} from "../../packages/adapter/src/net/address-guard.ts";
import { guardedFetch } from "../../packages/adapter/src/net/guarded-fetch.ts";

/** Separated by white space. */
const ADDRESSES: Record<AddressKind, string> = {
	public: `1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 172.15.255.255 172.32.0.0 192.167.255.255 100.63.255.255
		100.128.0.0 2606:4700::1111 2a00:1450::1 ::ffff:8.8.8.8 64:ff9b::808:808 64:ff9b::8.8.8.8
		2002:808:808::1`,
	loopback: "127.0.0.1 127.255.255.254 ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 0:0:0:0:0:ffff:7f00:0001 [::1]",
	private: `10.0.0.0 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 100.127.255.255 fc00::1
		fdff:ffff::1 fec0::1 ::ffff:10.1.2.3 ::ffff:c0a8:0101`,
	"link-local": "169.254.0.1 169.254.255.255 fe80::1 febf::1 fe80::1%eth0 ::ffff:169.254.1.1",
	metadata: `169.254.169.254 ::ffff:169.254.169.254 ::ffff:a9fe:a9fe fd00:ec2::254 100.100.100.200 168.63.129.16
		64:ff9b::169.254.169.254 2002:a9fe:a9fe::`,
	reserved: `0.0.0.0 0.1.2.3 192.0.2.1 198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 255.255.255.255 :: ::7f00:1
		ff02::1 2001:db8::1 64:ff9b::7f00:1 64:ff9b::10.0.0.1 64:ff9b:1::808:808 2002:7f00:1:: 2001::1
		::ffff:0.0.0.0`,
};

describe("address guard: kinds of addresses", () => {
	for (const [kind, addresses] of Object.entries(ADDRESSES))
		test.each(addresses.split(/\s+/))(`%s is ${kind}`, (address) => expect(addressKind(address)).toBe(kind));

	test.each(["example.org", "", "1.2.3", "localhost"])("%j is not an address", (text) =>
		expect(addressKind(text)).toBeUndefined(),
	);
});

describe("address guard: addresses as they are written", () => {
	const problem = (url: string, allowLoopback = false) => urlProblem(new URL(url), { allowLoopback });

	test("https to a name or a public address passes", () => {
		expect(problem("https://example.org/mcp")).toBeUndefined();
		expect(problem("https://8.8.8.8/")).toBeUndefined();
	});

	test("http passes to this machine only, and only when that is allowed", () => {
		for (const url of ["http://127.0.0.1:1/", "http://localhost:1/", "http://[::1]/", "http://a.localhost/"]) {
			expect(problem(url)).toContain("this machine");
			expect(problem(url, true)).toBeUndefined();
		}
		expect(problem("http://example.org/", true)).toContain("use https");
		expect(problem("http://8.8.8.8/", true)).toContain("use https");
		expect(problem("http://10.0.0.1/", true)).toContain("private");
	});

	describe("Z27: what the operator vouches for", () => {
		const listed = (url: string, ...allow: string[]) => urlProblem(new URL(url), { allow });

		test("a host with its port passes, with http, too; another port does not", () => {
			expect(listed("http://192.168.1.5:11434/v1", "192.168.1.5:11434")).toBeUndefined();
			expect(listed("http://192.168.1.5:11435/v1", "192.168.1.5:11434")).toContain("private");
			expect(listed("http://models.lan:8000/", "Models.lan:8000")).toBeUndefined();
			expect(listed("http://models.lan/", "models.lan:8000")).toContain("use https");
			expect(listed("https://[fd12::1]/", "[fd12::1]:443")).toBeUndefined();
			expect(listed("http://127.0.0.1:1/", "127.0.0.1:1")).toBeUndefined();
		});

		test("a block passes, and nothing outside it", () => {
			expect(listed("http://10.1.2.3/", "10.1.0.0/16")).toBeUndefined();
			expect(listed("http://10.2.2.3/", "10.1.0.0/16")).toContain("private");
			expect(listed("https://[fd12::9]/", "fd12::/64")).toBeUndefined();
			expect(listed("http://8.8.8.8/", "10.1.0.0/16")).toContain("use https");
		});

		test("no block opens a metadata service; its address and port do", () => {
			expect(listed("http://169.254.169.254/", "169.254.0.0/16", "169.254.169.254/32")).toContain("metadata");
			expect(listed("http://169.254.169.254/", "169.254.169.254:80")).toBeUndefined();
		});

		test.each(["10.0.0.0/8", "::1", "models.lan:8000", "[fd12::1]:443", "10.0.0.1:80"])("%s is an entry", (entry) =>
			expect(isAllowEntry(entry)).toBe(true),
		);
		test.each(["models.lan", "10.0.0.0/33", "a b:1", "models.lan:0", "models.lan:70000", "http://a:1", "u@a:1", ""])(
			"%j is not a block",
			(entry) => expect(isAllowEntry(entry)).toBe(false),
		);
	});

	test.each([
		"https://2130706433/",
		"https://0x7f.1/",
		"https://0177.0.0.1/",
		"https://127.1/",
		"https://[::ffff:7f00:1]/",
	])("%s is this machine, however it is spelled", (url) => expect(problem(url)).toContain("this machine"));
});

describe("address guard: requests", () => {
	const seen: { host: string | undefined; method: string | undefined; body: string }[] = [];
	const web = createServer((request, response) => {
		let body = "";
		request.setEncoding("utf8").on("data", (text: string) => {
			body += text;
		});
		request.on("end", () => {
			seen.push({ host: request.headers.host, method: request.method, body });
			if (request.url === "/away") response.writeHead(302, { location: "http://127.0.0.1:1/" }).end();
			else if (request.url === "/none") response.writeHead(204).end();
			else response.writeHead(200, { "x-two": ["a", "b"] }).end("hello");
		});
	}).listen(0, "127.0.0.1");
	afterAll(() => void web.close());
	const port = () => (web.address() as AddressInfo).port;
	const guard = (resolve: (name: string) => Promise<readonly string[]>) => {
		const made = guardedFetch({ allowLoopback: true, resolve });
		onTestFinished(() => made.close());
		return made.fetch;
	};

	test("the checked address is dialled, under the name", async () => {
		const names: string[] = [];
		const fetch = guard(async (name) => {
			names.push(name);
			return ["127.0.0.1"];
		});
		const response = await fetch(`http://any.localhost:${port()}/`, {
			method: "POST",
			body: "in",
			headers: { a: "b" },
		});
		expect([response.status, response.headers.get("x-two"), await response.text()]).toEqual([200, "a, b", "hello"]);
		expect(names).toEqual(["any.localhost"]);
		expect(seen.at(-1)).toEqual({ host: `any.localhost:${port()}`, method: "POST", body: "in" });
		expect((await fetch(`http://any.localhost:${port()}/none`)).body).toBeNull();
	});

	test("one address that is not allowed refuses the name, before anything is sent", async () => {
		const before = seen.length;
		const fetch = guard(async () => ["127.0.0.1", "10.0.0.1"]);
		await expect(fetch(`https://mixed.example:${port()}/`)).rejects.toThrow(
			"mixed.example (10.0.0.1) is a private address",
		);
		await expect(guard(async () => [])(`https://none.example/`)).rejects.toThrow("no address");
		expect(seen).toHaveLength(before);
	});

	test("a name in the operator's block may be dialled with http; the same name elsewhere may not", async () => {
		const made = (address: string) => guardedFetch({ allow: ["127.0.0.0/8"], resolve: async () => [address] });
		const response = await made("127.0.0.1").fetch(`http://models.lan:${port()}/`);
		expect(await response.text()).toBe("hello");
		await expect(made("8.8.8.8").fetch(`http://models.lan:${port()}/`)).rejects.toThrow("use https");
		await expect(made("169.254.169.254").fetch(`https://models.lan:${port()}/`)).rejects.toThrow("metadata");
	});

	test("a name is resolved again for every request: one that turns to this machine is refused", async () => {
		const answers = [["127.0.0.1"], ["10.0.0.1"]];
		const fetch = guard(async () => answers.shift()!);
		await (await fetch(`http://any.localhost:${port()}/`)).text();
		await expect(fetch(`http://any.localhost:${port()}/`)).rejects.toThrow("private");
	});

	test("a check tells what is forbidden from what cannot be resolved", async () => {
		const made = guardedFetch({
			resolve: async (name) => Promise.reject(Object.assign(new Error(name), { code: "ENOTFOUND" })),
		});
		const refused = (url: string) => made.check(url).catch((cause: unknown) => cause);
		expect(await refused("https://gone.example/")).toMatchObject({
			refusal: "unresolved",
			message: expect.stringContaining("ENOTFOUND"),
		});
		expect(await refused("https://10.0.0.1/")).toBeInstanceOf(AddressRefused);
		expect(await refused("https://10.0.0.1/")).toMatchObject({ refusal: "forbidden" });
		await made.check("https://8.8.8.8/");
	});

	test("a name that leads to this machine needs to be allowed", async () => {
		const made = guardedFetch({ resolve: async () => ["127.0.0.1"] });
		await expect(made.fetch(`https://rebind.example:${port()}/`)).rejects.toThrow("this machine");
	});

	test("a redirect is not followed", async () => {
		const fetch = guard(async () => ["127.0.0.1"]);
		await expect(fetch(`http://any.localhost:${port()}/away`)).rejects.toThrow("redirect");
	});

	test("a signal ends it", async () => {
		const fetch = guard(async () => ["127.0.0.1"]);
		await expect(fetch(`http://any.localhost:${port()}/`, { signal: AbortSignal.abort() })).rejects.toThrow();
	});
});
