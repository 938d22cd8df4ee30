/** From what a server says about its tools to tools that a model may be offered: named, bounded, and with a revision each. */

import { createHash } from "node:crypto";
import type { Tool as McpTool } from "@modelcontextprotocol/client";
import { shownText, wordsOf } from "@nexus-stream/protocol";
import type { JsonSchema } from "../tool.ts";
import { collisions, toolName } from "./names.ts";
import type { McpLimits, McpToolInfo } from "./port.ts";
import { checkable } from "./schema.ts";

export interface ListedTool extends McpToolInfo {
	parameters: JsonSchema;
}

export interface Listing {
	tools: readonly ListedTool[];
	refused: readonly { tool: string; reason: string }[];
}

export const NO_TOOLS: Listing = { tools: [], refused: [] };

type Limits = Pick<McpLimits, "toolsMax" | "descriptionCharsMax" | "schemaBytesMax">;

export function listingOf(server: string, found: readonly McpTool[], limits: Limits): Listing {
	const same = collisions(
		server,
		found.map(({ name }) => name),
	);
	const tools: ListedTool[] = [];
	const refused: { tool: string; reason: string }[] = [];
	for (const tool of found) {
		const schema = JSON.stringify(tool.inputSchema);
		const parameters = Buffer.byteLength(schema) > limits.schemaBytesMax ? "its schema is too large" : checked(tool);
		const reason = same.has(tool.name)
			? `several tools come out as ${toolName(server, tool.name)}`
			: typeof parameters === "string"
				? parameters
				: tools.length >= limits.toolsMax
					? `the server has more than ${limits.toolsMax} tools`
					: undefined;
		if (reason === undefined) tools.push(listed(server, tool, schema, parameters as JsonSchema, limits));
		else if (refused.length < limits.toolsMax) refused.push({ tool: shownName(tool.name), reason });
	}
	return { tools, refused };
}

/** Or why it is refused. */
function checked({ inputSchema }: McpTool): JsonSchema | string {
	try {
		return checkable(inputSchema).schema;
	} catch (cause) {
		return wordsOf(cause);
	}
}

/** Annotations are not read: they are the server's word for itself. */
function listed(server: string, tool: McpTool, schema: string, parameters: JsonSchema, limits: Limits): ListedTool {
	const said = tool.description ?? tool.title ?? "";
	return {
		name: toolName(server, tool.name),
		tool: tool.name,
		description: shownText(said).slice(0, limits.descriptionCharsMax).toWellFormed(),
		parameters: shownSchema(parameters),
		revision: createHash("sha256")
			.update(JSON.stringify([tool.name, said, schema]))
			.digest("hex")
			.slice(0, 16),
	};
}

const NAME_CHARS_MAX = 200;

/** A name of a server's choice on one line, for people. */
export const shownName = (name: string): string =>
	shownText(name).replaceAll("\n", "\\u000a").slice(0, NAME_CHARS_MAX).toWellFormed();

/** Keywords of a schema that only describe; the others decide what a call may hold, and stay. */
const WORDS: ReadonlySet<string> = new Set(["title", "description", "$comment"]);
/** Values of calls, and no schemas. */
const VALUES: ReadonlySet<string> = new Set(["enum", "const", "default", "examples", "required"]);
/** Names that the server chose, and a schema each. */
const NAMED: ReadonlySet<string> = new Set(["properties", "patternProperties", "$defs", "definitions"]);
/** Each level of a schema is two of its JSON; deeper ones are refused before. */
const DEPTH_MAX = 200;
/** How JSON spells control characters; line feeds stay. */
const ESCAPED = /\\[bfrtu]/;

/** A schema whose words have nothing that hides, reorders or steers. Most have nothing of the kind, and are left as they are. */
function shownSchema(schema: JsonSchema): JsonSchema {
	const text = JSON.stringify(schema);
	if (shownText(text) === text && !ESCAPED.test(text)) return schema;
	return cleaned(schema, false, 0) as JsonSchema;
}

function cleaned(value: unknown, isNamed: boolean, depth: number): unknown {
	if (typeof value !== "object" || value === null) return value;
	// Words that deep are for no reader: any value will do there.
	if (depth > DEPTH_MAX) return {};
	if (Array.isArray(value)) return value.map((one) => cleaned(one, false, depth + 1));
	const entries = Object.entries(value).map(([key, one]) => {
		if (!isNamed && VALUES.has(key)) return [key, one];
		if (!isNamed && WORDS.has(key) && typeof one === "string") return [key, shownText(one)];
		return [key, cleaned(one, !isNamed && NAMED.has(key), depth + 1)];
	});
	return Object.fromEntries(entries);
}

/** Names of tools that say something else about themselves than before. */
export function changedTools(before: Listing, after: Listing): string[] {
	const revisions = new Map(before.tools.map(({ name, revision }) => [name, revision]));
	return after.tools.flatMap(({ name, revision }) => ((revisions.get(name) ?? revision) === revision ? [] : [name]));
}
