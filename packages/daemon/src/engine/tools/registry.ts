/** The registry of tools: what a model may call, how arguments are checked, and how long each may take. */

import type { Tool as ModelTool } from "@earendil-works/pi-ai";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import { fitsSome } from "../../std/globs.ts";
import type { Tool } from "../tool.ts";
import { describeCall } from "./describe.ts";

export interface ToolRegistry {
	readonly tools: readonly Tool[];
	find(name: string): Tool | undefined;
	/** The same registry with fewer tools. A glob of `*` at the end stands for any rest. */
	only(names: readonly string[] | undefined): ToolRegistry;
	describe(name: string, args: unknown): string;
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;

export function toolRegistry(tools: readonly Tool[]): ToolRegistry {
	const byName = new Map<string, Tool>();
	for (const tool of tools) {
		if (!NAME.test(tool.name))
			throw new NexusError("config", `a tool's name has up to 64 letters, digits, _ and -, unlike "${tool.name}"`);
		if (byName.has(tool.name)) throw new NexusError("config", `there are two tools "${tool.name}"`);
		byName.set(tool.name, tool);
	}
	return {
		tools,
		find: (name) => byName.get(name),
		only: (names) =>
			names === undefined ? toolRegistry(tools) : toolRegistry(tools.filter(({ name }) => fitsSome(name, names))),
		describe: (name, args) => describeCall(name, args, byName.get(name)?.describe),
	};
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
