/** The `pi-coding-agent` engine's line in the registry. It runs only when it is named: it can do what the daemon's user can do. */

import type { EngineEntry, EnginePlace } from "../entry.ts";
import { inPlace, type PiConfig, piSection } from "../pi/entry.ts";

export const piCodingAgent = {
	...piSection,
	name: "pi-coding-agent",
	uses: ["tools.bash.enabled", "tools.bash.wrapper", "tools.bash.env"],
	async load(config: PiConfig | undefined, { base, env, house }: EnginePlace) {
		const { createPiCodingAgentEngine } = await import("./pi-coding-agent.ts");
		return createPiCodingAgentEngine(inPlace(config, base), env, undefined, house);
	},
} as const satisfies EngineEntry<PiConfig>;
