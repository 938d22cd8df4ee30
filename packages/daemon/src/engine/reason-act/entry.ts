/** The `reason-act` engine's line in the registry. It runs only when it is named. */

import { resolve } from "node:path";
import type { EngineEntry, EngineSetup, EnvironmentVariables, KeyCheck } from "../entry.ts";
import { piSection } from "../pi/entry.ts";
import { type ReasonActConfig, reasonActConfigSchema, SCRIPTED } from "./config.ts";

export type { ReasonActConfig };

export const reasonAct = {
	name: "reason-act",
	section: "reasonAct",
	hasAgents: true,
	uses: ["tools", "memory", "mcp"],
	configSchema: reasonActConfigSchema,
	hint: piSection.hint,
	checkKeys(config: ReasonActConfig | undefined, env: EnvironmentVariables): KeyCheck {
		if (config?.provider === SCRIPTED) return { ok: true, detail: "none needed for the scripted model" };
		return piSection.checkKeys(config, env);
	},
	model: (config: ReasonActConfig | undefined, env: EnvironmentVariables) =>
		config?.provider === SCRIPTED ? undefined : piSection.model(config, env),
	async load(config: ReasonActConfig | undefined, place: EngineSetup) {
		const { createReasonActEngine } = await import("./reason-act.ts");
		const script = config?.script === undefined ? {} : { script: resolve(place.base, config.script) };
		return createReasonActEngine({ ...config, ...script }, place);
	},
} as const satisfies EngineEntry<ReasonActConfig>;
