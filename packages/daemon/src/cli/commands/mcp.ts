/** `nexus mcp`: MCP servers, their tools and how they are doing. */

import type { McpServerJson } from "@nexus-stream/protocol/api";
import { type CommandContext, type Declarations, type JsonOption, remoteRows, withDaemon } from "../command.ts";
import { table } from "../table.ts";
import { oneLine } from "../terminal.ts";

export const declare: Declarations = {
	mcp: (command, local) =>
		remoteRows(command)
			.option("--start", "start those that are not running first; the exit code says whether all of them run")
			.action(withDaemon(local, mcp)),
};

async function mcp({ client, terminal }: CommandContext, { json, start }: JsonOption & { start?: boolean }) {
	const { now, servers } = await (start ? client.api.startMcp() : client.api.mcp());
	const code = start && servers.some(({ state }) => state !== "running") ? 1 : 0;
	if (json) {
		for (const server of servers) terminal.json(server);
		return code;
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
	return code;
}

function stateOf({ state, until, restarts, tools }: McpServerJson, now: number): string {
	const again = until === undefined ? "" : `, tried again in ${Math.max(0, Math.ceil((until - now) / 1000))} s`;
	const restarted = restarts === 0 ? "" : `, ${restarts} ${restarts === 1 ? "restart" : "restarts"}`;
	if (state === "stopped") return "not started: the first run that may use it starts it";
	return `${state.replace("_", " ")}${again}${restarted}, ${tools.length} ${tools.length === 1 ? "tool" : "tools"}`;
}
