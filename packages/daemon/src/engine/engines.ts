/** The registry as a list and as types: what `engine:` may say, and which sections of the configuration belong to engines. */

import type { EngineEntry, EnvironmentVariables } from "./entry.ts";
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

export const engineNamed = (name: string, engines: Engines = ENGINES): EngineEntry | undefined =>
	engines.find((entry) => entry.name === name);

/** The engine's section of the configuration. */
export const sectionFor = ({ section }: EngineEntry, sections: object): unknown =>
	section === undefined ? undefined : (sections as Record<string, unknown>)[section];

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
