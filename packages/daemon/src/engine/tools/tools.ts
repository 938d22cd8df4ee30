/** Tools that engines offer to models: the registry of them, those that come along, and how people read of a call. The door of this folder. */

export { type BashConfig, builtInTools, type ToolsConfig, timeTool } from "./built-in.ts";
export { checkToolRoot } from "./files/contained-path.ts";
export { readTool } from "./files/files.ts";
export { type GuardedFiles, guardedFiles } from "./files/guard.ts";
export { type MemoryPort, memorySource } from "./memory.ts";
export {
	asModelTool,
	describeBy,
	describeCall,
	describeWanted,
	prepareCall,
	type ToolRegistry,
	toolRegistry,
	type ValidateArguments,
} from "./registry.ts";
export { commandEnvironment } from "./shell/bash.ts";
export { wrappedCommand } from "./shell/command.ts";
