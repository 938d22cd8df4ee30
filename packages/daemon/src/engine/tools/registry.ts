/** The registry of tools: what a model may call, how arguments are checked, and how people read of a call. Descriptions cut arguments; approvals show them whole. */

import type { Tool as ModelTool } from "@earendil-works/pi-ai";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import type { Describe, Tool } from "../tool.ts";

export type ToolRegistry = ReturnType<typeof toolRegistry>;

const NAME = /^[A-Za-z0-9_-]{1,64}$/;

export function toolRegistry(tools: readonly Tool[]) {
	const byName = new Map<string, Tool>();
	for (const tool of tools) {
		if (!NAME.test(tool.name))
			throw new NexusError("config", `a tool's name has up to 64 letters, digits, _ and -, unlike "${tool.name}"`);
		if (byName.has(tool.name)) throw new NexusError("config", `there are two tools "${tool.name}"`);
		byName.set(tool.name, tool);
	}
	return { tools, find: (name: string) => byName.get(name) };
}

/** Checks arguments against a schema, with what can be read as the right type converted. Throws words for the model. */
export type ValidateArguments = (
	tool: ModelTool,
	call: { type: "toolCall"; id: string; name: string; arguments: never },
) => unknown;

export type Prepared = { tool: Tool; args: Record<string, unknown> } | { problem: string };

/** The words about wrong arguments are kept to this length. */
const PROBLEM_CHARS_MAX = 2000;

/** The first line stands alone where people read it, so it has to say what is wrong. */
const VALIDATOR_HEAD = /^Validation failed for tool "[^"]*":\s*-?\s*/;

/** The tool with valid arguments, or the problem as the model reads it. */
export function prepareCall(
	registry: ToolRegistry,
	validate: ValidateArguments,
	name: string,
	args: unknown,
): Prepared {
	const tool = registry.find(name);
	if (tool === undefined) {
		const known = registry.tools.map((one) => one.name).join(", ") || "none";
		return { problem: `there is no tool "${name}"; the tools are: ${known}` };
	}
	if (typeof args !== "object" || args === null || Array.isArray(args))
		return { problem: `the arguments of ${name} must be a JSON object, not ${wordsOf(args).slice(0, 200)}` };
	try {
		const fitting = validate(asModelTool(tool), { type: "toolCall", id: "", name, arguments: args as never });
		return { tool, args: fitting as Record<string, unknown> };
	} catch (cause) {
		const words = wordsOf(cause).replace(VALIDATOR_HEAD, "wrong arguments: ") || `the arguments of ${name} are wrong`;
		// The library does not say which values are allowed.
		return {
			problem: `${words}\n\nWhat ${name} takes: ${JSON.stringify(tool.parameters)}`.slice(0, PROBLEM_CHARS_MAX),
		};
	}
}

/** As a model is offered it. */
export const asModelTool = ({ name, description, parameters }: Tool): ModelTool => ({
	name,
	description,
	parameters: parameters as ModelTool["parameters"],
});

const COMMAND_CHARS_MAX = 50;
const PATH_CHARS_MAX = 200;
const DESCRIPTION_CHARS_MAX = 300;

/** By tool; more can be added, by configuration or by the tool itself. */
const DESCRIPTIONS: Readonly<Record<string, Describe>> = {
	read: (args) => `📖 Reading ${fileOf(args)}`,
	edit: (args) => `✏️ Editing ${fileOf(args)}`,
	bash: ({ command }) => {
		const text = typeof command === "string" ? command.trim() : "";
		const what = /^git(?![\w-])/.test(text) ? "🔧 Running git command" : "🖥️ Running command";
		return `${what}: ${cut(text, COMMAND_CHARS_MAX)}`;
	},
};

export function describeCall(name: string, args: unknown, own?: Describe): string {
	const fields = typeof args === "object" && args !== null ? (args as Record<string, unknown>) : {};
	const known = (Object.hasOwn(DESCRIPTIONS, name) ? DESCRIPTIONS[name] : undefined) ?? describeOther;
	return oneLine(cut((own && descriptionOf(own, fields, name)) || known(fields, name), DESCRIPTION_CHARS_MAX));
}

/** Describes a call that waits for approval: it must not read as if it already ran. */
export function describeWanted(name: string, args: unknown): string {
	const { command, file_path, path } = (typeof args === "object" && args !== null ? args : {}) as Record<
		string,
		unknown
	>;
	if (typeof command === "string" && command.trim() !== "")
		return oneLine(`Wants to run: ${cut(command.trim(), COMMAND_CHARS_MAX)}`);
	const file = [file_path, path].find((value) => typeof value === "string" && value !== "");
	return oneLine(`Wants to run: ${name}${file === undefined ? "" : ` ${cut(file as string, PATH_CHARS_MAX)}`}`);
}

/** From a template: `{path}` stands for an argument. One that the call does not have is left out. */
export const describeBy =
	(template: string): Describe =>
	(args) =>
		template.replace(/\{(\w+)\}/g, (_, name: string) => {
			const value = Object.hasOwn(args, name) ? args[name] : undefined;
			return value === undefined ? "" : cut(typeof value === "string" ? value : JSON.stringify(value), PATH_CHARS_MAX);
		});

/** A tool whose description fails is described as any other: it can still do its work. */
function descriptionOf(own: Describe, fields: Record<string, unknown>, name: string): string | undefined {
	try {
		const text: unknown = own(fields, name);
		return typeof text === "string" ? text : undefined;
	} catch {
		return undefined;
	}
}

const describeOther: Describe = (_args, name) => {
	if (!name.startsWith("mcp__")) return `🛠️ Using ${name || "tool"}`;
	const [, server, action] = name.split("__");
	return `🔌 Using ${server || "mcp"} to ${(action || "action").replaceAll("_", " ")}`;
};

function fileOf({ file_path, path }: Readonly<Record<string, unknown>>): string {
	const named = [file_path, path].find((value) => typeof value === "string" && value !== "");
	return cut((named as string | undefined) ?? "file", PATH_CHARS_MAX);
}

/** By characters, never within one. */
function cut(text: string, charsMax: number): string {
	const chars = Array.from(text.slice(0, charsMax * 4));
	return chars.length <= charsMax && text.length <= charsMax * 4 ? text : `${chars.slice(0, charsMax).join("")}...`;
}

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();
