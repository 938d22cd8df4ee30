/** NEX: from an inbound message to a delivered answer. The door of this folder. */

export { forgetSettings } from "./accounts/account-files.ts";
export { createNex, type Nex } from "./create.ts";
export { createOutbound } from "./delivery/outbound.ts";
export { type InboundConfig, type InboxLimits, WEB } from "./inbox/config.ts";
export type { Accepted, ChannelMessage, ClientMessage } from "./inbox/message.ts";
export { loadPlugins } from "./plugins/hooks.ts";
export type { HookAnswer, HookContext, HookRequest, Plugin } from "./plugins/port.ts";
export type { AccountChanges, AccountStatus, ChannelConfig, DeliverRequest, Outbound } from "./port.ts";
