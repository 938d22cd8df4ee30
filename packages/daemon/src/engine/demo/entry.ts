/** The demo engine's line in the registry: what runs when nothing is configured. */

import type { EngineEntry } from "../entry.ts";

export const demo = {
	name: "demo",
	priority: () => 1,
	because: "no model is configured",
	load: async () => (await import("./demo.ts")).demoEngine,
} as const satisfies EngineEntry;
