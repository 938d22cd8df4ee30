/** The registry entry that an engine's folder exports. It loads neither the engine nor a library: every start and every client reads it. */

import type { Engine } from "@nexus-stream/protocol/engine";
import type { z } from "zod";
import type * as words from "../std/config-words.ts";
import type { Counters } from "../std/counters.ts";
import type { CallModel, ConfiguredModel } from "./model.ts";
import type { ToolSource } from "./tool.ts";

/** Environment variables, as an argument. */
export type EnvironmentVariables = Readonly<Record<string, string | undefined>>;

/** Building blocks of configuration schemas; passed in, so that only code that checks a file loads the library. */
export type ConfigWords = typeof words;

export interface EngineSetup {
	/** Relative paths of the configuration start here. */
	base: string;
	env: EnvironmentVariables;
	/** Left out when an engine is only looked at. */
	services?: EngineServices;
}

/** Services of the daemon that an engine may offer to its agents. */
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
	/** Prints a notice for the operator. */
	warn(facts: Readonly<Record<string, unknown>>, message: string): void;
}

/** Whether the keys that an engine needs are set, for `nexus doctor`. */
export interface KeyCheck {
	ok: boolean;
	detail: string;
	/** Advice when the keys are missing. */
	todo?: string;
}

/** `Config` is what `configSchema` lets through; an engine without one has no configuration. */
export interface EngineEntry<Config = unknown> {
	/** Its name in `engine:`. */
	readonly name: string;
	/** The key of `nexus.yaml` that configures it; engines that share one have the same schema. */
	readonly section?: string;
	/** It reads the sections `agents` and `phases`. */
	readonly hasAgents?: boolean;
	/** Which settings of `tools`, `memory` and `mcp` it applies, by path; others are refused. Left out: it plays a script, and they wait for another engine. */
	readonly uses?: readonly string[];
	configSchema?(words: ConfigWords): z.ZodType<Config | undefined>;
	/** Priority when `engine:` is left out: the highest above 0 runs. An engine without it runs only when named. */
	priority?(config: Config | undefined, env: EnvironmentVariables): number;
	/** Why it was chosen without being named. */
	readonly because?: string;
	/** How to switch to it from an engine that needs no key. */
	readonly hint?: string;
	/** Left out: it needs no keys. */
	checkKeys?(config: Config | undefined, env: EnvironmentVariables): KeyCheck;
	/** The one that it asks unless an agent has its own; undefined when it asks none. Throws what `load` would. */
	model?(config: Config | undefined, env: EnvironmentVariables): ConfiguredModel | undefined;
	/** Default model by provider. */
	readonly usualModels?: Readonly<Record<string, string>>;
	/** Loads what asks a model without an agent. */
	caller?(): Promise<CallModel>;
	/** Rejects with a `config` error that says what to change. */
	load(config: Config | undefined, place: EngineSetup): Promise<Engine>;
}
