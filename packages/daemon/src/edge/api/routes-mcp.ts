/** The routes about MCP servers. */

import type * as wire from "@nexus-stream/protocol";
import { z } from "zod";
import { json, route } from "./route.ts";
import { component, count, type Fields, time } from "./schema.ts";

const McpServerView = component(
	"McpServer",
	z.object({
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
				} satisfies Fields<wire.McpToolJson>),
			)
			.describe("As of its last start or list."),
		refused: z.array(z.object({ tool: z.string(), reason: z.string() })).describe("Tools that are not offered."),
	} satisfies Fields<wire.McpServerJson>),
);

const McpList = component(
	"McpList",
	z.object({
		now: time.describe("By the daemon's clock."),
		servers: z.array(McpServerView),
	} satisfies Fields<wire.McpListJson>),
);

export const MCP_ROUTES = {
	listMcp: route({
		method: "GET",
		path: "/v1/mcp",
		summary: "MCP servers, their tools and how they are doing.",
		auth: true,
		status: 200,
		answer: json(McpList),
		errors: [],
	}),
	startMcp: route({
		method: "POST",
		path: "/v1/mcp/start",
		summary: "Starts all MCP servers, and answers when each has started or failed.",
		auth: true,
		status: 200,
		answer: json(McpList),
		errors: [],
	}),
};
