/** What the daemon has that engines may offer to their agents. */

import { BROKER_LIMITS } from "../broker/broker.ts";
import { createMcp, type EngineHouse, type Mcp } from "../engine/engine.ts";
import { NexusError } from "../protocol/protocol.ts";
import type { Log } from "../std/log.ts";
import type { NexusConfig } from "./config.ts";
import { packageVersion } from "./package.ts";

/** Undefined without servers: then nothing of it is loaded. */
export function openMcp(config: NexusConfig, log: Log): Mcp | undefined {
	if (config.mcp === undefined) return undefined;
	refuseLongLimits(config.mcp, config.broker.toolMs ?? BROKER_LIMITS.toolMs);
	return createMcp(config.mcp, { base: config.base, env: process.env, version: packageVersion(), log });
}

/** The run's watchdog would end the run before the tool's own limit ends the tool. */
function refuseLongLimits({ servers }: NonNullable<NexusConfig["mcp"]>, toolMs: number): void {
	for (const [name, { timeoutMs = 0 }] of Object.entries(servers))
		if (timeoutMs > toolMs)
			throw new NexusError(
				"config",
				`mcp.servers.${name}.timeoutMs: ${timeoutMs} is above broker.toolMs, which is ${toolMs}`,
			);
}

export function createHouse(config: NexusConfig, mcp: Mcp | undefined, log: Log): EngineHouse {
	return {
		toolSources: mcp ? [mcp.source] : [],
		dataDir: config.data,
		protectedFiles: config.file === undefined ? [] : [config.file],
		config: { ...config },
		warn: (facts, message) => log.warn(facts, message),
	};
}
