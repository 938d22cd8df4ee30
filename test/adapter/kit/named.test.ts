/** Files at addresses that a platform or a message names: the address guard stands before each of them. */

import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { download, fetchNamed } from "../../../packages/adapter/src/platform/network.ts";

async function server(location?: () => string) {
	const seen: { path: string; headers: IncomingHttpHeaders }[] = [];
	const web = createServer((request, response) => {
		seen.push({ path: request.url ?? "", headers: request.headers });
		if (request.url === "/away") response.writeHead(302, { location: location?.() ?? "/file" }).end();
		else response.end("file");
	});
	await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
	onTestFinished(() => {
		web.closeAllConnections();
		web.close();
	});
	return { url: `http://127.0.0.1:${(web.address() as AddressInfo).port}`, seen };
}

const bytesMax = 1000;

describe("Z27: addresses that a platform names", () => {
	test("the platform's own API may be anywhere; another address on this machine is refused, and nothing is sent there", async () => {
		const home = await server();
		const other = await server();
		expect((await download(`${home.url}/file`, { bytesMax, home: home.url })).toString()).toBe("file");
		await expect(download(`${other.url}/file`, { bytesMax, home: home.url })).rejects.toThrow("this machine");
		await expect(download(`${home.url}/file`, { bytesMax })).rejects.toThrow("this machine");
		expect(other.seen).toEqual([]);
	});

	test.each([
		"http://169.254.169.254/latest/meta-data",
		"https://10.0.0.1/",
		"https://[fd00::1]/",
		"file:///etc/passwd",
	])("%s is refused", async (url) => {
		await expect(download(url, { bytesMax, home: "https://api.example" })).rejects.toMatchObject({
			fault: "unavailable",
		});
	});

	test("a redirect is followed within the platform, and not out of the guard's sight", async () => {
		const home = await server();
		expect((await download(`${home.url}/away`, { bytesMax, home: home.url })).toString()).toBe("file");
		expect(home.seen.map(({ path }) => path)).toEqual(["/away", "/file"]);
		const other = await server();
		const leading = await server(() => `${other.url}/file`);
		await expect(download(`${leading.url}/away`, { bytesMax, home: leading.url })).rejects.toThrow("this machine");
		expect(other.seen).toEqual([]);
		const round = await server(() => "/away");
		await expect(download(`${round.url}/away`, { bytesMax, home: round.url })).rejects.toThrow("redirects");
	});

	test("what identifies us goes along within the origin", async () => {
		const home = await server();
		await download(`${home.url}/away`, { bytesMax, home: home.url, headers: { authorization: "Bearer t" } });
		expect(home.seen.map(({ headers }) => headers.authorization)).toEqual(["Bearer t", "Bearer t"]);
	});

	test("what is sent somewhere is not sent on", async () => {
		const home = await server();
		const { signal } = new AbortController();
		const sending = fetchNamed(`${home.url}/away`, { method: "POST", body: "x", home: home.url, signal });
		await expect(sending).rejects.toThrow("redirect");
	});
});
