/** The page's files: exactly those of its folder, with a strict policy. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createRig, expectError, type Rig, rawClient, rigForTest, waitFor } from "./rig.ts";

describe("page", () => {
	let dir: string;
	let rig: Rig;
	beforeEach(async () => {
		dir = mkdtempSync(join(tmpdir(), "nexus-page-"));
		mkdirSync(join(dir, "site", "assets"), { recursive: true });
		writeFileSync(join(dir, "secret.txt"), "secret");
		writeFileSync(join(dir, "site", "index.html"), "<!doctype html><title>Nexus</title>");
		writeFileSync(join(dir, "site", "assets", "app-1234.js"), "export {}");
		rig = await createRig({ deps: { pageDir: join(dir, "site") } });
	});
	afterEach(async () => {
		await rig.close();
		rmSync(dir, { recursive: true, force: true });
	});
	const get = (path: string, headers = {}) => fetch(rig.url + path, { headers });

	it("is served without a token, under a policy that runs nothing foreign", async () => {
		const response = await get("/");
		expect(response.status).toBe(200);
		expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
		expect(response.headers.get("content-security-policy")).toBe(
			"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		);
		expect(response.headers.get("cache-control")).toBe("no-cache");
		expect(await response.text()).toContain("Nexus");
		expect((await fetch(`${rig.url}/`, { method: "HEAD" })).status).toBe(200);
	});

	it("files with a hash in their name may be cached forever; the page itself is revalidated and answers 304", async () => {
		const script = await get("/assets/app-1234.js");
		expect(script.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
		expect(script.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
		const etag = (await get("/")).headers.get("etag")!;
		expect((await get("/", { "if-none-match": etag })).status).toBe(304);
	});

	it("nothing outside the folder can be reached", async () => {
		for (const path of ["/../secret.txt", "/..%2fsecret.txt", "/assets/../../secret.txt", "/%2e%2e/secret.txt"]) {
			const client = rawClient(rig.port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
			await waitFor(() => client.received().includes("not_found"));
			expect(client.received()).not.toMatch(/secret$/);
		}
		await expectError(await fetch(`${rig.url}/`, { method: "POST" }), 404, "not_found");
	});
});

it("without a built page / says what to do", async () => {
	const rig = await rigForTest();
	const response = await fetch(rig.url);
	expect(response.status).toBe(200);
	expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
	expect(await response.text()).toContain("build:web");
});
