/** The settings that adapters declare for their accounts, and the ones that a process requires. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { loadAccount } from "../../../packages/adapter/src/serve/account.ts";
import { CHANNELS } from "../../../packages/platforms/src/platforms.ts";
import { loadPlatform } from "../platform.ts";

describe.each(CHANNELS)("the settings of %s", (channel) => {
	it("have defaults that fit their patterns, and depend on settings before them", async () => {
		const { settings } = (await loadPlatform(channel)).info;
		for (const [index, { name, default: usual, pattern, when }] of settings.entries()) {
			if (usual && pattern) expect(usual, name).toMatch(new RegExp(pattern, "u"));
			const earlier = settings.slice(0, index).map((each) => each.name);
			if (when) expect(earlier, name).toContain(when.name);
		}
	});
});

describe("an account", () => {
	const load = async (settings: Record<string, string>) => {
		const folder = mkdtempSync(join(tmpdir(), "nexus-settings-"));
		onTestFinished(() => rmSync(folder, { recursive: true }));
		const file = join(folder, "account.json");
		writeFileSync(file, JSON.stringify({ id: "main", settings }));
		const { info } = await loadPlatform("telegram");
		return loadAccount(info, "main", { NEXUS_ACCOUNT_FILE: file }).settings;
	};

	it("needs what its other settings call for, and nothing else", async () => {
		expect(await load({ token: "1:a" })).toMatchObject({ token: "1:a", drafts: "false" });
		await expect(load({ token: "1:a", webhook_url: "https://x.example" })).rejects.toThrow("lacks webhook_secret");
		await expect(load({})).rejects.toThrow("lacks token");
	});
});
