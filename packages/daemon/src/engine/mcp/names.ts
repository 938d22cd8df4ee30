/** Names of a server's tools: `mcp__server__tool`, in the letters and the length that models allow. */

import { createHash } from "node:crypto";

const NAME_CHARS_MAX = 64;
const HASH_CHARS = 8;

/** Without `__`, and without `_` at either end: the first `__` behind `mcp__` ends the server's name, whatever its tools are called. */
export const SERVER_NAME = /^(?=.{1,32}$)[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*$/;

export function toolName(server: string, tool: string): string {
	const name = `mcp__${server}__${tool.replace(/[^A-Za-z0-9_-]/g, "_")}`;
	if (name.length <= NAME_CHARS_MAX) return name;
	const hash = createHash("sha256").update(tool).digest("hex").slice(0, HASH_CHARS);
	return `${name.slice(0, NAME_CHARS_MAX - HASH_CHARS - 1)}_${hash}`;
}

/** Characters that a tool's name may have for a model; for globs. */
export const toolPrefix = (server: string): string => `mcp__${server}__`;

/** Tools of a server whose names become equal: none of them is offered, because a call would be ambiguous. */
export function collisions(server: string, tools: readonly string[]): ReadonlySet<string> {
	const byName = Map.groupBy(tools, (tool) => toolName(server, tool));
	return new Set([...byName.values()].filter((same) => same.length > 1).flat());
}

/** Whether the run may use any tool of the server; otherwise it never starts the server. */
export function mayUse(
	server: string,
	{ allowedTools, deniedTools }: { allowedTools?: readonly string[]; deniedTools?: readonly string[] },
): boolean {
	const prefix = toolPrefix(server);
	const meets = (wanted: string) =>
		wanted.endsWith("*")
			? prefix.startsWith(wanted.slice(0, -1)) || wanted.startsWith(prefix)
			: wanted.startsWith(prefix);
	const coversAll = (denied: string) => denied.endsWith("*") && prefix.startsWith(denied.slice(0, -1));
	return (allowedTools?.some(meets) ?? true) && !(deniedTools?.some(coversAll) ?? false);
}
