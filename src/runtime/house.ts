/** What the daemon has that engines may offer to their agents. */

import { createMcp, type EngineHouse, type Mcp } from "../engine/engine.ts";
import type { Log } from "../std/log.ts";
import type { NexusConfig } from "./config.ts";
import { packageVersion } from "./package.ts";

/** Undefined without servers: then nothing of it is loaded. */
export function openMcp(config: NexusConfig, log: Log): Mcp | undefined {
	if (config.mcp === undefined) return undefined;
	return createMcp(config.mcp, { base: config.base, env: process.env, version: packageVersion(), log });
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
