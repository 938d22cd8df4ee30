/** Agents behind one small port, and how the configured one is found. The door of this folder. */

export * from "@nexus-stream/protocol/engine";
export { agentProblems, agentsConfigSchema, phasesConfigSchema } from "./agents/agents.ts";
export { callModel, usualModel } from "./call-model.ts";
export {
	chooseEngine,
	ENGINES,
	type EngineChoice,
	type EngineName,
	type EngineSections,
	type Engines,
	engineNamed,
	sectionFor,
} from "./engines.ts";
export type { EngineServices } from "./entry.ts";
export { loadEngine, unusedSettings } from "./load.ts";
export {
	createMcp,
	type Mcp,
	type McpConfig,
	type McpServerStatus,
	mcpConfigSchema,
	mcpProblems,
} from "./mcp/mcp.ts";
export type { ConfiguredModel } from "./model.ts";
export type { PiConfig } from "./registry.ts";
export {
	type BashConfig,
	digestOf,
	isToolAllowed,
	type MemoryPort,
	memorySource,
	needsApproval,
	policyOf,
	type ToolSource,
	type ToolsConfig,
} from "./tools/tools.ts";
