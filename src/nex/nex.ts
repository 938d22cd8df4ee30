/** NEX: from an inbound message to a delivered answer. The door of this folder. */

export type { AclConfig } from "./acl/acl.ts";
export type { ApprovalsConfig } from "./approvals/config.ts";
export { createNex, type Nex } from "./create.ts";
export { loadPlugins } from "./hooks/load.ts";
export type { HookAnswer, HookContext, HookRequest, Plugin } from "./hooks/port.ts";
export {
	type InboundChannelConfig,
	type InboundConfig,
	type QueueConfig,
	type SessionConfig,
	WEB,
} from "./inbox/config.ts";
export type { InboxLimits } from "./inbox/limits.ts";
export type { Accepted, ChannelMessage, ClientMessage } from "./inbox/message.ts";
export { createOutbound } from "./outbound.ts";
export * from "./port.ts";
export { forgetSettings } from "./supervise/account-files.ts";
