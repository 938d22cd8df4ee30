/** MCP servers, their tools and how they are doing. */

import { z } from "zod";
import type { EdgeDeps } from "../port.ts";
import { component, count, get, type HandlersOf, post, time, viewOf } from "./resource.ts";

const McpServerView = component("McpServer", {
	name: z.string(),
	transport: z.enum(["stdio", "http"]),
	state: z
		.enum(["starting", "running", "backing_off", "open_circuit", "stopped"])
		.describe("`stopped`: the first run that may use its tools starts it."),
	pid: count.exactOptional(),
	restarts: count,
	until: time.exactOptional().describe("When it is tried again."),
	last_error: z.string().exactOptional().describe("Until it has gone well for a while."),
	tools: z
		.array(
			z.object({
				name: z.string().describe("As a model calls it."),
				tool: z.string().describe("As the server calls it."),
				description: z.string(),
				revision: z.string().describe("Changes with what the server says about it; voids remembered approvals."),
			}),
		)
		.describe("As of its last start or list."),
	refused: z.array(z.object({ tool: z.string(), reason: z.string() })).describe("Tools that are not offered."),
});

const McpList = component("McpList", {
	now: time.describe("By the daemon's clock."),
	servers: z.array(McpServerView),
});

export const MCP_ROUTES = {
	listMcp: get("/v1/mcp", "MCP servers, their tools and how they are doing.", { answer: McpList }),
	startMcp: post("/v1/mcp/start", "Starts all MCP servers, and answers when each has started or failed.", {
		answer: McpList,
	}),
};

export function mcpHandlers({ mcp, clock }: EdgeDeps): HandlersOf<typeof MCP_ROUTES> {
	const list = () => ({ now: clock.now(), servers: mcp.status().map(serverView) });
	return {
		listMcp: list,
		async startMcp() {
			await mcp.start();
			return list();
		},
	};
}

type ServerStatus = ReturnType<EdgeDeps["mcp"]["status"]>[number];
const serverView = (status: ServerStatus) =>
	viewOf(McpServerView, { ...status, tools: [...status.tools], refused: [...status.refused] });
