/** NEX: from an inbound message to a delivered answer. The door of this folder. */

export type { AclConfig } from "./access/acl.ts";
export { forgetSettings } from "./accounts/account-files.ts";
export type { ApprovalsConfig } from "./approvals/config.ts";
export { createNex, type Nex } from "./create.ts";
export { createOutbound } from "./delivery/outbound.ts";
export {
	type InboundChannelConfig,
	type InboundConfig,
	type InboxLimits,
	type QueueConfig,
	type SessionConfig,
	WEB,
} from "./inbox/config.ts";
export type { Accepted, ChannelMessage, ClientMessage } from "./inbox/message.ts";
export { loadPlugins } from "./plugins/load.ts";
export type { HookAnswer, HookContext, HookRequest, Plugin } from "./plugins/port.ts";
export type {
	AccountChanges,
	AccountConfig,
	AccountName,
	AccountStatus,
	AdapterConfig,
	BlocksConfig,
	ChannelConfig,
	DeliverOptions,
	DeliverRequest,
	DeliveryInfo,
	Outbound,
	PlatformCall,
	StreamingConfig,
} from "./port.ts";
