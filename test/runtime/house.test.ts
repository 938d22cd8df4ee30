/** What a daemon keeps from its agents, and what `nexus doctor` says of their tools. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/runtime/config.ts";
import { createHouse } from "../../src/runtime/house.ts";
import { silentLog } from "../../src/std/log.ts";
import { run } from "../cli/in-process.ts";
import { freshFolder } from "./folder.ts";

async function houseOf(text: string | undefined, files: string[] = []) {
	const cwd = freshFolder();
	for (const file of files) writeFileSync(join(cwd, file), "");
	if (text !== undefined) writeFileSync(join(cwd, "nexus.yaml"), text);
	const house = createHouse(await loadConfig({}, { cwd, env: {} }), silentLog);
	return { cwd, house };
}

describe("A15: the files that tools keep away from", () => {
	it("are the configuration and what it names", async () => {
		const text = `
engine: { module: ./agent.ts }
plugins: [./plugin.ts]
channels: { mine: { command: [node, ./adapter.js, --flag] } }
reasonAct: { script: play.yaml, systemPrompt: "You are\\nkind." }
`;
		const { cwd, house } = await houseOf(text, ["adapter.js", "play.yaml"]);
		const files = new Set(house.protectedFiles);
		expect(files).toEqual(
			new Set(
				["nexus.yaml", "agent.ts", "plugin.ts", "adapter.js", "play.yaml", ".nexus/secret.key"].map((name) =>
					join(cwd, name),
				),
			),
		);
		expect(new Set(house.secretFiles)).toEqual(new Set([join(cwd, "nexus.yaml"), join(cwd, ".nexus/secret.key")]));
		expect(house.dataDir).toBe(join(cwd, ".nexus"));
	});

	it("are also a configuration that is not there: the next start would read it", async () => {
		const { cwd, house } = await houseOf(undefined);
		expect(house.protectedFiles).toEqual([join(cwd, "nexus.yaml"), join(cwd, ".nexus/secret.key")]);
	});
});

describe("nexus doctor about tools", () => {
	const findings = async (tools: string, env: Record<string, string> = {}) => {
		const cwd = freshFolder();
		mkdirSync(join(cwd, "work"));
		const text = `engine: reason-act\nreasonAct: { provider: scripted }\ntools: ${tools}\n`;
		writeFileSync(join(cwd, "nexus.yaml"), text);
		const { out } = await run(["doctor", "--json"], { cwd, env });
		const found = out
			.trim()
			.split("\n")
			.map((line) => JSON.parse(line) as { check: string; result: string; detail: string });
		return Object.fromEntries(found.map((finding) => [finding.check, finding]));
	};

	it("A15: warns of a shell without a wrapper, and fails for one that is not there", async () => {
		expect((await findings("{ root: work }")).tools).toMatchObject({
			result: "ok",
			detail: "files below work, no commands",
		});
		expect((await findings("{ root: work, bash: { enabled: true } }")).tools).toMatchObject({ result: "warn" });
		const wrapped = "{ root: work, bash: { enabled: true, wrapper: [sh, -c] } }";
		expect((await findings(wrapped, { PATH: process.env.PATH! })).tools).toMatchObject({ result: "ok" });
		expect((await findings(wrapped, { PATH: "/nonexistent" })).tools).toMatchObject({ result: "fail" });
	});

	it("A15: a root around the data directory is refused", async () => {
		expect((await findings("{ root: . }")).engine).toMatchObject({
			result: "fail",
			detail: expect.stringContaining("`tools.root` contains the data directory"),
		});
	});
});
