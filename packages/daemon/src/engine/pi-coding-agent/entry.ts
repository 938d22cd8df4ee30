/** The `pi-coding-agent` engine's line in the registry. It runs only when it is named: it can do what the daemon's user can do. */

import type { EngineEntry, EngineSetup } from "../entry.ts";
import { type PiConfig, piSection, resolvedConfig } from "../pi/entry.ts";

export const piCodingAgent = {
	...piSection,
	name: "pi-coding-agent",
	uses: ["tools.bash.enabled", "tools.bash.wrapper", "tools.bash.env"],
	async load(config: PiConfig | undefined, { base, env, services }: EngineSetup) {
		const { createPiCodingAgentEngine } = await import("./pi-coding-agent.ts");
		return createPiCodingAgentEngine(resolvedConfig(config, base), env, undefined, services);
	},
} as const satisfies EngineEntry<PiConfig>;
