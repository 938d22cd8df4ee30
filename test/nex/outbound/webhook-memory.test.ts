/** Webhook requests that wait for an adapter that does not read. */

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { Platform } from "../../../packages/adapter/src/kit.ts";
import { checkSignable } from "../../../packages/daemon/src/nex/accounts/monitor-port.ts";
import { manualClock } from "../../clock.ts";
import { monitorOf, node } from "./process-kit.ts";

const REQUESTS = 12;
const BODY = Buffer.alloc(256 * 1024).toString("base64");

it("I11: what was answered 504 is dropped: an adapter that reads again is not given it any more", async () => {
	const folder = mkdtempSync(join(tmpdir(), "nexus-webhook-"));
	const [ready, go] = [join(folder, "ready"), join(folder, "go")];
	const program = `
		const fs = require("node:fs");
		fs.writeFileSync(${JSON.stringify(ready)}, "");
		const read = () => fs.existsSync(${JSON.stringify(go)}) ? serve() : setTimeout(read, 5);
		function serve() {
			let seen = 0;
			require("node:readline").createInterface({ input: process.stdin }).on("line", (text) => {
				const line = JSON.parse(text);
				if (line.type !== "webhook") return;
				seen++;
				console.log(JSON.stringify({ type: "webhook_response", id: line.id, status: 200, body: String(seen) }));
			});
		}
		read();
	`;
	const clock = manualClock();
	const monitor = monitorOf({ command: node(program), clock });
	onTestFinished(async () => {
		const stopped = monitor.stop();
		clock.advance(60_000);
		await stopped;
		rmSync(folder, { recursive: true, force: true });
	});
	await expect.poll(() => existsSync(ready), { timeout: 20_000 }).toBe(true);
	const ask = (body: string) => monitor.webhook({ method: "POST", query: "", headers: {}, body }, 20_000);
	const asked = Array.from({ length: REQUESTS }, () => ask(BODY));
	await new Promise(setImmediate);
	clock.advance(20_001);
	const answers = await Promise.all(asked);
	expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: REQUESTS }, () => 504));
	writeFileSync(go, "");
	const { status, body } = await ask("");
	expect(status).toBe(200);
	// The first one stands in the pipe already; the last is the one that was asked now.
	expect(Number(body)).toBeLessThanOrEqual(2);
});

it("P6.15: a POST that cannot be signed is refused by what the adapter's info says, before its body", () => {
	const info = (more: object) =>
		({ channel: "x", version: "1", protocol: 1, supports: ["monitor", "webhook"], settings: [], ...more }) as never;
	const head = (headers: Record<string, string>, query = "", method = "POST") => ({ method, query, headers });
	const signed = info({ webhook: { requiredHeaders: ["X-Signature"], requiredQuery: ["key"] } });
	const forbidden = expect.objectContaining({ code: "forbidden" });
	for (const lacking of [head({}), head({ "x-signature": "" }, "key=1"), head({ "x-signature": "v" }, "key=")])
		expect(() => checkSignable("x", signed, lacking)).toThrow(forbidden);
	checkSignable("x", signed, head({ "x-signature": "v" }, "key=1"));
	checkSignable("x", signed, head({}, "", "GET"));
	checkSignable("x", info({}), head({}));
	checkSignable("x", undefined, head({}));
	const deaf = info({ supports: ["monitor"] });
	expect(() => checkSignable("x", deaf, head({}))).toThrow(expect.objectContaining({ code: "not_found" }));
});

it.each(["telegram", "slack", "whatsapp", "sms", "imessage", "gmail"])(
	"P6.15: %s says what its requests are signed with, so that others are refused unread",
	async (channel) => {
		const { platform } = (await import(`../../../packages/platforms/src/${channel}/${channel}.ts`)) as {
			platform: Platform;
		};
		const { info } = platform;
		const { requiredHeaders = [], requiredQuery = [] } = info.webhook ?? {};
		const head = (method: string, headers: Record<string, string>, query: string) => ({ method, headers, query });
		const forbidden = expect.objectContaining({ code: "forbidden" });
		expect(() => checkSignable(channel, info, head("POST", {}, ""))).toThrow(forbidden);
		const signed = Object.fromEntries(requiredHeaders.map((name) => [name, "x"]));
		checkSignable(channel, info, head("POST", signed, requiredQuery.map((name) => `${name}=x`).join("&")));
	},
);
