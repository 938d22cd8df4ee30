/** The paths that a daemon keeps from its agents, and the tools that `nexus doctor` misses. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadConfig } from "../../packages/daemon/src/runtime/config/config.ts";
import { createEngineServices } from "../../packages/daemon/src/runtime/wiring/engine-services.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { run } from "../cli/in-process.ts";
import { freshFolder } from "./folder.ts";

async function engineServicesOf(text: string | undefined, files: string[] = []) {
	const cwd = freshFolder();
	for (const file of files) writeFileSync(join(cwd, file), "");
	if (text !== undefined) writeFileSync(join(cwd, "nexus.yaml"), text);
	const services = createEngineServices(await loadConfig({}, { cwd, env: {} }), silentLog);
	return { cwd, services };
}

describe("A15: the files that tools keep away from", () => {
	it("are the configuration and what it names", async () => {
		const text = `
engine: { module: ./agent.ts }
plugins: [./plugin.ts]
channels: { mine: { command: [node, ./adapter.js, --flag] } }
reasonAct: { script: play.yaml, systemPrompt: "You are\\nkind." }
`;
		const { cwd, services } = await engineServicesOf(text, ["adapter.js", "play.yaml"]);
		const files = new Set(services.protectedFiles);
		expect(files).toEqual(
			new Set(
				["nexus.yaml", "agent.ts", "plugin.ts", "adapter.js", "play.yaml", ".nexus/secret.key"].map((name) =>
					join(cwd, name),
				),
			),
		);
		expect(new Set(services.secretFiles)).toEqual(new Set([join(cwd, "nexus.yaml"), join(cwd, ".nexus/secret.key")]));
		expect(services.dataDir).toBe(join(cwd, ".nexus"));
	});

	it("are also a configuration that is not there: the next start would read it", async () => {
		const { cwd, services } = await engineServicesOf(undefined);
		expect(services.protectedFiles).toEqual([join(cwd, "nexus.yaml"), join(cwd, ".nexus/secret.key")]);
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

	it.each([
		["pi", "engine: pi\npi: { provider: openai }", ["tools.root", "tools.bash.wrapper", "mcp", "memory.enabled"]],
		["pi-coding-agent", "engine: pi-coding-agent\npi: { provider: openai }", ["tools.root", "mcp", "memory.enabled"]],
		["./own.ts", "engine: { module: ./own.ts }", ["tools.root", "tools.bash.wrapper", "mcp", "memory.enabled"]],
	])("%s: what it does not use is refused by the engine's start, and doctor says so", async (name, engine, unused) => {
		const cwd = freshFolder();
		const module = 'export default { name: "own", async *run() { yield { type: "text", delta: "hi" }; } };';
		writeFileSync(join(cwd, "own.ts"), module);
		const bash = "bash: { enabled: true, wrapper: [sh, -c] }";
		const rest = `memory: { enabled: true }\nmcp: { servers: { docs: { command: node } } }\n`;
		writeFileSync(join(cwd, "nexus.yaml"), `${engine}\ntools: { root: work, ${bash} }\n${rest}`);
		const { out } = await run(["doctor", "--json"], { cwd, env: { PATH: process.env.PATH!, OPENAI_API_KEY: "k" } });
		const lines = out.trim().split("\n");
		const found = lines.map((line) => JSON.parse(line) as { check: string; result: string; detail: string });
		const byCheck = Object.fromEntries(found.map((finding) => [finding.check, finding]));
		expect(byCheck.engine?.result).toBe("fail");
		for (const path of unused) expect(byCheck.engine?.detail).toContain(`${path}: the engine ${name} does not use it`);
		expect(byCheck.engine?.detail.split("\n").length).toBe(unused.includes("tools.bash.wrapper") ? 5 : 3);
		expect(byCheck.tools).toMatchObject({ result: "warn", detail: expect.stringContaining("does not use tools.root") });
		expect(byCheck.mcp).toMatchObject({ result: "warn", detail: expect.stringContaining("does not use mcp") });
	});

	it("A15: pi-coding-agent has its commands in the wrapper, and doctor says where", async () => {
		const cwd = freshFolder();
		const tools = (bash: string) =>
			writeFileSync(
				join(cwd, "nexus.yaml"),
				`engine: pi-coding-agent\npi: { provider: openai, filesRoot: . }\ntools: { bash: ${bash} }\n`,
			);
		const finding = async (PATH: string) => {
			const { out } = await run(["doctor", "--json"], { cwd, env: { PATH, OPENAI_API_KEY: "k" } });
			const lines = out.trim().split("\n");
			return lines.map((line) => JSON.parse(line) as { check: string }).find(({ check }) => check === "tools");
		};
		tools("{ wrapper: [sh, -c] }");
		expect(await finding(process.env.PATH!)).toMatchObject({ result: "ok", detail: expect.stringContaining("in sh") });
		expect(await finding("/nonexistent")).toMatchObject({ result: "fail" });
		tools("{ env: [JAVA_HOME] }");
		expect(await finding("/nonexistent")).toMatchObject({ result: "warn" });
		tools("{ enabled: false }");
		expect(await finding("/nonexistent")).toMatchObject({
			result: "ok",
			detail: expect.stringContaining("no commands"),
		});
	});

	it("A15: a root around the data directory is refused", async () => {
		expect((await findings("{ root: . }")).engine).toMatchObject({
			result: "fail",
			detail: expect.stringContaining("`tools.root` contains the data directory"),
		});
	});
});
