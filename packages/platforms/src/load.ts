/** Loads one bundled platform; the libraries of the others stay unloaded. */

import type { Platform } from "@nexus-stream/adapter";
import type { Channel } from "./channels.ts";

const LOADERS: { readonly [channel in Channel]: () => Promise<{ platform: Platform }> } = {
	discord: () => import("./discord/discord.ts"),
	telegram: () => import("./telegram/telegram.ts"),
	slack: () => import("./slack/slack.ts"),
	whatsapp: () => import("./whatsapp/whatsapp.ts"),
	sms: () => import("./sms/sms.ts"),
	signal: () => import("./signal/signal.ts"),
	imessage: () => import("./imessage/imessage.ts"),
	gmail: () => import("./gmail/gmail.ts"),
	nostr: () => import("./nostr/nostr.ts"),
};

export const loadPlatform = async (channel: Channel): Promise<Platform> => (await LOADERS[channel]()).platform;
