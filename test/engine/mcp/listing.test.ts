import type { Tool } from "@modelcontextprotocol/client";
import { describe, expect, test } from "vitest";
import { listingOf, shownName } from "../../../packages/daemon/src/engine/mcp/listing.ts";
import { MCP_LIMITS } from "../../../packages/daemon/src/engine/mcp/port.ts";

const DECEPTIVE = /[\p{Cc}\p{Cf}]/u;
const OVERRIDE = "\u202e";
const MARKS = `\u0007\u001b[31m${OVERRIDE}\u200f\u061c\u2066\u200b\u{e0041}`;

const tool = (more: Partial<Tool> = {}): Tool => ({
	name: "go",
	inputSchema: { type: "object", properties: {} },
	...more,
});

describe("A16: what a server calls its tools and says about them deceives no reader", () => {
	test("names in lists are on one line, and show what is hidden in them", () => {
		const shown = shownName(`send${MARKS}\nmail`);
		expect(shown).not.toMatch(DECEPTIVE);
		expect(shown).toContain("\\u202e");
		const { tools, refused } = listingOf(
			"s",
			[tool({ name: `a${OVERRIDE}b` }), tool({ name: `a\u2066b` })],
			MCP_LIMITS,
		);
		expect(tools).toEqual([]);
		expect(refused.map((one) => one.tool)).toEqual(["a\\u202eb", "a\\u2066b"]);
	});

	test("descriptions of a tool and of its arguments show it, too; line feeds stay", () => {
		const properties = {
			text: { type: "string", description: `one${MARKS}\ntwo`, enum: [`keep${OVERRIDE}`] },
			description: { type: "string", title: `named like a word${MARKS}` },
		};
		const said = tool({ description: `does${MARKS}\nmore`, inputSchema: { type: "object", properties } as never });
		const [listed] = listingOf("s", [said], MCP_LIMITS).tools;
		expect(listed?.description.replaceAll("\n", "")).not.toMatch(DECEPTIVE);
		expect(listed?.description).toContain("\nmore");
		const found = listed?.parameters.properties as typeof properties;
		expect(found.text.description.replaceAll("\n", "")).not.toMatch(DECEPTIVE);
		expect(found.description.title).not.toMatch(DECEPTIVE);
		// The server decides what a call may hold.
		expect(found.text.enum).toEqual([`keep${OVERRIDE}`]);
	});

	test.each(["\b", "\f", "\r", "\u200f"])("%j alone is found, also in a schema that is deeply nested", (sign) => {
		const deep = (levels: number): object =>
			levels === 0
				? { type: "string", description: `x${sign}y` }
				: { type: "object", properties: { a: deep(levels - 1) } };
		for (const levels of [1, 40]) {
			const [listed] = listingOf("s", [tool({ inputSchema: deep(levels) as never })], MCP_LIMITS).tools;
			const found = JSON.stringify(listed?.parameters ?? {});
			expect(found).not.toContain(JSON.stringify(sign).slice(1, -1));
		}
	});

	test("the tool is called by the name that the server gave it", () => {
		const [listed] = listingOf("s", [tool({ name: `a${OVERRIDE}b` })], MCP_LIMITS).tools;
		expect(listed).toMatchObject({ tool: `a${OVERRIDE}b`, name: "mcp__s__a_b" });
	});

	test("a schema without such characters is left as it is", () => {
		const one = tool({ description: "plain", inputSchema: { type: "object", description: "wörter\nand lines" } });
		expect(listingOf("s", [one], MCP_LIMITS).tools[0]?.parameters).toBe(one.inputSchema);
	});
});
