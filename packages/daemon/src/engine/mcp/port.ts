/** MCP servers as the configuration names them, their limits, and how they are doing. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { ApprovalPolicy } from "@nexus-stream/protocol/engine";
import type { Log } from "@nexus-stream/protocol/log";
import type { ProcessPhase, RestartRules } from "../../std/supervision.ts";
import type { EnvironmentVariables } from "../entry.ts";

/** The name of a variable of the daemon's environment: secrets never stand in the file. */
export interface FromEnvironment {
	env: string;
	/** Stands before the variable's value, such as `Bearer `. */
	prefix?: string;
}

interface EveryServer {
	/** Time limit of its tools; never above `broker.toolMs`. */
	timeoutMs?: number;
	/** Approval policy of its tools; `non-owner` by default. The server's own annotations never lower it; an agent's configuration may. */
	approval?: Exclude<ApprovalPolicy, "never">;
}

export interface StdioServer extends EveryServer {
	command: string;
	args?: string[];
	/** All that it gets of the environment, besides `PATH` and `HOME`. */
	env?: Record<string, string | FromEnvironment>;
	/** Relative to the configuration file. */
	cwd?: string;
}

export interface HttpServer extends EveryServer {
	url: string;
	headers?: Record<string, string | FromEnvironment>;
	/** It may be on this machine, and without TLS. */
	allowLoopback?: boolean;
}

export type McpServerConfig = StdioServer | HttpServer;

export const isStdio = (server: McpServerConfig): server is StdioServer => "command" in server;

export interface McpLimits {
	/** From the start of a server to the list of its tools. */
	startMs: number;
	/** A server that does not answer a ping for this long is started again; also how often it is asked. */
	pingMs: number;
	/** After a list has changed, how long a run waits for the new one. */
	listMs: number;
	/** One message of a server. */
	messageBytesMax: number;
	messagesPerSecondMax: number;
	/** Lines on a server's stdout that are no messages, within a minute. */
	garbageLinesMax: number;
	toolsMax: number;
	/** A tool as the server lists it. */
	descriptionCharsMax: number;
	schemaBytesMax: number;
	/** One result, as the model gets it. */
	resultBytesMax: number;
	resultPartsMax: number;
	/** Fields that one form may ask a person for. */
	questionsMax: number;
	/** At shutdown: from the end of its input to SIGTERM, and from there to SIGKILL. */
	stopMs: number;
}

export const MCP_LIMITS: McpLimits = {
	startMs: 10_000,
	pingMs: 30_000,
	listMs: 5000,
	messageBytesMax: 8 * 1024 * 1024,
	messagesPerSecondMax: 1000,
	garbageLinesMax: 200,
	toolsMax: 128,
	descriptionCharsMax: 4096,
	schemaBytesMax: 64 * 1024,
	resultBytesMax: 1024 * 1024,
	resultPartsMax: 64,
	questionsMax: 8,
	stopMs: 1000,
};

export interface McpConfig extends Partial<McpLimits> {
	servers: Record<string, McpServerConfig>;
}

export interface McpToolInfo {
	/** As a model calls it. */
	name: string;
	/** As the server calls it. */
	tool: string;
	description: string;
	/** Changes with what the server says about it. */
	revision: string;
}

export interface McpServerStatus {
	name: string;
	transport: "stdio" | "http";
	state: ProcessPhase["at"];
	/** When it is tried again, while it waits for that. */
	until?: number;
	pid?: number;
	restarts: number;
	/** The last error, until the server has worked for a while. */
	lastError?: string;
	tools: readonly McpToolInfo[];
	/** Tools that are not offered, with the reason. */
	refused: readonly { tool: string; reason: string }[];
}

export interface McpParts {
	/** Relative paths start here. */
	base: string;
	env: EnvironmentVariables;
	/** The client's identity for servers. */
	version: string;
	log: Log;
	clock: Clock;
	random?: () => number;
	rules?: RestartRules;
}
