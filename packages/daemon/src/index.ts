/** The package for programs: the engine port to write an agent against, and the daemon to embed. The protocol is `@nexus-stream/protocol`. */

export { NexusError } from "@nexus-stream/protocol";
export type {
	Attachment,
	Engine,
	EngineEvent,
	EngineMessage,
	EngineRequest,
	EngineYield,
	PastToolCall,
	Sender,
	ToolStatus,
} from "@nexus-stream/protocol/engine";
export type { EngineChoice, PiConfig } from "./engine/engine.ts";
export type { HookAnswer, HookContext, HookRequest, Plugin } from "./nex/nex.ts";
export {
	type Daemon,
	type DaemonOptions,
	type PartialConfig,
	startDaemon,
} from "./runtime/runtime.ts";
