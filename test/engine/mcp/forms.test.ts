import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { elicit } from "../../../packages/daemon/src/engine/mcp/elicit.ts";
import { mcpProblems } from "../../../packages/daemon/src/engine/mcp/entry.ts";
import { mayUse, toolName } from "../../../packages/daemon/src/engine/mcp/names.ts";
import type { ToolQuestion } from "../../../packages/daemon/src/engine/tool.ts";
import { answered, rig } from "./rig.ts";

const form = (properties: object, required?: string[]) =>
	({
		message: "Who\u001b[31m are you?\u202e",
		requestedSchema: { type: "object", properties, required },
	}) as never;

async function asked(properties: object, answers: string[], required?: string[]) {
	const questions: ToolQuestion[] = [];
	const result = await elicit({
		server: "docs",
		form: form(properties, required),
		questionsMax: 4,
		ask: async (question) => {
			questions.push(question);
			return answered(answers[questions.length - 1] ?? "");
		},
	});
	return { questions, result };
}

describe("A16: a server's form", () => {
	test("is asked field by field, without what could steer a terminal", async () => {
		const { questions, result } = await asked(
			{ name: { type: "string", title: "Name" }, age: { type: "integer", minimum: 1 }, fan: { type: "boolean" } },
			["Ada", "36", "yes"],
		);
		expect(questions[0]).toEqual({ question: 'The MCP server "docs" asks: Who[31m are you?\nName' });
		expect(questions[2]?.choices).toEqual(["yes", "no"]);
		expect(result).toEqual({ action: "accept", content: { name: "Ada", age: 36, fan: true } });
	});

	test("only what is required is asked, choices by their titles", async () => {
		const { questions, result } = await asked(
			{
				hero: {
					type: "string",
					oneOf: [
						{ const: "h1", title: "Superman" },
						{ const: "h2", title: "Lantern" },
					],
				},
				pets: { type: "array", items: { type: "string", enum: ["cat", "dog", "fox"] } },
				other: { type: "string" },
			},
			["lantern", "Cat, fox"],
			["hero", "pets"],
		);
		expect(questions[0]?.choices).toEqual(["Superman", "Lantern"]);
		expect(result).toEqual({ action: "accept", content: { hero: "h2", pets: ["cat", "fox"] } });
	});

	test("an answer that does not fit is asked for again, three times in all", async () => {
		const again = await asked({ age: { type: "integer", minimum: 1, maximum: 9 } }, ["many", "12", "7"]);
		expect(again.questions.map(({ question }) => question.split("\n").at(-1))).toEqual([
			"age",
			"That does not fit: it is a number.",
			"That does not fit: it is from 1 to 9.",
		]);
		expect(again.result).toEqual({ action: "accept", content: { age: 7 } });
		expect((await asked({ age: { type: "integer" } }, ["a", "b", "c"])).result).toEqual({ action: "cancel" });
	});

	test("a form with too many fields is not asked", async () => {
		const many = Object.fromEntries(["a", "b", "c", "d", "e"].map((name) => [name, { type: "string" }]));
		expect(await asked(many, [])).toEqual({ questions: [], result: { action: "cancel" } });
	});
});

describe("A16: names", () => {
	test("are of letters that models allow, and at most 64 long", () => {
		expect(toolName("docs", "find page/now")).toBe("mcp__docs__find_page_now");
		const long = [toolName("docs", "x".repeat(90)), toolName("docs", `${"x".repeat(89)}y`)];
		expect(new Set(long).size).toBe(2);
		for (const name of long) expect(name).toMatch(/^[A-Za-z0-9_-]{64}$/);
	});

	test.each(["a__b", "_a", "a_", "a b", "", "x".repeat(33)])("a server called %j is refused", (name) => {
		expect(() => rig({ servers: { [name]: { command: "node" } } })).toThrow("a server's name");
	});

	test("globs decide whether a run may use a server", () => {
		expect(mayUse("docs", {})).toBe(true);
		expect(mayUse("docs", { allowedTools: ["mcp__*"] })).toBe(true);
		expect(mayUse("docs", { allowedTools: ["mcp__docs__find*"] })).toBe(true);
		expect(mayUse("docs", { allowedTools: ["mcp__docs__find"] })).toBe(true);
		expect(mayUse("docs", { allowedTools: ["mcp__doc__*", "read"] })).toBe(false);
		expect(mayUse("docs", { deniedTools: ["mcp__docs__*"] })).toBe(false);
		expect(mayUse("docs", { deniedTools: ["*"] })).toBe(false);
		expect(mayUse("docs", { deniedTools: ["mcp__docs__find"] })).toBe(true);
	});
});

test("a secret in the file is refused, a missing variable and folder are said", () => {
	const headers = { Authorization: "Bearer abc" };
	expect(() => rig({ servers: { docs: { url: "https://example.org", headers } } })).toThrow("{ env: VARIABLE }");
	const docs = { command: process.execPath, cwd: "./no-such-folder", env: { KEY: { env: "DOCS_KEY" } } };
	expect(mcpProblems({ servers: { docs } }, {}, "/").map(({ problem }) => problem)).toEqual([
		"the variable DOCS_KEY is not set; it is needed for KEY",
		"cwd: /no-such-folder is not a folder",
	]);
	expect(mcpProblems({ servers: { docs: { command: "node" } } }, process.env, "/")).toEqual([]);
});

test("the library is loaded with the first server, not with the engine's door", () => {
	const reached = new Set<string>();
	const visit = (file: string) => {
		if (reached.has(file)) return;
		reached.add(file);
		const source = readFileSync(join("packages/daemon/src/engine/mcp", file), "utf8");
		for (const [, next] of source.matchAll(/^(?:import|export) (?!type)[^;]*?from "\.\/([\w-]+\.ts)";/gm)) visit(next!);
		const library = source.match(/^import (?!type)[^;]*?from "@modelcontextprotocol[^;]*;/gm) ?? [];
		expect(library, file).toEqual([]);
	};
	visit("mcp.ts");
	expect(reached).not.toContain("servers.ts");
	expect(readdirSync("packages/daemon/src/engine/mcp")).toContain("servers.ts");
});
