/** The questions of `nexus adapter add`, when it checks an answer, and what it keeps of the others. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { freshFolder } from "../runtime/folder.ts";
import { telegramForTest } from "../serving.ts";
import { nexus, run } from "./in-process.ts";

/** The command at a terminal: answers each prompt when it has come, and nothing that is not asked. */
async function adding(...args: string[]) {
	const folder = freshFolder();
	const data = join(folder, "data");
	const command = nexus(["adapter", "add", ...args], { cwd: folder, env: { NEXUS_DATA: data }, tty: true });
	let seen = 0;
	return {
		command,
		async answer(prompt: string, words: string): Promise<void> {
			await command.until(({ err }) => err.indexOf(prompt, seen) >= 0);
			seen = command.err.indexOf(prompt, seen) + prompt.length;
			command.type(`${words}\r`);
		},
		stored: (file: string) => JSON.parse(readFileSync(join(data, "accounts", file), "utf8")).settings as object,
		hasStored: () => existsSync(join(data, "accounts")),
	};
}

describe("nexus adapter add", () => {
	it("asks for a webhook's secret only when there is a webhook, and for nothing that has a default", async () => {
		const { command, answer, stored } = await adding("telegram", "--no-test");
		await answer("Bot token", "123:abc");
		await answer("Public webhook address", "");
		expect((await command.end()).code).toBe(0);
		expect(command.err).not.toMatch(/Webhook secret|Native drafts|Bot API server/);
		expect(stored("telegram.main.json")).toEqual({ token: "123:abc" });
	});

	it("checks each answer when it is given", async () => {
		const { command, answer, stored } = await adding("telegram", "--no-test");
		await answer("Bot token", "no token");
		await answer("that does not fit; expected: Bot token", "");
		await answer("this one is needed", "123:abc");
		await answer("Public webhook address", "http://not.safe");
		await answer("that does not fit", "https://nexus.example/hook");
		await answer("Webhook secret", "with spaces");
		await answer("that does not fit", "s3cret");
		expect((await command.end()).code).toBe(0);
		expect(command.err).not.toContain("s3cret");
		expect(stored("telegram.main.json")).toEqual({
			token: "123:abc",
			webhook_url: "https://nexus.example/hook",
			webhook_secret: "s3cret",
		});
	});

	it("asks again when the platform refuses, and Enter keeps the answers that were right", async () => {
		const fake = await telegramForTest();
		const { command, answer, stored } = await adding("telegram", "--set", `api_url=${fake.url}`);
		await answer("Bot token", "1:wrong");
		await answer("Public webhook address", "");
		await answer("[as before]", fake.token);
		await answer("Public webhook address", "");
		await answer(`Bot API server [${fake.url}]`, "");
		const { code, err } = await command.end();
		expect([code, err]).toEqual([0, expect.stringContaining("works: ")]);
		expect(err).not.toContain(fake.token);
		expect(stored("telegram.main.json")).toEqual({ token: fake.token, api_url: fake.url });
	});

	it("asks for what the chosen backend needs", async () => {
		const { command, answer, stored } = await adding("imessage", "--no-test");
		await answer("bluebubbles or imsg [bluebubbles]", "imsg");
		expect((await command.end()).code).toBe(0);
		expect(command.err).not.toContain("BlueBubbles server");
		expect(stored("imessage.main.json")).toEqual({ backend: "imsg" });
	});

	it("checks what flags say, too", async () => {
		const { code, err } = await run(["adapter", "add", "telegram", "--set", "webhook_url=ftp://x"], {
			env: { NEXUS_DATA: join(freshFolder(), "data") },
		});
		expect([code, err]).toEqual([2, expect.stringContaining("--set webhook_url: that does not fit; expected: Public")]);
	});
});
