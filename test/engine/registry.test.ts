import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { chooseEngine, ENGINES, loadEngine } from "../../packages/daemon/src/engine/engine.ts";
import type { EngineName } from "../../packages/daemon/src/engine/engines.ts";
import type { EngineEntry } from "../../packages/daemon/src/engine/entry.ts";
import { parseConfig } from "../../packages/daemon/src/runtime/config/config-file.ts";
import { configSchemaFor } from "../../packages/daemon/src/runtime/config/config-schema.ts";
import { collect, requestOf } from "./demo-play.ts";

interface EchoConfig {
	prefix?: string;
}

/** Everything that a new engine brings along. */
const echo: EngineEntry<EchoConfig> = {
	name: "echo",
	section: "echo",
	configSchema: ({ group, text }) => group({ prefix: text("what it says first") }),
	priority: (config) => (config?.prefix === undefined ? 0 : 10),
	async load(config, { base }) {
		return {
			name: "echo",
			async *run({ messages }) {
				yield { type: "text", delta: `${config?.prefix} ${messages.at(-1)?.text} in ${base}` };
			},
		};
	},
};

const engines = [...ENGINES, echo as EngineEntry];
const schema = configSchemaFor(engines);
const check = (text: string) => parseConfig(text, "nexus.yaml", schema);

describe("an engine that is added to the registry", () => {
	test("is allowed in the configuration, with its own section", () => {
		expect(check("engine: echo\necho: { prefix: hear }\n")).toEqual({ engine: "echo", echo: { prefix: "hear" } });
	});

	test("is named where another is misspelt, and its keys are checked like all others", () => {
		expect(() => check("engine: ecko\n")).toThrow(/allowed: demo, pi, pi-coding-agent, reason-act, echo, or \{ module/);
		expect(() => check("echo: { prefx: a }\n")).toThrow(/1:9: echo\.prefx: unknown key; did you mean "prefix"\?/);
		expect(() => check("echo: { prefix: 1 }\n")).toThrow(/echo\.prefix: 1 is not allowed; allowed: what it says first/);
		expect(() => parseConfig("echo: {}\n", "nexus.yaml")).toThrow(/1:1: echo: unknown key/);
	});

	test("is chosen by its own rule, and loaded with its section and the folder of the configuration", async () => {
		const config = check("echo: { prefix: hear }\n");
		const chosen = chooseEngine(undefined, config, {}, engines);
		expect(chosen).toBe("echo");
		expect(chooseEngine(undefined, {}, {}, engines)).toBe("demo");
		const engine = await loadEngine(chosen, { config, base: "/conf", engines });
		const run = engine.run(requestOf("me"), { signal: new AbortController().signal });
		expect(await collect(run)).toEqual([{ type: "text", delta: "hear me in /conf" }]);
	});

	test("that is not there is refused with those that are", async () => {
		await expect(loadEngine("ecko" as EngineName, { base: "/", engines })).rejects.toMatchObject({
			code: "config",
			message:
				'there is no engine "ecko"; there are demo, pi, pi-coding-agent, reason-act, echo, and { module: ./my-agent.ts }',
		});
	});
});

test("pi's files root is relative to the folder of the configuration", async () => {
	const base = mkdtempSync(join(tmpdir(), "nexus-registry-"));
	writeFileSync(join(base, "notes"), "a file, not a folder");
	const config = { pi: { provider: "openai", filesRoot: "notes" } };
	for (const name of ["pi", "pi-coding-agent"] as const) {
		await expect(loadEngine(name, { base, config, env: { OPENAI_API_KEY: "k" } })).rejects.toMatchObject({
			message: expect.stringContaining(join(base, "notes")),
		});
	}
});

test("no two engines share a name", () => {
	expect(new Set(ENGINES.map(({ name }) => name)).size).toBe(ENGINES.length);
});
