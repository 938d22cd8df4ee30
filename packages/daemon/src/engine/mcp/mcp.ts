/** Tools of MCP servers, as one source: a server is started by the first run that may use it. The door of this folder. */

import { NexusError, wordsOf } from "@nexus-stream/protocol";
import { loadOnce } from "../../std/load-once.ts";
import type { Tool, ToolSource } from "../tool.ts";
import { mcpProblems } from "./entry.ts";
import { isStdio, type McpConfig, type McpParts, type McpServerStatus, mayUse } from "./port.ts";
import type { McpServer } from "./server.ts";

export { mcpProblems } from "./entry.ts";
export { type McpConfig, type McpParts, type McpServerStatus, mcpConfigSchema } from "./port.ts";

export type Mcp = ReturnType<typeof createMcp>;

/** Throws what no server could be started with. What only one of them lacks is said in the log and by its tools. */
export function createMcp(config: McpConfig, parts: McpParts) {
	refuse(config, parts);
	let servers: readonly McpServer[] | undefined;
	let closed = false;
	const load = loadOnce(async () => {
		const { makeServers } = await import("./servers.ts");
		if (!closed) servers ??= makeServers(config, parts);
		return servers ?? [];
	});
	const toolsOf = async (server: McpServer): Promise<Tool[]> => {
		const { approval = "non-owner", timeoutMs } = config.servers[server.name]!;
		const { tools } = await server.listing();
		return tools.map(({ tool, ...listed }) => {
			return { ...listed, approval, timeoutMs, execute: (args, context) => server.call(tool, args, context) };
		});
	};
	/** Resolves when all of their processes are gone. */
	const close = async () => {
		closed = true;
		await Promise.all((servers ?? []).map((server) => server.close()));
	};
	const source: ToolSource = {
		name: "MCP servers",
		async tools(request) {
			try {
				const all = await load();
				const found = await Promise.all(all.filter(({ name }) => mayUse(name, request)).map(toolsOf));
				return found.flat();
			} catch (cause) {
				parts.log.error({ error: wordsOf(cause) }, "MCP servers cannot be used");
				return [];
			}
		},
		close,
	};
	return {
		source,
		status: (): readonly McpServerStatus[] => servers?.map((server) => server.status()) ?? unstarted(config),
		/** Starts all servers, and resolves when each has started or failed. */
		async start(): Promise<void> {
			await Promise.all((await load()).map((server) => server.listing()));
		},
		close,
	};
}

function refuse(config: McpConfig, { env, base, log }: McpParts): void {
	const problems = mcpProblems(config, env, base);
	const fatal = problems
		.filter(({ isFatal }) => isFatal)
		.map(({ server, problem }) => `mcp.servers.${server}: ${problem}`);
	if (fatal.length > 0) throw new NexusError("config", fatal.join("\n"));
	for (const { server, problem } of problems)
		log.warn({ server, problem }, "an MCP server cannot be used as it is configured");
}

const unstarted = ({ servers }: McpConfig): McpServerStatus[] =>
	Object.entries(servers).map(([name, spec]) => ({
		name,
		transport: isStdio(spec) ? "stdio" : "http",
		state: "stopped",
		restarts: 0,
		tools: [],
		refused: [],
	}));
