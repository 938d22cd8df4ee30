/** The JSON of the HTTP API about MCP servers. */

import type { ProcessJson } from "./channels.ts";

export interface McpToolJson {
	/** As a model calls it. */
	name: string;
	/** As the server calls it. */
	tool: string;
	description: string;
	/** Changes with what the server says about it; a remembered approval holds for one revision. */
	revision: string;
}

export interface McpServerJson {
	name: string;
	transport: "stdio" | "http";
	state: Exclude<ProcessJson["state"], "unreachable">;
	pid?: number;
	restarts: number;
	/** When it is tried again. */
	until?: number;
	last_error?: string;
	tools: McpToolJson[];
	/** Tools that are not offered. */
	refused: { tool: string; reason: string }[];
}

export interface McpListJson {
	/** By the daemon's clock. */
	now: number;
	servers: McpServerJson[];
}
