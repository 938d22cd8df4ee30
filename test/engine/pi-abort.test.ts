import { type FauxResponseStep, fauxAssistantMessage, fauxText, fauxToolCall } from "@earendil-works/pi-ai";
import { describe, expect, test } from "vitest";
import { oneByOne } from "./demo-play.ts";
import {
	ask,
	deaf,
	deafModel,
	expectPaired,
	fauxEngine,
	PI_ENGINES,
	ranWell,
	run,
	said,
	shape,
	textOf,
	tool,
	toolsOf,
	usageOf,
} from "./pi-kit.ts";

/** Its two thousand words take minutes: longer than a test. */
const SLOW = { provider: { tokensPerSecond: 10 } };

const calls = (...names: string[]) =>
	fauxAssistantMessage([fauxText("I will look."), ...names.map((name, n) => fauxToolCall(name, {}, { id: `c${n}` }))], {
		stopReason: "toolUse",
	});

describe("a whole run", () => {
	test("the model sees history, system prompt and tools", async () => {
		let seen = "";
		const { engine } = await fauxEngine(
			[
				(context) => {
					seen = JSON.stringify(context.messages);
					return fauxAssistantMessage("ok");
				},
			],
			{ config: { systemPrompt: "Be a pirate." } },
		);
		const messages = [
			{ role: "user" as const, text: "first question" },
			{ role: "assistant" as const, text: "first answer" },
			{ role: "user" as const, text: "second question" },
		];
		await run(engine, ask("", { messages }));
		expect(seen).toMatch(/Be a pirate.*"name":"time".*first question.*first answer.*second question/);
	});

	test("a model that never stops asking for tools is stopped", async () => {
		const { engine, faux } = await fauxEngine([calls("time"), calls("time"), calls("time")], {
			limits: { toolTurnsMax: 2 },
		});
		const { events, error } = await run(engine, ask("go"));
		expect(error).toMatchObject({ code: "engine_failed", message: expect.stringContaining("asked for tools 2 times") });
		expect(faux.state.callCount).toBe(2);
		expectPaired(events);
	});
});

describe.each(PI_ENGINES)("%s: abort", (_, make) => {
	test("during text: ends promptly, keeps the partial, does not throw", async () => {
		const { engine } = await make([fauxAssistantMessage("word ".repeat(2_000))], SLOW);
		const ran = await ranWell(engine, ask("go"), { abortOn: (event) => event.type === "text" });
		expect(textOf(ran.events)).toMatch(/^word/);
		expect(textOf(ran.events).length).toBeLessThan(5_000);
		expect(usageOf(ran.events)).toHaveLength(1);
	});

	test("I12: in a deaf tool, the open call gets its end", async () => {
		const { engine } = await make([calls("deaf")], { tools: [tool("deaf", deaf)] });
		const ran = await ranWell(engine, ask("go"), { abortOn: (event) => event.type === "tool" });
		expect(shape(ran.events)).toBe("message text deaf:started deaf:failed usage");
	});

	test("I12: in a model call that never answers and hears no abort", async () => {
		const { response, signal } = deafModel();
		const { engine } = await make([response]);
		const ran = await ranWell(engine, ask("go"), { signal });
		expect(ran.events).toEqual([{ type: "usage", input: -1, output: -1, cache_read: -1, cache_write: -1 }]);
	});

	test("a tool over its time fails, the model reads it, the run continues", async () => {
		let told = "";
		const answer: FauxResponseStep = (context) => {
			told = JSON.stringify(context.messages.at(-1));
			return fauxAssistantMessage("It did not answer.");
		};
		const { engine } = await make([calls("slow"), answer], { tools: [tool("slow", deaf)] });
		const { events } = await ranWell(engine, ask("go", { toolTimeoutMs: 20 }));
		expect(shape(events)).toBe("message text slow:started slow:failed message text usage");
		expect(told).toContain("slow did not finish within 20 ms");
	});

	test("a failing model keeps its partial text, throws, and is not asked again", async () => {
		const half = fauxAssistantMessage("half an", { stopReason: "error", errorMessage: "503 overloaded" });
		const { engine, faux } = await make([half, fauxAssistantMessage("half an answer, repeated")]);
		const { events, error } = await run(engine, ask("go"));
		expect(textOf(events)).toBe("half an");
		expect(error).toMatchObject({ code: "engine_failed", message: expect.stringContaining("503 overloaded") });
		expect(faux.state.callCount).toBe(1);
	});
});

describe("abort", () => {
	test("I12: calls that pi never started are paired too", async () => {
		const sequential = tool("deaf", deaf, { executionMode: "sequential" });
		const { engine } = await fauxEngine([calls("deaf", "time", "time")], { tools: [sequential] });
		const ran = await ranWell(engine, ask("go"), { abortOn: (event) => event.type === "tool" });
		expectPaired(ran.events);
		expect(toolsOf(ran.events).filter(({ status }) => status === "failed")).toHaveLength(3);
	});

	test("before the start: the model is not called", async () => {
		const { engine, faux } = await fauxEngine([fauxAssistantMessage("never")]);
		expect((await run(engine, ask("go"), { signal: AbortSignal.abort() })).events).toEqual([]);
		expect(faux.state.callCount).toBe(0);
	});

	test("a reader that leaves stops the agent", async () => {
		const stopped = Promise.withResolvers<void>();
		const listening = tool("listening", async (_id, _params, signal, onUpdate) => {
			signal?.addEventListener("abort", () => stopped.resolve());
			onUpdate?.(said("at work"));
			return deaf();
		});
		const { engine } = await fauxEngine([calls("listening")], { tools: [listening] });
		const run = engine.run(ask("go"), { signal: new AbortController().signal });
		for await (const event of oneByOne(run)) {
			if (event.type === "tool" && event.status === "progress") break;
		}
		await stopped.promise;
	});

	test("two runs of one engine do not touch each other", async () => {
		const { engine } = await fauxEngine(
			[fauxAssistantMessage("a ".repeat(2_000)), fauxAssistantMessage("b".repeat(200))],
			{
				provider: { tokensPerSecond: 2_000 },
			},
		);
		const [stopped, whole] = await Promise.all([
			run(engine, ask("one"), { abortOn: (event) => event.type === "text" }),
			run(engine, ask("two")),
		]);
		expect(textOf(stopped.events).length).toBeLessThan(4_000);
		expect(textOf(whole.events)).toBe("b".repeat(200));
	});
});
