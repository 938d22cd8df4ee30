/** Memory from the model to the command line: a scripted agent notes something, and a person looks it up and has it forgotten. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { freshFolder } from "../runtime/folder.ts";
import { daemonWith, jsonLines, run } from "./in-process.ts";

const CONFIG = `
engine: reason-act
reasonAct: { provider: scripted }
tools: { root: ./work }
memory: { enabled: true }
`;

const script = (...steps: string[]) => `/script\n${steps.map((step) => `- ${step}\n`).join("")}`;
const DONE = "{ text: done, tokensPerSecond: 0 }";

async function house(config = CONFIG) {
	const cwd = freshFolder();
	mkdirSync(join(cwd, "work"));
	return daemonWith(config, cwd);
}

it("A17: a note of one run is found in the next one, listed, searched and removed", async () => {
	const { on } = await house();
	const remember = "{ calls: [{ name: remember, args: { text: Ann likes tea } }] }";
	const learn = "{ calls: [{ name: learn, args: { lesson: Answer briefly } }] }";
	expect((await on("send", script(remember, learn, DONE), "--session", "one")).code).toBe(0);
	const found = await on(
		"send",
		script("{ calls: [{ name: recall, args: { query: tea } }] }", DONE),
		"--json",
		"--session",
		"two",
	);
	expect(found.out).toContain("> Ann likes tea");
	expect(found.out).not.toContain("> Answer briefly");

	const listed = jsonLines<Record<string, string>>((await on("memory", "--json")).out);
	expect(listed.map(({ bank, text }) => [bank, text])).toEqual([
		["agent:main", "Answer briefly"],
		["person:web/web/owner", "Ann likes tea"],
	]);
	expect(listed[1]).toMatchObject({
		agent: "main",
		channel: "web",
		sender: "owner",
		run_id: expect.any(String),
	});
	expect((await on("memory", "list", "--bank", "agent:main")).out).toMatch(/^mem_\w+\t.*\tAnswer briefly\n$/);
	const { out } = await on("memory", "search", "tea", "nothing");
	expect(out.split("\t")[0]).toBe(listed[1]!.memory_id!);

	const removed = await on("memory", "rm", listed[1]!.memory_id!);
	expect(removed.out).toBe(`forgotten: ${listed[1]!.memory_id!} (turns keep their text)\n`);
	expect((await on("memory", "rm", listed[1]!.memory_id!)).code).toBe(4);
	expect((await on("memory", "search", "tea")).out).toBe("");
	const log = await on("memory", "log", "--json");
	expect(jsonLines(log.out).map(({ event_type }) => event_type)).toEqual([
		"MEMORY_EVENT_TYPE_FORGOTTEN",
		"MEMORY_EVENT_TYPE_RETAINED",
		"MEMORY_EVENT_TYPE_RETAINED",
	]);
	expect(log.out).not.toContain("tea");
});

it("A15: what configures the daemon is neither read nor written by its agents", async () => {
	const { cwd, on } = await house();
	writeFileSync(join(cwd, "nexus.yaml"), CONFIG);
	const write = "{ calls: [{ name: write, args: { path: a.txt, content: hello } }] }";
	const reach = "{ calls: [{ name: read, args: { path: ../nexus.yaml } }, { name: bash, args: { command: id } }] }";
	const { out } = await on("send", script(write, reach, DONE), "--json");
	expect(out).toContain('created \\\\\\"a.txt\\\\\\"');
	expect(out).toContain("is outside the folder that may be used");
	expect(out).toContain('there is no tool \\\\\\"bash\\\\\\"');
});

it("says so where memory is off, and doctor names the tools that an agent does without", async () => {
	const { on, cwd } = await house(
		"engine: reason-act\nreasonAct: { provider: scripted }\nagents:\n  main: { tools: [time, recall, bash, mcp__docs__*] }\n",
	);
	expect((await on("memory")).err).toContain("memory is off");
	const { code, out } = await run(["doctor", "--port", "0", "--data", freshFolder()], { cwd });
	expect(code).toBe(0);
	for (const [tool, key] of [
		["recall", "memory.enabled"],
		["bash", "tools.root"],
		["mcp__docs__*", "mcp.servers.docs"],
	])
		expect(out).toContain(`main names ${tool}, which needs \`${key}\``);
	expect(out).not.toContain("main names time");
});
