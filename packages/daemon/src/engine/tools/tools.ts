/** Tools that engines offer to models: the registry of them, those that come along, and how people read of a call. The door of this folder. */

export { type BashConfig, builtInTools, type ToolsConfig, timeIn } from "./built-in.ts";
export { describeBy, describeCall, describeWanted } from "./describe.ts";
export { type GuardedFiles, guardedFiles } from "./files/guard.ts";
export { checkToolRoot } from "./files/protect.ts";
export { readTextFile } from "./files/read-file.ts";
export { type MemoryPort, memorySource } from "./memory.ts";
export { asModelTool, prepareCall, type ToolRegistry, toolRegistry, type ValidateArguments } from "./registry.ts";
export { commandEnvironment } from "./shell/bash.ts";
export { wrappedCommand } from "./shell/command.ts";
