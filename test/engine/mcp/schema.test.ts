import { validateToolArguments } from "@earendil-works/pi-ai";
import { describe, expect, test } from "vitest";
import { listingOf } from "../../../packages/daemon/src/engine/mcp/listing.ts";
import { outputValidator } from "../../../packages/daemon/src/engine/mcp/result.ts";
import { checkable } from "../../../packages/daemon/src/engine/mcp/schema.ts";

/** Backtracks for centuries on this text: a check that evaluates it does not come back. */
const EVIL = "^(a+)+$";
const TEXT = `${"a".repeat(64)}!`;
const limits = { toolsMax: 10, descriptionCharsMax: 100, schemaBytesMax: 64 * 1024 };

const object = (properties: object, more: object = {}) => ({ type: "object" as const, properties, ...more });

/** As the engines check a call's arguments. */
function takes(inputSchema: ReturnType<typeof object>, args: Record<string, unknown>): boolean {
	const { tools } = listingOf("docs", [{ name: "find", inputSchema: inputSchema as never }], limits);
	const tool = { name: "find", description: "", parameters: tools[0]!.parameters as never };
	try {
		validateToolArguments(tool, { type: "toolCall", id: "1", name: "find", arguments: args as never });
		return true;
	} catch {
		return false;
	}
}

const refusal = (inputSchema: ReturnType<typeof object>) =>
	listingOf("docs", [{ name: "find", inputSchema: inputSchema as never }], limits).refused[0]?.reason;

describe("I11: a server's schema is checked without evaluating its patterns", () => {
	test.each([
		["a property", object({ q: { type: "string", pattern: EVIL } }), { q: TEXT }],
		["a name", object({}, { patternProperties: { [EVIL]: {} }, additionalProperties: false }), { [TEXT]: 1 }],
		["all names", object({}, { propertyNames: { pattern: EVIL } }), { [TEXT]: 1 }],
		["a definition", object({ q: { $ref: "#/$defs/a" } }, { $defs: { a: { pattern: EVIL } } }), { q: TEXT }],
		["an alternative", object({ q: { anyOf: [{ type: "number" }, { pattern: EVIL }] } }), { q: TEXT }],
		["a negation", object({ q: { not: { pattern: EVIL } } }), { q: TEXT }],
		["a condition", object({ q: { if: { pattern: EVIL }, ["then" as string]: false } }), { q: TEXT }],
		["items", object({ q: { type: "array", items: [{ pattern: EVIL }] } }), { q: [TEXT] }],
		[
			"one of two, by way of a definition",
			object({ q: { oneOf: [{ $ref: "#/$defs/a" }, { type: "string" }] } }, { $defs: { a: { pattern: EVIL } } }),
			{ q: TEXT },
		],
	])("in %s", (_, schema, args) => {
		expect(takes(schema, args)).toBe(true);
	});

	test("the rest of the schema is checked as before", () => {
		const schema = object(
			{ q: { type: "string", pattern: EVIL, maxLength: 70 }, pattern: { type: "string" } },
			{ required: ["q"], additionalProperties: false },
		);
		expect(takes(schema, { q: TEXT, pattern: "x" })).toBe(true);
		expect(takes(schema, { q: "a".repeat(71) })).toBe(false);
		expect(takes(schema, { pattern: "x" })).toBe(false);
		expect(takes(schema, { q: "a", more: 1 })).toBe(false);
	});

	test("the model reads the pattern as words", () => {
		const { schema } = checkable(object({ q: { type: "string", description: "A word.", pattern: "^[a-z]+$" } }));
		expect(schema.properties).toEqual({ q: { type: "string", description: "A word.\nPattern: ^[a-z]+$" } });
	});

	test.each([
		["an example instead of a schema", object({ q: { $ref: "#/examples/0" } }, { examples: [{ pattern: EVIL }] })],
		["a map of schemas", object({ q: { $ref: "#/properties" }, patternProperties: { [EVIL]: {} } })],
		["an encoded place", object({ q: { $ref: "#/%65xamples/0" } }, { examples: [{ pattern: EVIL }] })],
		["another document", object({ q: { $ref: "other" } }, { examples: [{ $id: "other", pattern: EVIL }] })],
		["an anchor", object({ q: { $ref: "#a" } }, { examples: [{ $anchor: "a", pattern: EVIL }] })],
		["a dynamic anchor", object({ q: { $dynamicRef: "#a" } })],
	])("a reference to %s is refused, with the tool", (_, schema) => {
		expect(refusal(schema)).toMatch(/its schema (refers to|uses)/);
	});

	test("references that double thirty times are refused; those that lead back take anything", () => {
		const $defs = Object.fromEntries(
			Array.from({ length: 30 }, (_, n) => [
				`d${n}`,
				{ allOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] },
			]),
		);
		expect(refusal(object({ q: { $ref: "#/$defs/d0" } }, { $defs: { ...$defs, d30: {} } }))).toBe(
			"its schema refers to too much",
		);
		let deep: Record<string, unknown> = {};
		for (let level = 0; level < 60; level++) deep = { a: deep };
		expect(takes(object({ a: { allOf: [{ $ref: "#" }, { $ref: "#" }] } }), deep)).toBe(true);
		let nested: object = {};
		for (let level = 0; level < 100; level++) nested = { not: nested };
		expect(refusal(object({ q: nested }))).toBe("its schema is too deep");
	});
});

describe("I11: what a server answers is checked by its own schema in bounded time", () => {
	const check = (schema: object, answer: unknown) =>
		outputValidator(limits).getValidator(schema as never)(answer).valid;

	test("without its patterns", () => {
		const schema = object({ q: { type: "string", pattern: EVIL }, n: { type: "number" } });
		expect(check(schema, { q: TEXT, n: 1 })).toBe(true);
		expect(check(schema, { q: TEXT, n: "1" })).toBe(false);
	});

	test("and not at all where it would take schema times answer", () => {
		const schema = { type: "array", items: { enum: Array.from({ length: 5000 }, (_, n) => n) } };
		expect(check(schema, [-1])).toBe(false);
		expect(
			check(
				schema,
				Array.from({ length: 100_000 }, () => -1),
			),
		).toBe(true);
		expect(() => check({ ...schema, $comment: "x".repeat(70_000) }, [])).toThrow("too large");
	});

	test("whatever dialect it declares", () => {
		const schema = { $schema: "https://json-schema.org/draft/2020-12/schema", ...object({ n: { type: "number" } }) };
		expect(check(schema, { n: "x" })).toBe(false);
	});
});
