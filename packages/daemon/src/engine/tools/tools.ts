/** Tools that engines offer to models: what one is, the registry of them, those that come along, and how people read of a call. The door of this folder. */

export type { ApprovalPolicy } from "@nexus-stream/protocol/engine";
export { commandEnvironment } from "./bash.ts";
export { type BashConfig, builtInTools, type ToolsConfig } from "./built-in.ts";
export { wrappedCommand } from "./command.ts";
export { describeBy, describeCall, describeWanted } from "./describe.ts";
export { type GuardedFiles, guardedFiles } from "./guard.ts";
export { type MemoryPort, memorySource } from "./memory.ts";
export { TOOL_NAMES } from "./names.ts";
export { digestOf, isToolAllowed, needsApproval, policyOf, refusalOf } from "./policy.ts";
export type {
	CustomState,
	Describe,
	JsonSchema,
	Tool,
	ToolContext,
	ToolQuestion,
	ToolResult,
	ToolSource,
} from "./port.ts";
export { checkToolRoot } from "./protect.ts";
export { readTextFile } from "./read-file.ts";
export {
	asModelTool,
	prepareCall,
	type ToolRegistry,
	textResult,
	toolRegistry,
	type ValidateArguments,
} from "./registry.ts";
export { timeIn } from "./time.ts";
export { ContextWords, type Needed } from "./words.ts";
