/** How attempts end, as a table: no loop and no model. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { END } from "../../../packages/daemon/src/engine/agents.ts";
import {
	type AttemptEnd,
	enforcing,
	lenient,
	mustTerminate,
	PHASES,
	reminderFor,
} from "../../../packages/daemon/src/engine/reason-act/termination.ts";
import { atEffort } from "../../effort.ts";
import "../../seed.ts";

const ended = (fields: Partial<AttemptEnd> = {}): AttemptEnd => ({
	agent: { name: "writer", orchestrator: false },
	phase: { enforce: true },
	attempt: 1,
	attemptsMax: 2,
	content: "words",
	...fields,
});
const lead = { name: "lead", orchestrator: true };
const call = (name: string, args: unknown) => ({ callId: "1", name, args });

describe("enforcement", () => {
	test("R2-34, R2-35, R2-90, R2-108, R2-130: chat and brainstorm are exempt, all other phases are not", () => {
		const agent = { name: "writer", orchestrator: false };
		const exempt = Object.entries(PHASES).filter(([, phase]) => !mustTerminate({ agent, phase }));
		expect(exempt.map(([name]) => name)).toEqual(["chat", "brainstorm"]);
		expect(Object.keys(PHASES)).toHaveLength(7);
	});

	test("A19: an orchestrator is enforced in the exempt phases, too", () => {
		expect(enforcing.decide(ended({ agent: lead, phase: PHASES.chat! })).type).toBe("retry");
	});

	test("R2-34: an exempt agent just ends, also with an empty answer (R2-119)", () => {
		for (const content of ["words", ""])
			expect(enforcing.decide(ended({ phase: PHASES.chat!, content }))).toEqual({ type: "end" });
	});

	test("R2-36, R2-43, R2-60, R2-94: two executions are one reminder", () => {
		expect(enforcing.decide(ended({ attempt: 1 })).type).toBe("retry");
		expect(enforcing.decide(ended({ attempt: 2 })).type).toBe("end");
	});

	test("R2-113: the number of attempts is the caller's", () => {
		expect(enforcing.decide(ended({ attempt: 2, attemptsMax: 5 })).type).toBe("retry");
		expect(enforcing.decide(ended({ attempt: 1, attemptsMax: 1 })).type).toBe("end");
	});

	test("R2-37, R2-39, R2-40, R2-109, A18: reminders fit the agent and ask for no repetition", () => {
		expect(reminderFor(true)).toMatch(/routing instructions.*orchestrator.*MUST route.*Do not repeat your answer/);
		expect(reminderFor(false)).toMatch(/'complete' tool yet.*MUST use the 'complete' tool.*Do not repeat your answer/);
	});
});

describe("after the attempts", () => {
	test("R2-41, R2-44: an agent is completed back to the orchestrator with what it said", () => {
		expect(enforcing.decide(ended({ attempt: 2, orchestrator: "lead" }))).toEqual({
			type: "route",
			decision: { agents: ["lead"], reason: "writer stopped without saying that its work is done" },
			completion: { agent: "writer", summary: "words", by: "auto" },
		});
	});

	test("R2-41: without an orchestrator the run is over", () => {
		expect(enforcing.decide(ended({ attempt: 2 }))).toMatchObject({ type: "end", completion: { by: "auto" } });
	});
});

describe("terminal tools", () => {
	test("R2-33, A19: complete hands summary and response over", () => {
		const terminal = call("complete", { response: "Done.", summary: "did it" });
		expect(enforcing.decide(ended({ terminal, orchestrator: "lead" }))).toEqual({
			type: "route",
			decision: { agents: ["lead"], reason: "writer has completed its work" },
			completion: { agent: "writer", summary: "did it", by: "tool" },
			text: "Done.",
		});
		expect(enforcing.decide(ended({ terminal }))).toMatchObject({ type: "end", text: "Done." });
	});

	test("A19: what complete leaves out comes from the answer", () => {
		expect(enforcing.decide(ended({ terminal: call("complete", null) }))).toEqual({
			type: "end",
			completion: { agent: "writer", summary: "words", by: "tool" },
		});
	});

	test("a routing decision names agents, phase and reason; END ends", () => {
		const route = (args: object) => enforcing.decide(ended({ agent: lead, terminal: call("route", args) }));
		expect(route({ agents: ["a", "b"], phase: "plan", reason: "why", parallel: true })).toEqual({
			type: "route",
			decision: { agents: ["a", "b"], phase: "plan", reason: "why", parallel: true },
		});
		expect(route({ agents: [END], reason: "done" })).toEqual({ type: "end" });
		expect(route({ agents: ["a", END] })).toMatchObject({ decision: { agents: ["a"] } });
		expect(route({})).toEqual({ type: "end" });
	});

	test("A19: end_conversation ends with its text", () => {
		const terminal = call("end_conversation", { response: "Bye." });
		expect(enforcing.decide(ended({ agent: lead, terminal }))).toEqual({ type: "end", text: "Bye." });
	});
});

describe("failures", () => {
	test("an agent's failure goes to the orchestrator, and is the run's without one", () => {
		expect(enforcing.decide(ended({ failure: "no network", orchestrator: "lead" }))).toMatchObject({
			type: "route",
			completion: { agent: "writer", summary: "writer failed: no network", by: "failure" },
		});
		expect(enforcing.decide(ended({ failure: "no network" }))).toEqual({ type: "fail", message: "no network" });
		expect(enforcing.decide(ended({ agent: lead, orchestrator: "lead", failure: "x" })).type).toBe("fail");
	});
});

test("R2-126: another strategy can be chosen", () => {
	expect(lenient.decide(ended())).toEqual({ type: "end" });
	expect(lenient.decide(ended({ agent: lead }))).toEqual({ type: "end" });
	expect(lenient.decide(ended({ failure: "x" }))).toEqual({ type: "fail", message: "x" });
});

test("R2-107: whatever an attempt was, no strategy asks for more than attemptsMax of them", () => {
	const end = fc.record({
		agent: fc.constantFrom(lead, { name: "writer", orchestrator: false }),
		phase: fc.record({ enforce: fc.boolean() }),
		attempt: fc.integer({ min: 1, max: 6 }),
		attemptsMax: fc.integer({ min: 1, max: 4 }),
		terminal: fc.option(
			fc.record({
				callId: fc.constant("1"),
				name: fc.constantFrom("complete", "route", "end_conversation", "other"),
				args: fc.anything(),
			}),
			{ nil: undefined },
		),
		content: fc.string(),
		failure: fc.option(fc.string(), { nil: undefined }),
		orchestrator: fc.constantFrom(undefined, "lead"),
		fallback: fc.constantFrom(undefined, "writer", END),
	});
	fc.assert(
		fc.property(end, fc.constantFrom(enforcing, lenient), (end, strategy) => {
			const verdict = strategy.decide(end);
			if (verdict.type === "retry") expect(end.attempt).toBeLessThan(end.attemptsMax);
			if (verdict.type === "route") expect(verdict.decision.agents.length).toBeGreaterThan(0);
		}),
		{ numRuns: atEffort(2000, 200) },
	);
});
