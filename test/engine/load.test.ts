import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { demoEngine } from "../../packages/daemon/src/engine/demo/demo.ts";
import { chooseEngine, loadEngine } from "../../packages/daemon/src/engine/engine.ts";
import { collect, requestOf } from "./demo-play.ts";

/** Modules as users write them, right and wrong. */
const MODULES = {
	"object.ts": `import type { Engine } from "nexus-stream";
		export default { name: "typed", async *run() { yield { type: "text", delta: "hi" } as const; } } satisfies Engine;`,
	"named.mjs": `export const engine = { name: "named", async *run() { yield { type: "text", delta: "hi" }; } };`,
	"my-agent.js": `export default async function* (request) { yield { type: "text", delta: request.messages.at(-1).text }; }`,
	"instance.ts": `class Agent { name = "instance"; #word = "hi"; async *run() { yield { type: "text", delta: this.#word }; } }
		export default new Agent();`,
	"nothing.ts": "export {};",
	"other.ts": "export const run = 1; export const agent = 2;",
	"no-run.ts": `export default { name: "x" };`,
	"no-name.ts": "export default { async *run() {} };",
	"bad-types.ts": "export default { name: 5, run: null, close: true };",
	"empty-name.ts": `export default { name: "", async *run() {} };`,
	"plain-function.ts": "export default function run() {}",
	"async-run.ts": `export default { name: "forgot-the-star", async run() { throw new Error("never seen"); } };`,
	"sync-run.js": `export default { name: "forgot-async", *run() {} };`,
	"text.ts": `export default "agent";`,
	"null.ts": "export default null;",
	"throws.ts": `\nconst key = undefined;\nthrow new Error("MY_KEY is not set");`,
	"throws-text.js": `throw "no";`,
	"syntax.ts": "export default {\n\tname: 'x',\n\trun( {\n};",
	"syntax.js": "export default {\n\tname: 'x',\n\trun( {\n};",
	"bad-import.ts": `import "./not-there.ts"; export default {};`,
	"slow.ts": "await new Promise(() => setInterval(() => {}, 1000)); export default {};",
	"agent.py": "def run(): pass",
	"folder.ts/index.ts": "",
	"common/package.json": `{ "type": "commonjs" }`,
	"common/agent.ts": "export default { name: 'x', async *run() {} };",
	"common/agent.js": "import 'node:fs';\nexport default { name: 'x', async *run() {} };",
	"common/agent.mts": `export default { name: "mts", async *run() { yield { type: "text", delta: "hi" }; } };`,
};

type Outcome = { name: string; text: string } | { code: string; message: string };

let dir: string;
let outcomes: Record<string, Outcome>;

/** Loaded by Node itself, as the daemon does, and not by the test runner's own module loader. */
beforeAll(async () => {
	dir = mkdtempSync(join(tmpdir(), "nexus-load-"));
	mkdirSync(join(dir, "folder.ts"));
	mkdirSync(join(dir, "common"));
	for (const [name, source] of Object.entries(MODULES)) writeFileSync(join(dir, name), source);
	const door = pathToFileURL(join(import.meta.dirname, "../../packages/daemon/src/engine/engine.ts")).href;
	const script = `
		import { loadEngine } from ${JSON.stringify(door)};
		const request = { session: "s", runId: "r", messages: [{ role: "user", text: "echo" }], attachments: [], toolTimeoutMs: 1 };
		const outcomes = {};
		for (const module of [...${JSON.stringify(Object.keys(MODULES))}, "folder.ts", "missing.ts"]) {
			try {
				const limit = module === "slow.ts" ? { moduleLoadMs: 200 } : {};
				const engine = await loadEngine({ module: "./" + module }, { base: ${JSON.stringify(dir)}, ...limit });
				let text = "";
				for await (const event of engine.run(request, { signal: new AbortController().signal })) text += event.delta;
				outcomes[module] = { name: engine.name, text };
			} catch (error) {
				outcomes[module] = { code: error.code, message: error.message };
			}
		}
		process.stdout.write(JSON.stringify(outcomes), () => process.exit(0));
	`;
	const { stdout } = await promisify(execFile)(process.execPath, [
		"--conditions=nexus-source",
		"--input-type=module",
		"--eval",
		script,
	]);
	outcomes = JSON.parse(stdout);
});

afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe("a module that is an agent", () => {
	test.each([
		["object.ts", { name: "typed", text: "hi" }],
		["named.mjs", { name: "named", text: "hi" }],
		["my-agent.js", { name: "my-agent", text: "echo" }],
		["instance.ts", { name: "instance", text: "hi" }],
		["common/agent.mts", { name: "mts", text: "hi" }],
	])("%s", (module, outcome) => {
		expect(outcomes[module]).toEqual(outcome);
	});
});

describe("an invalid module is refused with what was found", () => {
	test.each([
		["nothing.ts", "exports nothing"],
		["other.ts", "has no default export; it exports `agent`, `run`"],
		["no-run.ts", "in its default export, `run` is missing"],
		["no-name.ts", "in its default export, `name` is missing"],
		["bad-types.ts", "`name` is a number and `run` is null and `close` is a boolean"],
		["empty-name.ts", "`name` is empty"],
		["plain-function.ts", "is a function, but not an async generator (`async function*`)"],
		["async-run.ts", "in its default export, `run` is not an async generator (`async *run`)"],
		["sync-run.js", "in its default export, `run` is not an async generator (`async *run`)"],
		["text.ts", "its default export is a string"],
		["null.ts", "its default export is null"],
		["agent.py", "does not end in .ts, .mts, .js, .mjs"],
		["folder.ts", "is not a file"],
	])("%s: %s, with an agent to copy", (module, found) => {
		expect(outcomes[module]).toMatchObject({ code: "config", message: expect.stringContaining(found) });
		expect(outcomes[module]).toMatchObject({ message: expect.stringContaining(`engine module ./${module}: `) });
		expect(outcomes[module]).toMatchObject({
			message: expect.stringContaining("async *run({ messages }, { signal })"),
		});
	});

	test.each([
		["throws.ts", "cannot be loaded: MY_KEY is not set (line 3)"],
		["throws-text.js", "cannot be loaded: no"],
		["syntax.ts", "Expected ',', got ';' (line 4)"],
		["syntax.js", "Unexpected token ';'; `node --check "],
		["bad-import.ts", "not-there.ts"],
		["slow.ts", "still waiting after 200 ms"],
		["missing.ts", "relative to the folder of the config"],
		["common/agent.ts", `common/package.json makes Node read it as CommonJS; change that line to "type": "module"`],
		["common/agent.ts", "or rename the file to agent.mts"],
		["common/agent.js", "or rename the file to agent.mjs"],
	])("%s: %s, which no agent to copy would help with", (module, found) => {
		const outcome = outcomes[module] as { code: string; message: string };
		expect(outcome).toMatchObject({ code: "config", message: expect.stringContaining(found) });
		expect(outcome.message).toContain(`engine module ./${module}: `);
		expect(outcome.message).not.toContain("async *run");
	});

	test("the agent in the refusal is one: copied into a file, it loads and answers", async () => {
		const refusal = outcomes["nothing.ts"];
		if (!refusal || !("message" in refusal)) throw new Error("nothing.ts was not refused");
		const example = refusal.message.slice(refusal.message.indexOf("export default"));
		writeFileSync(join(dir, "copied.js"), example);
		const engine = await loadEngine({ module: "copied.js" }, { base: dir });
		const events = await collect(engine.run(requestOf("x"), { signal: new AbortController().signal }));
		expect([engine.name, events]).toEqual(["my-agent", [{ type: "text", delta: "You said: x" }]]);
	});
});

describe("which engine", () => {
	test("what the config says always wins", () => {
		expect(chooseEngine("demo", { pi: { provider: "openai" } }, { OPENAI_API_KEY: "k" })).toBe("demo");
		expect(chooseEngine({ module: "./a.ts" }, {}, {})).toEqual({ module: "./a.ts" });
	});

	test("without a model it is the demo, with one it is pi", () => {
		expect(chooseEngine(undefined, {}, {})).toBe("demo");
		expect(chooseEngine(undefined, { pi: { systemPrompt: "be brief" } }, {})).toBe("demo");
		expect(chooseEngine(undefined, {}, { OPENAI_API_KEY: " " })).toBe("demo");
		for (const key of ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"])
			expect(chooseEngine(undefined, {}, { [key]: "k" })).toBe("pi");
		expect(chooseEngine(undefined, { pi: { provider: "anthropic" } }, {})).toBe("pi");
		expect(chooseEngine(undefined, { pi: { model: "gpt-5.4" } }, {})).toBe("pi");
		expect(chooseEngine(undefined, { pi: { baseUrl: "http://127.0.0.1:11434/v1" } }, {})).toBe("pi");
	});

	test("`demo` and `pi` load by name", async () => {
		expect(await loadEngine("demo", { base: dir })).toBe(demoEngine);
		const pi = await loadEngine("pi", {
			base: dir,
			config: { pi: { provider: "openai" } },
			env: { OPENAI_API_KEY: "k" },
		});
		expect(pi.name).toBe("pi");
	});
});
