/** What an engine's folder exports for the registry. It loads neither the engine nor a library: every start and every client reads it. */

import type { Engine } from "@nexus-stream/protocol/engine";
import type { z } from "zod";
import type * as words from "../std/config-words.ts";
import type { Counters } from "../std/counters.ts";
import type { EnvironmentVariables } from "./environment.ts";
import type { CallModel, ConfiguredModel } from "./model.ts";
import type { ToolSource } from "./tools/tools.ts";

export type { EnvironmentVariables };

/** The words that configuration schemas are made of; handed over, so that only whoever checks a file loads the library. */
export type ConfigWords = typeof words;

export interface EngineSetup {
	/** Relative paths of the configuration start here. */
	base: string;
	env: EnvironmentVariables;
	/** Left out when an engine is only looked at. */
	services?: EngineServices;
}

/** What the daemon has that an engine may offer to its agents. */
export interface EngineServices {
	/** In addition to the engine's own tools. */
	toolSources: readonly ToolSource[];
	/** No tool reaches it. */
	dataDir: string;
	/** Files that no tool writes: the configuration, prompts, plugins, modules. */
	protectedFiles: readonly string[];
	/** Files that no tool reads, either: the configuration may hold a token. */
	secretFiles: readonly string[];
	/** All of the configuration: the sections that several engines share, such as `agents`, `phases`, `tools`. */
	config: Readonly<Record<string, unknown>>;
	/** For metrics: what engines count, with bounded labels. */
	counters?: Counters;
	/** Says something to whoever runs the daemon. */
	warn(facts: Readonly<Record<string, unknown>>, message: string): void;
}

/** Whether the keys that an engine needs are set, for `nexus doctor`. */
export interface KeyCheck {
	ok: boolean;
	detail: string;
	/** What to do when they are not. */
	todo?: string;
}

/** `Config` is what `configSchema` lets through; an engine without one has no configuration. */
export interface EngineEntry<Config = unknown> {
	/** What `engine:` calls it. */
	readonly name: string;
	/** The key of `nexus.yaml` that configures it; engines that share one have the same schema. */
	readonly section?: string;
	/** It reads the sections `agents` and `phases`. */
	readonly hasAgents?: boolean;
	/** Which settings of `tools`, `memory` and `mcp` it applies, by path; others are refused. Left out: it plays a script, and they wait for another engine. */
	readonly uses?: readonly string[];
	configSchema?(words: ConfigWords): z.ZodType<Config | undefined>;
	/** How much configuration and environment ask for it when `engine:` is left out: the highest above 0 runs. Never without it. */
	priority?(config: Config | undefined, env: EnvironmentVariables): number;
	/** Why it runs although nobody named it. */
	readonly because?: string;
	/** How to get it chosen, for whoever runs an engine that needs no key. */
	readonly hint?: string;
	/** Left out: it needs no keys. */
	checkKeys?(config: Config | undefined, env: EnvironmentVariables): KeyCheck;
	/** The one that it asks unless an agent has its own; undefined when it asks none. Throws what `load` would. */
	model?(config: Config | undefined, env: EnvironmentVariables): ConfiguredModel | undefined;
	/** By provider: what it asks when nobody names a model. */
	readonly usualModels?: Readonly<Record<string, string>>;
	/** Loads what asks a model without an agent. */
	caller?(): Promise<CallModel>;
	/** Rejects with a `config` error that says what to change. */
	load(config: Config | undefined, place: EngineSetup): Promise<Engine>;
}
