/** Agents behind one small port, and how the configured one is found. The door of this folder. */

export { agentProblems } from "./agents/agents.ts";
export {
	callModel,
	chooseEngine,
	ENGINES,
	type EngineChoice,
	type EngineSections,
	engineNamed,
	sharedSchemas,
} from "./engines.ts";
export type { EngineServices } from "./entry.ts";
export { loadEngine, unusedSettings } from "./load.ts";
export { createMcp, type Mcp, mcpProblems } from "./mcp/mcp.ts";
export type { ConfiguredModel } from "./model.ts";
export { digestOf } from "./policy.ts";
export type { PiConfig } from "./registry.ts";
export { type MemoryPort, memorySource, type ToolsConfig } from "./tools/tools.ts";
