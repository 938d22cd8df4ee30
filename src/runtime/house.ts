/** What the daemon has that engines may offer to their agents. */

import { resolve } from "node:path";
import { createMcp, type EngineHouse, type Mcp } from "../engine/engine.ts";
import { createCounters } from "../std/counters.ts";
import type { Log } from "../std/log.ts";
import type { NexusConfig } from "./config.ts";
import { packageVersion } from "./package.ts";

/** Undefined without servers: then nothing of it is loaded. */
export function openMcp(config: NexusConfig, log: Log): Mcp | undefined {
	if (config.mcp === undefined) return undefined;
	return createMcp(config.mcp, { base: config.base, env: process.env, version: packageVersion(), log });
}

export function createHouse(config: NexusConfig, mcp: Mcp | undefined, log: Pick<Log, "warn">): EngineHouse {
	return {
		toolSources: mcp ? [mcp.source] : [],
		dataDir: config.data,
		protectedFiles: protectedFiles(config),
		config: { ...config },
		counters: createCounters(),
		warn: (facts, message) => log.warn(facts, message),
	};
}

/** What a tool could change to widen what it may do. */
function protectedFiles({ file, plugins = [], engine, agents = {}, base }: NexusConfig): string[] {
	const modules = typeof engine === "object" ? [engine.module] : [];
	const prompts = Object.values(agents).flatMap(({ prompt }) => (prompt === undefined ? [] : [prompt]));
	const named = [...plugins, ...modules, ...prompts.filter((prompt) => !/\s/.test(prompt))];
	return [...(file === undefined ? [] : [file]), ...named.map((path) => resolve(base, path))];
}
