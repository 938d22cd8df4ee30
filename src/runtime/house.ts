/** What the daemon has that engines may offer to their agents. */

import { resolve } from "node:path";
import type { EngineHouse } from "../engine/engine.ts";
import { createCounters } from "../std/counters.ts";
import type { NexusConfig } from "./config.ts";

export function createHouse(config: NexusConfig, { warn }: Pick<EngineHouse, "warn">): EngineHouse {
	return {
		toolSources: [],
		dataDir: config.data,
		protectedFiles: protectedFiles(config),
		config: { ...config },
		counters: createCounters(),
		warn,
	};
}

/** What a tool could change to widen what it may do. */
function protectedFiles({ file, plugins = [], engine, agents = {}, base }: NexusConfig): string[] {
	const modules = typeof engine === "object" ? [engine.module] : [];
	const prompts = Object.values(agents).flatMap(({ prompt }) => (prompt === undefined ? [] : [prompt]));
	const named = [...plugins, ...modules, ...prompts.filter((prompt) => !/\s/.test(prompt))];
	return [...(file === undefined ? [] : [file]), ...named.map((path) => resolve(base, path))];
}
