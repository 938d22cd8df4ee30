/** Tools that an agent's list names and the configuration does not switch on: the agent would silently do without them. */

import type { NexusConfig } from "../../runtime/runtime.ts";

const FILES = ["read", "write", "edit"];
const NOTES = ["remember", "recall", "forget", "learn"];
const MCP = /^mcp__(.+?)__/;

/** One line for each, such as `writer names bash, which needs tools.bash.enabled`. */
export const agentsWithout = (config: NexusConfig): string[] =>
	Object.entries(config.agents ?? {}).flatMap(([name, { tools = [] }]) =>
		tools.flatMap((tool) => {
			const needed = neededFor(tool, config);
			return needed === undefined ? [] : [`${name} names ${tool}, which needs ${needed}`];
		}),
	);

function neededFor(tool: string, { tools, memory, mcp }: NexusConfig): string | undefined {
	const needsRoot = tool === "bash" || FILES.includes(tool);
	if (needsRoot && tools?.root === undefined) return "`tools.root`";
	if (tool === "bash" && !tools?.bash?.enabled) return "`tools.bash.enabled`";
	if (NOTES.includes(tool) && !memory?.enabled) return "`memory.enabled`";
	const server = MCP.exec(tool)?.[1];
	if (server === undefined || server.includes("*") || Object.hasOwn(mcp?.servers ?? {}, server)) return undefined;
	return `\`mcp.servers.${server}\``;
}
