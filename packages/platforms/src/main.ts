/** The entry of all bundled adapters: `main.ts <channel> <verb> …`. Only the channel that is asked for is loaded. */

import { type Platform, serve } from "@nexus-stream/adapter";
import { exitCodeOf } from "@nexus-stream/protocol";
import { CHANNELS, type Channel } from "./channels.ts";

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

const [name = "", ...argv] = process.argv.slice(2);
const channel = CHANNELS.find((known) => known === name);
if (channel) {
	await serve((await LOADERS[channel]()).platform, argv);
} else {
	process.stderr.write(`Unknown channel "${name}". Usage: <${CHANNELS.join(" | ")}> <verb> …\n`);
	process.exitCode = exitCodeOf("invalid");
}
