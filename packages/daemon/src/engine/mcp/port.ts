/** MCP servers as the `mcp:` section of `nexus.yaml` names them, their limits, the names of their tools, and how they are doing. */

import { createHash } from "node:crypto";
import type { Transport } from "@modelcontextprotocol/client";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { EngineRequest } from "@nexus-stream/protocol/engine";
import type { Log } from "@nexus-stream/protocol/log";
import type { z } from "zod";
import type { ProcessPhase, RestartRules } from "../../std/supervision.ts";
import type { ConfigWords, EnvironmentVariables } from "../entry.ts";

export const MCP_LIMITS = {
	/** From the start of a server to the list of its tools. */
	startMs: 10_000,
	/** A server that does not answer a ping for this long is started again; also how often it is asked. */
	pingMs: 30_000,
	/** After a list has changed, how long a run waits for the new one. */
	listMs: 5000,
	/** One message of a server. */
	messageBytesMax: 8 * 1024 * 1024,
	messagesPerSecondMax: 1000,
	/** Lines on a server's stdout that are no messages, within a minute. */
	garbageLinesMax: 200,
	toolsMax: 128,
	/** A tool as the server lists it. */
	descriptionCharsMax: 4096,
	schemaBytesMax: 64 * 1024,
	/** One result, as the model gets it. */
	resultBytesMax: 1024 * 1024,
	resultPartsMax: 64,
	/** Fields that one form may ask a person for. */
	questionsMax: 8,
	/** At shutdown: from the end of its input to SIGTERM, and from there to SIGKILL. */
	stopMs: 1000,
};
export type McpLimits = typeof MCP_LIMITS;

export const mcpConfigSchema = (words: ConfigWords) => {
	const { bytes, count, flag, group, ms, mapOf, needed, oneOf, text, texts, either } = words;
	// Secrets never stand in the file.
	const secret = group({ env: needed(text("the name of a variable")), prefix: text("a text, such as `Bearer `") });
	const value = either([needed(text("a text")), needed(secret)], "a text, or { env: VARIABLE } for a secret");
	const shared = {
		/** Time limit of its tools; never above `broker.toolMs`. */
		timeoutMs: ms,
		/** The policy of its tools; `non-owner` by default. The server's own annotations never lower it; an agent's configuration may. */
		approval: oneOf(["non-owner", "always"]),
	};
	const stdio = group({
		command: needed(text("a program")),
		args: texts("a list of texts"),
		/** All that it gets of the environment, besides `PATH` and `HOME`. */
		env: mapOf(needed(value), "a map from variables to texts or { env: VARIABLE }"),
		cwd: text("a folder; relative to this file"),
		...shared,
	});
	const http = group({
		url: needed(text("an https address")),
		headers: mapOf(needed(value), "a map from headers to texts or { env: VARIABLE }"),
		/** It may be on this machine, and without TLS. */
		allowLoopback: flag,
		...shared,
	});
	const limits = {
		startMs: ms,
		pingMs: ms,
		listMs: ms,
		messageBytesMax: bytes,
		messagesPerSecondMax: count,
		garbageLinesMax: count,
		toolsMax: count,
		descriptionCharsMax: count,
		schemaBytesMax: bytes,
		resultBytesMax: bytes,
		resultPartsMax: count,
		questionsMax: count,
		stopMs: ms,
	} satisfies Record<keyof McpLimits, unknown>;
	const server = either(
		[needed(stdio), needed(http)],
		"a map with either `command` (and args, env, cwd) or `url` (and headers)",
	);
	return group({ servers: needed(mapOf(needed(server), "a map from names to servers")), ...limits });
};

export type McpConfig = z.infer<ReturnType<typeof mcpConfigSchema>>;
export type McpServerConfig = McpConfig["servers"][string];
export type StdioServer = Extract<McpServerConfig, { command: string }>;

export const isStdio = (server: McpServerConfig): server is StdioServer => "command" in server;

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

const NAME_CHARS_MAX = 64;
const HASH_CHARS = 8;

/** Without `__`, and without `_` at either end: the first `__` behind `mcp__` ends the server's name, whatever its tools are called. */
export const SERVER_NAME = /^(?=.{1,32}$)[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*$/;

export function toolName(server: string, tool: string): string {
	const name = `${toolPrefix(server)}${tool.replace(/[^A-Za-z0-9_-]/g, "_")}`;
	if (name.length <= NAME_CHARS_MAX) return name;
	const hash = createHash("sha256").update(tool).digest("hex").slice(0, HASH_CHARS);
	return `${name.slice(0, NAME_CHARS_MAX - HASH_CHARS - 1)}_${hash}`;
}

const toolPrefix = (server: string): string => `mcp__${server}__`;

/** Tools of a server whose names become equal: none of them is offered, because a call would be ambiguous. */
export function collisions(server: string, tools: readonly string[]): ReadonlySet<string> {
	const byName = Map.groupBy(tools, (tool) => toolName(server, tool));
	return new Set([...byName.values()].filter((same) => same.length > 1).flat());
}

/** Whether the run may use any tool of the server; otherwise it never starts the server. */
export function mayUse(
	server: string,
	{ allowedTools, deniedTools }: Pick<EngineRequest, "allowedTools" | "deniedTools">,
): boolean {
	const prefix = toolPrefix(server);
	const meets = (wanted: string) =>
		wanted.endsWith("*")
			? prefix.startsWith(wanted.slice(0, -1)) || wanted.startsWith(prefix)
			: wanted.startsWith(prefix);
	const coversAll = (denied: string) => denied.endsWith("*") && prefix.startsWith(denied.slice(0, -1));
	return (allowedTools?.some(meets) ?? true) && !(deniedTools?.some(coversAll) ?? false);
}

export interface McpTransport extends Transport {
	readonly pid?: number | undefined;
}

export interface LinkEvents {
	/** Once: the connection is over, as far as anybody can tell. A server elsewhere may be gone without a word. */
	lost(why: string): void;
	/** A line for the log. */
	said(line: string): void;
}
