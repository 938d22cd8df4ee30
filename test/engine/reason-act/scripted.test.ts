/** The scripted model as it ships: from a file, from the message, repeatable; and the engine as it is configured. */

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { chooseEngine, loadEngine } from "../../../packages/daemon/src/engine/engine.ts";
import { reasonAct } from "../../../packages/daemon/src/engine/reason-act/entry.ts";
import { parseScript } from "../../../packages/daemon/src/engine/reason-act/model/scripted.ts";
import { parseConfig } from "../../../packages/daemon/src/runtime/config/config-file.ts";
import { collect, requestOf, textOf } from "../demo-play.ts";
import { run } from "../pi-kit.ts";
import { engineServicesOf } from "../tools/kit.ts";
import { shown } from "./kit.ts";

const signal = new AbortController().signal;

async function loaded(reasonAct: object, files: Record<string, string> = {}, tools: object = {}) {
	const base = mkdtempSync(join(tmpdir(), "nexus-reason-act-"));
	for (const [name, text] of Object.entries(files)) writeFileSync(join(base, name), text);
	const config = { reasonAct: { provider: "scripted", ...reasonAct }, tools };
	return await loadEngine("reason-act", { base, config, env: {}, services: engineServicesOf({ config }) });
}

const SCRIPT = `
steps:
  - reasoning: Where is it?
    text: "Let me look. "
    calls: [{ name: read, args: { path: note.txt } }]
    tokensPerSecond: 0
  - { text: It says hello., tokensPerSecond: 0 }
`;

describe("a script", () => {
	test("from a file drives the whole loop, and always in the same pieces", async () => {
		const engine = await loaded({ script: "play.yaml" }, { "play.yaml": SCRIPT, "note.txt": "hello" }, { root: "." });
		// A machine that is very busy may say that the tool takes longer than usual.
		const play = async () =>
			(await collect(engine.run(requestOf("go"), { signal }))).filter(
				(event) => event.type !== "log" && (event.type !== "tool" || event.status !== "progress"),
			);
		const first = await play();
		expect(textOf(first)).toBe("Let me look. It says hello.");
		expect(first).toContainEqual(expect.objectContaining({ name: "read", status: "completed", result: "hello" }));
		expect(await play()).toEqual(first);
	});

	test("in the message itself", async () => {
		const engine = await loaded({});
		const script =
			'/script\n- { calls: [{ name: time, args: { zone: "No/Where" } }] }\n- { text: so be it, tokensPerSecond: 0 }';
		const events = await collect(engine.run(requestOf(script), { signal }));
		expect(shown(events)).toEqual([
			...["call_main_0_0 started", "call_main_0_0 failed"],
			...["message", expect.stringMatching(/^text so/), ...shown(events).slice(4)],
		]);
		expect(textOf(events)).toBe("so be it");
		expect(textOf(await collect(engine.run(requestOf("/script\n{ stps: 1 }"), { signal })))).toContain("this script");
	});

	test("without one it says what it is", async () => {
		const events = await collect((await loaded({})).run(requestOf("Ahoy"), { signal }));
		expect(textOf(events)).toMatch(/^Scripted model, no real one: you said “Ahoy”/);
	});

	test("A24: a 429 passes", async () => {
		const steps = "- error: { message: slow down, status: 429 }\n- { text: Hi., tokensPerSecond: 0 }";
		const engine = await loaded({ script: "s.yaml", retryDelayMsMax: 1 }, { "s.yaml": steps });
		expect(textOf(await collect(engine.run(requestOf("x"), { signal })))).toBe("Hi.");
	});

	test("A1: a failure `untilContinued` passes in the run that continues", async () => {
		const steps = "- { text: Half and half., tokensPerSecond: 0, error: { message: broke, untilContinued: true } }";
		const engine = await loaded({ script: "s.yaml" }, { "s.yaml": steps });
		expect((await run(engine, requestOf("x"))).error).toMatchObject({ message: expect.stringContaining("broke") });
		const continues = { runId: "run_1", checkpoint: null, shown: "Half and " };
		expect(textOf(await collect(engine.run({ ...requestOf("x"), continues }, { signal })))).toBe("half.");
	});

	test("an engine says whether all that answers is scripted", async () => {
		expect(await loaded({})).toMatchObject({ scripted: true });
		const mixed = {
			reasonAct: { provider: "scripted" },
			agents: { main: { provider: "openai", model: "gpt-5-mini" } },
		};
		const place = {
			base: tmpdir(),
			config: mixed,
			env: { OPENAI_API_KEY: "k" },
			services: engineServicesOf({ config: mixed }),
		};
		expect(await loadEngine("reason-act", place)).toMatchObject({ scripted: false });
	});

	test("a stop ends its waiting", async () => {
		const engine = await loaded({ script: "s.yaml" }, { "s.yaml": "- { text: one two three four, waitMs: 600000 }" });
		const stop = new AbortController();
		const ran = run(engine, requestOf("x"), { signal: stop.signal });
		stop.abort();
		expect(await ran).toMatchObject({ events: [{ type: "usage" }] });
	});

	test.each([
		["{", "is not YAML"],
		["[]", "steps"],
		["- { txt: a }", "steps.0"],
		["seed: x\nsteps: [{}]", "seed"],
	])("that is wrong is refused: %j", (text, words) => {
		expect(() => parseScript(text, "play.yaml")).toThrow(words);
	});
});

describe("configuration", () => {
	test("every key is checked, and the engine is never chosen by itself", () => {
		const text = `engine: reason-act
reasonAct: { provider: scripted, phase: plan, phases: { plan: { enforce: true, attemptsMax: 3 } }, termination: lenient, attemptsMax: 2,
  modelCallsMax: 64, routesMax: 16, toolCallsMax: 9, tokensMax: 9, costUsdMax: 0.5, toolsParallelMax: 8, toolIndicatorGapMs: 0,
  toolDurationMs: 1000, commandMs: 30000, recentTransitionMs: 30000, timeoutMs: { bash: 5 }, retriesMax: 0, retryDelayMsMax: 1, script: a.yaml }
`;
		expect(parseConfig(text, "nexus.yaml")).toMatchObject({ engine: "reason-act", reasonAct: { costUsdMax: 0.5 } });
		expect(() => parseConfig("reasonAct: { attemptMax: 1 }\n", "nexus.yaml")).toThrow('did you mean "attemptsMax"?');
		expect(() => parseConfig("reasonAct: { costUsdMax: 0 }\n", "nexus.yaml")).toThrow("a number above 0");
		expect(chooseEngine(undefined, { reasonAct: { provider: "scripted" } }, {})).toBe("demo");
	});

	test("mistakes are said at the start, with the key to change", async () => {
		await expect(loaded({ script: "none.yaml" })).rejects.toMatchObject({
			code: "config",
			message: expect.stringContaining("reasonAct.script"),
		});
		await expect(loaded({ phase: "plann" })).rejects.toMatchObject({
			message: expect.stringContaining("plan, execute"),
		});
		await expect(loaded({}, {}, { root: "none" })).rejects.toMatchObject({
			message: expect.stringContaining("tools.root"),
		});
		await expect(loaded({ provider: "openai" })).rejects.toMatchObject({
			message: expect.stringContaining("reasonAct.apiKeyEnv"),
		});
		await expect(loaded({ provider: "openai", script: "a" })).rejects.toMatchObject({
			message: expect.stringContaining("scripted"),
		});
	});

	test("the scripted model needs no key, the others the same as pi", () => {
		expect(reasonAct.checkKeys({ provider: "scripted" }, {})).toMatchObject({ ok: true });
		expect(reasonAct.checkKeys({ provider: "openai" }, {})).toMatchObject({ ok: false });
		expect(reasonAct.checkKeys({}, { OPENAI_API_KEY: "k" })).toMatchObject({ ok: true });
	});
});
