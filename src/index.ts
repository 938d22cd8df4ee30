/** What the package offers to programs: the engine port to write an agent against, the protocol, and the daemon to embed. */
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
export * from "./protocol/protocol.ts";
export {
	type Daemon,
	type DaemonOptions,
	type DaemonState,
	type PartialConfig,
	startDaemon,
} from "./runtime/runtime.ts";
