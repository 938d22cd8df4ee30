import { describe, expect, test } from "vitest";
import {
	type Condition,
	condition,
	fill,
	fillAll,
	holds,
	parsePath,
	valueAt,
} from "../../../packages/daemon/src/services/workflows/nodes/expressions.ts";
import { weightOf } from "../../../packages/daemon/src/services/workflows/nodes/transform.ts";

const data = { a: { "b c": [10, { d: "x" }, null], n: 0 }, list: [{ v: 1 }, { v: 2 }, {}], text: "hello" };
const at = (path: string) => valueAt(data, parsePath(path));

describe("paths", () => {
	test.each<[string, unknown]>([
		["$", data],
		["$.a.n", 0],
		["a.n", 0],
		['a["b c"][0]', 10],
		['$.a["b c"][-1]', null],
		['a["b c"][1].d', "x"],
		["list[*].v", [1, 2]],
		["a.missing", undefined],
		["list[9]", undefined],
		["text.length", undefined],
		["a.constructor", undefined],
		["list.length", undefined],
		['$["__proto__"]', undefined],
	])("%s", (path, value) => expect(at(path)).toEqual(value));

	test.each(["", "a.", "a[", "a[x]", "a[1", "..a", "a b", "a()", 'a["\\q"]', "$$"])("%j is invalid", (path) => {
		expect(() => parsePath(path)).toThrow(/invalid path/);
	});
});

describe("templates", () => {
	test("placeholders become texts, and other values JSON; nothing is evaluated", () => {
		expect(fill("{{text}}: {{ a.n }} {{list}} {{{text}}} $(text)", data)).toBe(
			'hello: 0 [{"v":1},{"v":2},{}] {hello} $(text)',
		);
		expect(fill("{{text}}", { text: "{{a}} $& $1" })).toBe("{{a}} $& $1");
	});

	test("what is not there is an error, not an empty place", () => {
		expect(() => fill("{{a.x}}", data)).toThrow(/there is nothing at {{a.x}}/);
	});

	test("I11: few placeholders do not make a text without end", () => {
		const scope = { long: "x".repeat(60_000) };
		expect(() => fill("{{long}}".repeat(5000), scope)).toThrow(expect.objectContaining({ code: "too_large" }));
		const texts = Array<string>(256).fill("{{long}} {{long}}");
		expect(() => fillAll(texts, scope)).toThrow(expect.objectContaining({ code: "too_large" }));
	});

	test("a text that is one placeholder keeps the kind of its value", () => {
		expect(fillAll({ list: ["{{list[*].v}}", "n={{a.n}}"], n: 1 }, data)).toEqual({ list: [[1, 2], "n=0"], n: 1 });
	});
});

describe("conditions", () => {
	test.each<[Condition, boolean]>([
		["text", true],
		["a.n", false],
		["missing", false],
		[{ path: "a.n", op: "exists" }, true],
		[{ path: 'a["b c"][2]', op: "exists" }, false],
		[{ path: "a.n", op: "eq", value: 0 }, true],
		[{ path: "list[0]", op: "eq", value: { v: 1 } }, true],
		[{ path: "missing", op: "eq" }, true],
		[{ path: "text", op: "ne", value: "bye" }, true],
		[{ path: "list[1].v", op: "gt", value: 1 }, true],
		[{ path: "list[1].v", op: "ge", value: 2 }, true],
		[{ path: "list[1].v", op: "lt", value: 2 }, false],
		[{ path: "list[1].v", op: "le", value: 2 }, true],
		[{ path: "list[1].v", op: "gt", value: "1" }, false],
		[{ path: "text", op: "lt", value: "i" }, true],
		[{ path: "text", op: "contains", value: "ell" }, true],
		[{ path: "list", op: "contains", value: { v: 2 } }, true],
		[{ path: "text", op: "in", value: ["hello", "bye"] }, true],
		[{ all: ["text", { path: "a.n", op: "eq", value: 1 }] }, false],
		[{ any: ["missing", "text"] }, true],
		[{ not: "missing" }, true],
	])("%j", (given, expected) => {
		expect(condition.safeParse(given).success).toBe(true);
		expect(holds(given, data)).toBe(expected);
	});

	test("an invalid condition is refused, and so is one that is too deep", () => {
		expect(condition.safeParse({ path: "a", op: "matches", value: "(a+)+" }).success).toBe(false);
		expect(condition.safeParse({ eval: "1" }).success).toBe(false);
		let deep: unknown = "a";
		for (let n = 0; n < 20; n++) deep = { not: deep };
		expect(condition.safeParse(deep).success).toBe(false);
	});
});

test("what an output weighs is at least what it takes as JSON or as a message", () => {
	for (const value of [data, [1, 2, 3], { a: "ä".repeat(100) }, [], {}, [[0, 0], [0]]])
		expect(weightOf(value)).toBeGreaterThanOrEqual(Buffer.byteLength(JSON.stringify(value)));
});
