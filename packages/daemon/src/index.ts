/** The package for programs: the engine port to write an agent against, and the daemon to embed. The protocol is `@nexus-stream/protocol`. */

export { NexusError } from "@nexus-stream/protocol";
export type {
	Attachment,
	Engine,
	EngineChoice,
	EngineEvent,
	EngineMessage,
	EngineRequest,
	EngineYield,
	PastToolCall,
	PiConfig,
	Sender,
	ToolStatus,
} from "./engine/engine.ts";
export type { HookAnswer, HookContext, HookRequest, Plugin } from "./nex/nex.ts";
export {
	type Daemon,
	type DaemonOptions,
	type PartialConfig,
	startDaemon,
} from "./runtime/runtime.ts";
