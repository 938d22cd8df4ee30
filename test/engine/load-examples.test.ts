import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { loadEngine } from "../../packages/daemon/src/engine/engine.ts";
import { collect, countOf, oneByOne, requestOf, textOf } from "./demo-play.ts";

const examples = join(import.meta.dirname, "../../examples");
const signal = new AbortController().signal;

async function answer(module: string, text: string) {
	const engine = await loadEngine({ module }, { base: examples });
	return { name: engine.name, events: await collect(engine.run(requestOf(text), { signal })) };
}

test("examples/agent.mjs answers", async () => {
	const { name, events } = await answer("./agent.mjs", "hello there");
	expect([name, textOf(events)]).toEqual(["parrot", "You said: hello there"]);
});

test("examples/agent.mjs stops on an abort", async () => {
	const engine = await loadEngine({ module: "./agent.mjs" }, { base: examples });
	const control = new AbortController();
	const said: string[] = [];
	const run = async () => {
		const run = engine.run(requestOf("one two three four"), { signal: control.signal });
		for await (const event of oneByOne(run)) {
			if (event.type === "text") said.push(event.delta);
			if (said.length === 2) control.abort();
		}
	};
	await expect(run()).rejects.toMatchObject({ name: "AbortError" });
	expect(said).toEqual(["You said:", " one"]);
});

test("examples/tool-agent.mjs shows a tool, and a card after the sentence that announces it", async () => {
	const { events } = await answer("./tool-agent.mjs", "a mug, please");
	expect(events.map((event) => event.type)).toEqual(["tool", "tool", "text", "part", "text"]);
	const [started, completed, , card] = events;
	expect(started).toMatchObject({ status: "started", args: { query: "a mug, please" } });
	expect(completed).toMatchObject({ status: "completed", summary: "found Mug" });
	expect(card).toMatchObject({ modality: "card", payload: expect.stringContaining('"title":"Mug"') });
	const none = await answer("./tool-agent.mjs", "a house");
	expect([countOf(none.events, "part"), textOf(none.events)]).toEqual([0, expect.stringContaining("no such thing")]);
});

test("examples/nexus.yaml names an agent that loads", async () => {
	const config = parse(readFileSync(join(examples, "nexus.yaml"), "utf8"));
	expect((await loadEngine(config.engine, { base: examples })).name).toBe("parrot");
});

test("examples/nexus.yaml is still YAML with its commented keys switched on", () => {
	const text = readFileSync(join(examples, "nexus.yaml"), "utf8");
	const switchedOn = text
		.replace(/^# (?=(pi|host|port|data|durability): ?|(pi):$)/gmu, "")
		.replace(/^# {3}(?=[a-zA-Z]+: )/gmu, "  ");
	const config = parse(switchedOn);
	expect(Object.keys(config).sort()).toEqual(["data", "durability", "engine", "host", "pi", "port"]);
	expect(config.pi).toMatchObject({ provider: "ollama", model: "qwen3", apiKeyEnv: "MY_KEY", filesRoot: "./docs" });
});
