/** Makes the configured servers. This file loads the protocol's library: it is imported when the first server is wanted. */

import { resolve } from "node:path";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { RESTART_RULES } from "../../std/supervision.ts";
import type { EnvironmentVariables } from "../entry.ts";
import { filledIn, missingVariables } from "./entry.ts";
import { httpLink } from "./http.ts";
import { isStdio, MCP_LIMITS, type McpConfig, type McpParts } from "./port.ts";
import { McpServer } from "./server.ts";
import { stdioLink } from "./stdio.ts";

export function makeServers({ servers, ...own }: McpConfig, parts: McpParts): McpServer[] {
	const limits = withDefaults(MCP_LIMITS, own);
	const { base, env, version, log, clock, random = Math.random, rules = RESTART_RULES } = parts;
	return Object.entries(servers).map(
		([name, spec]) =>
			new McpServer({
				name,
				transport: isStdio(spec) ? "stdio" : "http",
				version,
				limits,
				rules,
				clock,
				random,
				log,
				connect(events) {
					for (const missing of missingVariables(spec, env)) throw new Error(missing);
					if (!isStdio(spec)) {
						const { url, headers, allowLoopback = false } = spec;
						return httpLink({ url, headers: filledIn(headers, env), allowLoopback }, limits, clock, events);
					}
					const { command, args = [], cwd = "." } = spec;
					const place = { command, args, cwd: resolve(base, cwd), env: environmentOf(spec.env, env) };
					return stdioLink(place, limits, clock, events);
				},
			}),
	);
}

/** Nothing of the daemon's own environment but what programs cannot be found without: no keys, no tokens. */
function environmentOf(own: Parameters<typeof filledIn>[0], env: EnvironmentVariables): Record<string, string> {
	const shared = ["PATH", "HOME"].flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]));
	return { ...(Object.fromEntries(shared) as Record<string, string>), ...filledIn(own, env) };
}
