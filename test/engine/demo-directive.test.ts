import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DIRECTIVE_KEYS, directiveHelp, parseDirective } from "../../packages/daemon/src/engine/demo/directive.ts";
import { character } from "../character.ts";

const asked = (text: string) => {
	const parsed = parseDirective(text);
	if (parsed.kind !== "directive") throw new Error(`not understood: ${JSON.stringify(parsed)}`);
	return parsed.directive;
};

const problemsOf = (text: string): readonly string[] => {
	const parsed = parseDirective(text);
	if (parsed.kind !== "help") throw new Error(`understood: ${JSON.stringify(parsed)}`);
	return parsed.problems;
};

describe("what is asked", () => {
	test("every key of the README line is read", () => {
		expect(
			asked("/demo tokens=500 rate=20 reasoning=1 tools=2 cards=3 fail_after=120 tool_ms=7 seed=9 messages=2"),
		).toEqual({
			tokens: 500,
			rate: 20,
			reasoning: 1,
			tools: 2,
			cards: 3,
			fail_after: 120,
			tool_ms: 7,
			seed: 9,
			messages: 2,
		});
	});

	test("white space around and between is free", () => {
		expect(asked("  /demo\ttokens=5\n rate=0 ")).toMatchObject({ tokens: 5, rate: 0 });
	});

	test("a failure later than the default length makes the answer long enough to reach it", () => {
		expect(asked("/demo fail_after=900").tokens).toBe(900);
		expect(asked("/demo stall_after=900").tokens).toBe(900);
	});

	test("tools take no time in a flood unless it is asked for", () => {
		expect(asked("/demo rate=0 tools=1").tool_ms).toBe(0);
		expect(asked("/demo rate=0 tools=1 tool_ms=30").tool_ms).toBe(30);
		expect(asked("/demo tools=1").tool_ms).toBe(400);
	});

	test("any given numbers within the limits come back as they were given", () => {
		const number = (name: keyof typeof DIRECTIVE_KEYS) =>
			fc.integer({ min: DIRECTIVE_KEYS[name].min, max: DIRECTIVE_KEYS[name].max });
		const given = fc.record(
			{
				rate: number("rate"),
				reasoning: number("reasoning"),
				tools: number("tools"),
				cards: number("cards"),
				seed: number("seed"),
			},
			{ requiredKeys: ["seed"] },
		);
		fc.assert(
			fc.property(given, (keys) => {
				const words = Object.entries(keys).map(([name, value]) => `${name}=${value}`);
				expect(asked(`/demo ${words.join(" ")}`)).toMatchObject(keys);
			}),
		);
	});
});

describe("what is not a directive", () => {
	test.each(["hello", "", "/demonstrate", "tell me about /demo tokens=5", "/DEMO tokens=5"])("%j", (text) => {
		expect(parseDirective(text)).toEqual({ kind: "none" });
	});
});

describe("what is not understood", () => {
	test("`/demo` alone asks for the list", () => expect(problemsOf("/demo")).toEqual([]));

	test.each([
		["/demo speed=5", "no such key"],
		["/demo tokens", "not of the form"],
		["/demo tokens=", "whole number"],
		["/demo tokens=-1", "whole number"],
		["/demo tokens=1.5", "whole number"],
		["/demo tokens=1e3", "whole number"],
		["/demo tokens=99999999999", "whole number"],
		["/demo messages=0", "whole number"],
		["/demo tokens=1 tokens=2", "given twice"],
		["/demo tokens=5 fail_after=6", "would never happen"],
		["/demo tokens=5 stall_after=6", "would never happen"],
		["/demo tokens=1 messages=2", "needs at least 2 tokens"],
		["/demo constructor=1", "no such key"],
	])("%s: %s", (text, problem) => {
		expect(problemsOf(text).join("\n")).toContain(problem);
	});

	test("the list names every key, and what was wrong", () => {
		const help = directiveHelp(["`x=1`: there is no such key"]);
		for (const name of Object.keys(DIRECTIVE_KEYS)) expect(help).toContain(`\`${name}\``);
		expect(help).toContain("`x=1`: there is no such key");
	});

	test("no text makes the parser throw, and every answer is short", () => {
		fc.assert(
			fc.property(fc.string({ unit: character, maxLength: 2_000 }), (text) => {
				const parsed = parseDirective(`/demo ${text}`);
				if (parsed.kind === "help") expect(directiveHelp(parsed.problems).length).toBeLessThan(3_000);
			}),
		);
	});
});
