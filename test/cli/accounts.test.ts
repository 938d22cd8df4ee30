/** Accounts on chat platforms where a person looks first: the greeting of `nexus up`, and `nexus doctor`. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { storeAccount } from "../../packages/daemon/src/runtime/runtime.ts";
import { freshFolder } from "../runtime/folder.ts";
import { telegramForTest } from "../serving.ts";
import { nexus, run } from "./in-process.ts";

const started = async (data: string) => {
	const cwd = freshFolder();
	writeFileSync(join(cwd, "nexus.yaml"), "engine: demo\nlog: { level: error }\n");
	const daemon = nexus(["up", "--port", "0"], { cwd, env: { NEXUS_DATA: data, NO_COLOR: "1" }, tty: true });
	// One signal: a second one leaves at once, and here that would leave the daemon behind.
	onTestFinished(async () => void (await daemon.end("SIGINT")));
	await daemon.until(({ out }) => out.includes("Ctrl-C stops"));
	return daemon;
};

describe("nexus up", () => {
	it("names the accounts and the pairing requests", async () => {
		const data = join(freshFolder(), "data");
		const fake = await telegramForTest();
		storeAccount(data, { channel: "telegram", account: "main", settings: { token: fake.token, api_url: fake.url } });
		const first = await started(data);
		expect(first.out).toMatch(/^ {2}Chats telegram\/main$/m);
		expect(first.out).not.toContain("Pair");
		await fake.inject({ text: "hello", from: "42" });
		await expect.poll(() => fake.visible("42").length, { timeout: 30_000 }).toBe(1);
		const code = /nexus pair (\w+)/.exec(fake.visible("42")[0]!)![1]!;
		expect((await first.end("SIGINT")).code).toBe(0);
		expect((await started(data)).out).toMatch(
			new RegExp(`^ {2}Pair {2}.+ on telegram/main wants to write: \`.*pair ${code}\` approves$`, "m"),
		);
	});

	it("says nothing about chats where there are none", async () => {
		expect((await started(join(freshFolder(), "data"))).out).not.toMatch(/Chats|Pair/);
	});
});

describe("nexus doctor", () => {
	it("checks every account: complete, and taken by the platform", async () => {
		const cwd = freshFolder();
		const data = join(cwd, "data");
		const fake = await telegramForTest();
		writeFileSync(join(cwd, "nexus.yaml"), "engine: demo\nchannels: { signal: { accounts: { home: {} } } }\n");
		const stored = (account: string, token: string) =>
			storeAccount(data, { channel: "telegram", account, settings: { token, api_url: fake.url } });
		stored("main", fake.token);
		stored("old", "1:refused");
		const { code, out } = await run(["doctor", "--port", "0"], { cwd, env: { NEXUS_DATA: data } });
		expect(code).toBe(1);
		expect(out).toMatch(/^ok {4}account +telegram\/main: @/m);
		expect(out).toMatch(
			/^fail {2}account +telegram\/old: .+\n +→ add it again with `nexus adapter add telegram --account old`$/m,
		);
		expect(out).toMatch(/^fail {2}account +signal\/home lacks number\n +→ correct it in .*nexus\.yaml$/m);
		expect(out).not.toContain(fake.token);
	});
});
