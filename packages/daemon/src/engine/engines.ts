/** The registry as a list and as types: what `engine:` may say, and which sections of the configuration belong to engines. */

import { loadOnce } from "../std/load-once.ts";
import { agentsConfigSchema, phasesConfigSchema } from "./agents/agents.ts";
import type { ConfigWords, EngineEntry, EnvironmentVariables } from "./entry.ts";
import { mcpConfigSchema } from "./mcp/mcp.ts";
import type { CallModel } from "./model.ts";
import * as registry from "./registry.ts";

/** A parameter everywhere, so that a program or a test may add engines. */
export type Engines = readonly EngineEntry[];

type RegisteredEngine = (typeof registry)[keyof typeof registry];
type SectionOf<E> = E extends { section: infer Section extends string } ? Section : never;

export type EngineName = RegisteredEngine["name"];

/** An engine by name, or a module of one's own. */
export type EngineChoice = EngineName | { module: string };

/** By section: what configures the engines. */
export type EngineSections = {
	[E in RegisteredEngine as SectionOf<E>]?: NonNullable<Parameters<E["load"]>[0]>;
};

/** Each entry's own type of configuration is checked where it is declared; a list of them has one for all. */
export const ENGINES: Engines = Object.values(registry as Record<string, EngineEntry>);

/** The engine of this name, with its section of the configuration. */
export function engineNamed(
	name: string,
	sections: object,
	engines: Engines = ENGINES,
): { entry: EngineEntry; section: unknown } | undefined {
	const entry = engines.find((one) => one.name === name);
	return entry && { entry, section: sectionFor(entry, sections) };
}

const sectionFor = ({ section }: EngineEntry, sections: object): unknown =>
	section === undefined ? undefined : (sections as Record<string, unknown>)[section];

/** Schemas of the sections that several engines share. */
export const sharedSchemas = (words: ConfigWords) => ({
	agents: agentsConfigSchema(words),
	phases: phasesConfigSchema(words),
	mcp: mcpConfigSchema(words),
});

/** The configured engine, else the one with the highest priority for this configuration and environment. */
export function chooseEngine(
	configured: EngineChoice | undefined,
	sections: object,
	env: EnvironmentVariables,
	engines: Engines = ENGINES,
): EngineChoice {
	if (configured !== undefined) return configured;
	const ranked = engines.map((entry) => ({ entry, rank: entry.priority?.(sectionFor(entry, sections), env) ?? 0 }));
	const best = ranked.reduce((most, one) => (one.rank > most.rank ? one : most));
	return best.entry.name as EngineName;
}

const loadCaller = loadOnce(async () => await ENGINES.find(({ caller }) => caller)!.caller!());

/** Calls a model without an agent, with the library of one of the engines; the first call loads it. */
export const callModel: CallModel = async function* (target, request) {
	yield* (await loadCaller())(target, request);
};
