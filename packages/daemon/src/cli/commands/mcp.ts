/** `nexus mcp`: MCP servers, their tools and how they are doing. */

import type { McpServerJson } from "@nexus-stream/protocol/api";
import { type CommandContext, type CommandExit, type Declarations, remoteRows, withDaemon } from "../command.ts";
import { table } from "../table.ts";
import { oneLine } from "../terminal.ts";

export const declare: Declarations = {
	mcp: (command, local) =>
		remoteRows(command)
			.option("--start", "start those that are not running first; the exit code says whether all of them run")
			.action(withDaemon(local, mcp)),
};

export interface McpOptions {
	json?: boolean;
	start?: boolean;
}

export async function mcp({ client, terminal }: CommandContext, options: McpOptions): CommandExit {
	const { now, servers } = await (options.start ? client.api.startMcp() : client.api.mcp());
	const failed = options.start === true && servers.some(({ state }) => state !== "running");
	if (options.json) {
		for (const server of servers) terminal.json(server);
		return failed ? 1 : 0;
	}
	if (servers.length === 0) terminal.note("no MCP servers; `mcp.servers` in nexus.yaml configures them");
	const rows = servers.flatMap((server) => [
		[server.name, server.transport, stateOf(server, now), server.last_error ?? ""],
		...server.tools.map(({ name, description }) => ["", "", name, description]),
		...server.refused.map(({ tool, reason }) => ["", "", `${tool} (not offered)`, reason]),
	]);
	table(
		terminal,
		["SERVER", "OVER", "STATE, TOOLS", ""],
		rows.map((row) => row.map((cell, column) => oneLine(cell, column === row.length - 1 ? 200 : 80))),
	);
	return failed ? 1 : 0;
}

function stateOf({ state, until, restarts, tools }: McpServerJson, now: number): string {
	const again = until === undefined ? "" : `, tried again in ${Math.max(0, Math.ceil((until - now) / 1000))} s`;
	const restarted = restarts === 0 ? "" : `, ${restarts} ${restarts === 1 ? "restart" : "restarts"}`;
	if (state === "stopped") return "not started: the first run that may use it starts it";
	return `${state.replace("_", " ")}${again}${restarted}, ${tools.length} ${tools.length === 1 ? "tool" : "tools"}`;
}
