/** Services that the daemon offers to its engine's agents, and the files that it protects from them. */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { NexusError } from "@nexus-stream/protocol";
import { systemClock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Log } from "@nexus-stream/protocol/log";
import { BROKER_LIMITS } from "../../broker/broker.ts";
import {
	createMcp,
	ENGINES,
	type EngineServices,
	type Mcp,
	type MemoryPort,
	memorySource,
} from "../../engine/engine.ts";
import { MEMORY_DEFAULTS } from "../../services/memory/memory.ts";
import { createCounters } from "../../std/counters.ts";
import { CONFIG_DEFAULTS, type NexusConfig } from "../config/config.ts";
import { dataPaths } from "../data/data-dir.ts";
import { packageVersion } from "../package.ts";

/** Undefined without servers: then nothing of it is loaded. */
export function openMcp(config: NexusConfig, log: Log): Mcp | undefined {
	if (config.mcp === undefined) return undefined;
	refuseLongLimits(config.mcp, config.broker.toolMs ?? BROKER_LIMITS.toolMs);
	const { base } = config;
	return createMcp(config.mcp, { base, env: process.env, version: packageVersion(), clock: systemClock, log });
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

/** Left out where an engine is only looked at. */
export interface Offered {
	memory?: MemoryPort;
	mcp?: Mcp | undefined;
}

export function createEngineServices(
	config: NexusConfig,
	log: Pick<Log, "warn">,
	offered: Offered = {},
): EngineServices {
	const files = [resolve(config.base, CONFIG_DEFAULTS.config), ...(config.file === undefined ? [] : [config.file])];
	// No tool reaches the data directory; a link to this file may stand elsewhere.
	const own = [...files, dataPaths(config.data).secret];
	return {
		toolSources: sourcesOf(config, offered),
		dataDir: config.data,
		protectedFiles: [...own, ...namedFiles(config)],
		secretFiles: own,
		config: config as unknown as Readonly<Record<string, unknown>>,
		counters: createCounters(),
		warn: (facts, message) => log.warn(facts, message),
	};
}

function sourcesOf(config: NexusConfig, { memory, mcp }: Offered): EngineServices["toolSources"] {
	const limits = withDefaults(MEMORY_DEFAULTS, config.memory);
	const noting = memory && limits.enabled ? [memorySource(memory, limits)] : [];
	return mcp ? [...noting, mcp.source] : noting;
}

/** Files that decide what this daemon does: modules, plugins, adapters, MCP servers, prompts, scripts. */
function namedFiles(config: NexusConfig): string[] {
	const { engine, plugins = [], channels = {}, base } = config;
	const modules = typeof engine === "object" ? [engine.module, ...plugins] : plugins;
	const commands = Object.values(channels).flatMap(({ command = [] }) => command);
	const sections = config as unknown as Readonly<Record<string, unknown>>;
	const named = ["agents", "mcp", ...ENGINES.flatMap(({ section }) => section ?? [])];
	const texts = named.flatMap((name) => textsIn(sections[name]));
	const maybe = [...commands, ...texts].filter((name) => isFileName(name) && existsSync(resolve(base, name)));
	return [...modules, ...maybe].map((name) => resolve(base, name));
}

const FILE_NAME_CHARS_MAX = 4096;

/** A prompt may also be the text itself. */
const isFileName = (text: string): boolean => text.length <= FILE_NAME_CHARS_MAX && !/[\n\0]/.test(text);

/** Every text in a section, however deep. */
function textsIn(value: unknown): string[] {
	if (typeof value === "string") return [value];
	return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
