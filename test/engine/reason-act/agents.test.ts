/** Several agents in a setup made by hand: routing, hand-over, failures, and loops that end. */

import { describe, expect, test } from "vitest";
import type { LlmEvent } from "../../../src/engine/reason-act/model.ts";
import { reasonActEngine, setupOf } from "../../../src/engine/reason-act/reason-act.ts";
import type { AgentSpec, LoopSetup } from "../../../src/engine/reason-act/setup.ts";
import { END } from "../../../src/engine/reason-act/termination.ts";
import { toolRegistry } from "../../../src/engine/tools/tools.ts";
import { requestOf } from "../demo-play.ts";
import { run } from "../pi-kit.ts";
import { answer, asks, modelOf, refusal, shown, text, toolOf } from "./kit.ts";

type Answers = readonly (readonly LlmEvent[])[];

const route = toolOf("route", { terminal: true });

/** A lead, and agents by name with what their models say. */
async function team(lead: Answers, others: Record<string, Answers>, setup: Partial<LoopSetup> = {}, fallback?: string) {
	const spoken = Object.entries({ lead, ...others }).map(([name, answers]) => ({ name, ...modelOf(answers) }));
	const agents = new Map(
		spoken.map(({ name, model }): [string, AgentSpec] => {
			const orchestrator = name === "lead";
			const tools = toolRegistry(orchestrator ? [route] : []);
			return [
				name,
				{ name, orchestrator, prompt: `You are ${name}.`, model, tools, ...(orchestrator && { fallback }) },
			];
		}),
	);
	const base = await setupOf({}, spoken[0]!.model, []);
	const engine = reasonActEngine({ ...base, agents, entry: "lead", orchestrator: "lead", ...setup });
	const ran = await run(engine, requestOf("hello"));
	const calls = Object.fromEntries(spoken.map(({ name, calls }) => [name, calls]));
	return { ...ran, calls, texts: shown(ran.events).filter((line) => line.startsWith("text")) };
}

const routes = (agents: string[], more: object = {}) => answer(asks("route", { agents, reason: "go", ...more }));
const completes = (summary: string) => answer(asks("complete", { response: `${summary}!`, summary }));

describe("a lead", () => {
	test("R2-41, A19: routes to agents one after another, gets the run back and ends it", async () => {
		const { calls, texts, error } = await team([routes(["a", "b"], { phase: "plan" }), routes([END])], {
			a: [completes("did a")],
			b: [completes("did b")],
		});
		expect(error).toBeUndefined();
		expect(texts).toEqual(["text did a!", "text did b!"]);
		const read = calls.lead![1]!.messages.map(({ content }) => content);
		expect(read).toEqual(["hello", "[lead] go", "[a] did a", "[b] did b"]);
	});

	test("R2-98, A22: a change of phase is enforced, and the prompt says so while it is recent", async () => {
		const { calls } = await team([routes(["a"], { phase: "execute" }), routes([END])], { a: [answer(text("x"))] });
		expect(calls.a).toHaveLength(2);
		expect(calls.a![0]!.systemPrompt).toContain("changed from chat to execute because: go");
		const late = await team(
			[routes(["a"], { phase: "execute" }), routes([END])],
			{ a: [completes("x")] },
			{ recentTransitionMs: 0 },
		);
		expect(late.calls.a![0]!.systemPrompt).not.toContain("changed from");
	});

	test("R2-42: that never routes fails the run; R2-114: or takes its fallback", async () => {
		const silent = [answer(text("hm"))];
		expect((await team(silent, { a: [completes("x")] })).error).toMatchObject({
			code: "engine_failed",
			message: expect.stringContaining("lead gave no routing instructions in 2 attempts"),
		});
		const ended = await team(silent, {}, {}, END);
		expect(ended.error).toBeUndefined();
		const helped = await team([answer(), answer(), routes([END])], { a: [completes("x")] }, { phase: "plan" }, "a");
		expect(helped.error).toBeUndefined();
		expect(helped.calls.a).toHaveLength(1);
	});

	test("that names an agent which is not there fails the run in words", async () => {
		expect((await team([routes(["nobody"])], {})).error).toMatchObject({ message: 'there is no agent "nobody"' });
	});
});

test("an agent that fails does not stop the others, and the lead is told", async () => {
	const { calls, texts, error } = await team([routes(["a", "b"], { phase: "plan" }), routes([END])], {
		a: [refusal("401 no key")],
		b: [completes("did b")],
	});
	expect(error).toBeUndefined();
	expect(texts).toEqual(["text did b!"]);
	expect(String(calls.lead![1]!.messages[2]!.content)).toMatch(/^\[a\] a failed: .*401 no key/);
});

test("A18: a lead and an agent that call each other for ever are stopped by routesMax", async () => {
	const base = await setupOf({ routesMax: 4 }, modelOf([]).model, []);
	const { calls, error } = await team(
		[routes(["a"], { phase: "plan" })],
		{ a: [completes("again")] },
		{ limits: base.limits },
	);
	expect(error).toMatchObject({ code: "engine_failed", message: expect.stringContaining("routesMax") });
	expect(calls.lead).toHaveLength(5);
});
