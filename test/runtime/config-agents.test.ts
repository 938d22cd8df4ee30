/** `agents` and `phases` of nexus.yaml: what loads, and what is refused at start, with its line. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { BROKER_LIMITS } from "../../packages/daemon/src/broker/port.ts";
import { loadEngine } from "../../packages/daemon/src/engine/engine.ts";
import { completeConfig } from "../../packages/daemon/src/runtime/config/config.ts";
import { parseConfig, readConfigFile } from "../../packages/daemon/src/runtime/config/config-file.ts";
import { createEngineServices } from "../../packages/daemon/src/runtime/wiring/engine-services.ts";
import { collect, requestOf, textOf } from "../engine/demo-play.ts";
import { freshFolder } from "./folder.ts";

const context = { signal: new AbortController().signal };

function mistakes(lines: string[]): string[] {
	try {
		parseConfig(
			["engine: reason-act", ...lines, ""].join("\n"),
			"nexus.yaml",
			undefined,
			(path) => path === "./here.md",
		);
	} catch (cause) {
		expect(cause).toMatchObject({ code: "config" });
		return (cause as Error).message.split("\n");
	}
	return [];
}

async function engineFrom(text: string, files: Record<string, string> = {}) {
	const base = freshFolder();
	for (const [name, content] of Object.entries({ "nexus.yaml": text, ...files }))
		writeFileSync(join(base, name), content);
	const config = completeConfig({ ...readConfigFile(join(base, "nexus.yaml"), "nexus.yaml"), base });
	const services = createEngineServices(config, { warn: () => {} });
	return await loadEngine(config.engine!, { base, env: {}, config, services });
}

describe("A25: agents that load", () => {
	test("three lines make a single agent, without an orchestrator", async () => {
		const lines = [
			"engine: reason-act",
			"reasonAct: { provider: scripted }",
			"agents: { only: { prompt: Be brief. } }",
		];
		const engine = await engineFrom(lines.join("\n"));
		const events = await collect(engine.run(requestOf("/script\n- { text: Hi., tokensPerSecond: 0 }"), context));
		expect(textOf(events)).toBe("Hi.");
	});

	test("the example of the documentation, with a team that routes", async () => {
		const yaml = `
engine: reason-act
reasonAct: { provider: scripted, script: ./play.yaml }
agents:
  lead: { orchestrator: true, prompt: ./lead.md }
  writer: { prompt: ./writer.md, tools: [read, edit, mcp__docs__*], thinking: low }
  operator: { prompt: You operate., tools: [bash], approval: { bash: always }, timeoutMs: { bash: 60000 }, fallback: writer }
phases: { chat: { enforce: false }, plan: {}, lunch: { enforce: false, attemptsMax: 1 } }
tools: { describe: { time: "⏰ {zone}" } }
`;
		const play = `
- { agent: lead, calls: [{ name: route, args: { agents: [writer], phase: lunch, reason: write } }], tokensPerSecond: 0 }
- { agent: writer, text: Words., tokensPerSecond: 0 }
`;
		const engine = await engineFrom(yaml, { "lead.md": "Lead.", "writer.md": "Write.", "play.yaml": play });
		const events = await collect(engine.run(requestOf("go"), context));
		expect(events).toContainEqual({ type: "text", delta: "Words.", agent: "writer" });
		expect(events).toContainEqual({ type: "phase", name: "lunch", because: "write", agent: "lead" });
	});

	test("today's section and its one agent", async () => {
		expect(mistakes(["reasonAct: { provider: scripted, phases: { plan: { attemptsMax: 1 } } }"])).toEqual([]);
	});

	test("a program that embeds the daemon gets the same errors", async () => {
		const config = completeConfig({ engine: "reason-act", agents: { a: {}, b: {} }, base: freshFolder() });
		const services = createEngineServices(config, { warn: () => {} });
		await expect(loadEngine("reason-act", { base: ".", env: {}, config, services })).rejects.toMatchObject({
			code: "config",
			message: expect.stringContaining("orchestrator: true"),
		});
	});
});

describe("A25: refused at start, with file and line", () => {
	const lead = "  lead: { orchestrator: true }";

	test.each([
		[
			"a prompt's file that is missing",
			["agents:", "  a: { prompt: ./gone.md }"],
			["nexus.yaml:3:8: agents.a.prompt: ./gone.md cannot be read; a path is relative to this file"],
		],
		[
			"a tool that is not there",
			["agents:", "  a: { tools: [raed] }"],
			[/^nexus\.yaml:3:8: agents\.a\.tools: there is no tool "raed"; there are ask, bash,/],
		],
		[
			"a second orchestrator",
			["agents:", lead, "  b: { orchestrator: true }"],
			["nexus.yaml:4:8: agents.b.orchestrator: lead is the orchestrator; there can be one"],
		],
		[
			"several agents without one",
			["agents: { a: {}, b: {} }"],
			[/^nexus\.yaml:2:1: agents: 2 agents need one that routes/],
		],
		[
			"a circle of fallbacks",
			["agents:", lead, "  a: { fallback: b }", "  b: { fallback: a }"],
			[
				"nexus.yaml:4:8: agents.a.fallback: fallback cycle: a → b → a",
				"nexus.yaml:5:8: agents.b.fallback: fallback cycle: b → a → b",
			],
		],
		[
			"a fallback that is not there",
			["agents: { a: { fallback: z } }"],
			[/agents\.a\.fallback: there is no agent "z"; there are a$/],
		],
		["END as an agent's fallback", ["agents: { a: { fallback: END } }"], [/END is for the orchestrator/]],
		["an agent called END", ["agents: { END: {} }"], [/agents\.END: END is what ends/]],
		["no agent at all", ["agents: {}"], [/agents: there is none/]],
		[
			"a channel's agent that is not there",
			["agents: { a: {} }", "channels:", "  web: { agent: b }"],
			['nexus.yaml:4:10: channels.web.agent: there is no agent "b"; there are a'],
		],
		[
			"an account's agent that is not there",
			["agents: { a: {} }", "channels:", "  web: { accounts: { x: { agent: b } } }"],
			[/^nexus\.yaml:4:\d+: channels\.web\.accounts\.x\.agent/],
		],
		[
			"A3: a tool's limit above the Broker's",
			["broker: { toolMs: 50 }", "agents:", "  a: { timeoutMs: { bash: 60 } }"],
			[
				"nexus.yaml:4:27: agents.a.timeoutMs.bash: 60 is above broker.toolMs (50), which ends the run first; raise that, or lower this",
			],
		],
		[
			"A3: everybody's limit above the Broker's",
			["reasonAct: { timeoutMs: { time: 600001 } }"],
			[/reasonAct\.timeoutMs\.time: 600001 is above broker\.toolMs \(600000\)/],
		],
		["an unknown key", ["agents: { a: { promt: x } }"], [/agents\.a\.promt: unknown key; did you mean "prompt"/]],
	])("%s", (_what, lines, expected) => {
		const said = mistakes(lines as string[]);
		expect(said).toHaveLength(expected.length);
		for (const [n, one] of expected.entries())
			if (typeof one === "string") expect(said[n]).toBe(one);
			else expect(said[n]).toMatch(one);
	});

	test("what no other engine has", () => {
		expect(() => parseConfig("engine: demo\nagents: { a: {} }\nphases: {}\n", "nexus.yaml")).toThrow(
			/2:1: agents: only the engine reason-act has agents.*\n.*3:1: phases: only/,
		);
	});

	test("prompts that are there, globs and MCP names are fine", () => {
		expect(mistakes(["agents: { a: { prompt: ./here.md, tools: [re*, mcp__x__y, mcp__*, '*'] } }"])).toEqual([]);
	});

	test("the Broker's limit of a tool is what the check takes it for", () => {
		expect(BROKER_LIMITS.toolMs).toBe(600_000);
	});
});

describe("R2-126: a strategy of one's own", () => {
	const yaml = (module: string) =>
		`engine: reason-act\nreasonAct: { provider: scripted, phase: plan, termination: { module: ${module} } }\n`;

	test("decides when an attempt is over", async () => {
		const strategy = `export default { name: "mine", decide: ({ attempt }) => attempt < 2 ? { type: "retry", reminder: "more" } : { type: "end" } };`;
		const engine = await engineFrom(yaml("./mine.ts"), { "mine.ts": strategy });
		const script = "/script\n- { text: One., tokensPerSecond: 0 }\n- { text: Two., tokensPerSecond: 0 }";
		expect(textOf(await collect(engine.run(requestOf(script), context)))).toBe("One.Two.");
	});

	test("that is not a strategy is refused with the reason; one that gives no verdict fails its run", async () => {
		await expect(engineFrom(yaml("./gone.ts"))).rejects.toThrow(/reasonAct\.termination.*gone\.ts cannot be loaded/);
		await expect(engineFrom(yaml("./mine.ts"), { "mine.ts": "export default 1;" })).rejects.toThrow("has no `decide`");
		const odd = await engineFrom(yaml("./mine.ts"), { "mine.ts": `export default { name: "odd", decide: () => 7 };` });
		await expect(collect(odd.run(requestOf("x"), context))).rejects.toThrow('the strategy "odd" gave no verdict');
	});
});

test("tools.describe: a template says what a tool does", async () => {
	const engine = await engineFrom(
		'engine: reason-act\nreasonAct: { provider: scripted }\ntools: { describe: { time: "⏰ in {zone}{nothing}" } }\n',
	);
	const script = "/script\n- { calls: [{ name: time, args: { zone: UTC } }] }\n- { text: ok }";
	const events = await collect(engine.run(requestOf(script), context));
	expect(events).toContainEqual(expect.objectContaining({ status: "started", summary: "⏰ in UTC" }));
});

test("A15: the configuration, prompts and modules are files that no tool writes", () => {
	const base = freshFolder();
	mkdirSync(base, { recursive: true });
	const config = completeConfig({
		base,
		data: join(base, "data"),
		file: join(base, "nexus.yaml"),
		engine: { module: "./e.ts" },
		plugins: ["./p.ts"],
		agents: { a: { prompt: "./a.md" }, b: { prompt: "You are b." } },
	});
	writeFileSync(join(base, "a.md"), "You are a.");
	const { protectedFiles } = createEngineServices(config, { warn: () => {} });
	expect(new Set(protectedFiles)).toEqual(
		new Set(["nexus.yaml", "p.ts", "e.ts", "a.md", "data/secret.key"].map((name) => join(base, name))),
	);
});

describe("A11: names of tools in the configuration", () => {
	test("the example of the documentation loads", () => {
		expect(mistakes(['approvals: { policy: { bash: always, "mcp__docs__*": never } }'])).toEqual([]);
		expect(
			mistakes(['channels: { telegram: { acl: { allow: [{ sender: "7", tools: ["mcp__docs__*", read] }] } } }']),
		).toEqual([]);
	});

	test.each([
		['agents: { a: { tools: ["mcp__*__write"] } }', "agents.a.tools"],
		['approvals: { policy: { "mcp__*__write": always } }', "approvals.policy"],
		[
			'channels: { telegram: { acl: { allow: [{ sender: "7", tools: ["mcp__*__read"] }] } } }',
			"channels.telegram.acl.allow",
		],
		['channels: { telegram: { acl: { allow: [{ sender: "7", approve: ["*sh"] }] } } }', "channels.telegram.acl.allow"],
		['channels: { telegram: { acl: { deny: [{ sender: "7", tools: [bash] }] } } }', "channels.telegram.acl.deny"],
	])("what would have no effect is refused: %s", (line, where) => {
		expect(mistakes([line]).join("\n")).toContain(where);
	});
});
