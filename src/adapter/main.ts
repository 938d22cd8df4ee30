/** The entry of all bundled adapters: `main.ts <channel> <verb> …`. Only the channel that is asked for is loaded. */

import { exitCodeOf } from "../protocol/protocol.ts";
import { CHANNELS, type Channel } from "./channels.ts";
import type { Platform } from "./kit/platform.ts";
import { serve } from "./kit/serve.ts";

const LOADERS: { readonly [channel in Channel]: () => Promise<{ platform: Platform }> } = {
	discord: () => import("./discord/discord.ts"),
	telegram: () => import("./telegram/telegram.ts"),
	slack: () => import("./slack/slack.ts"),
	whatsapp: () => import("./whatsapp/whatsapp.ts"),
	sms: () => import("./sms/sms.ts"),
	signal: () => import("./signal/signal.ts"),
	imessage: () => import("./imessage/imessage.ts"),
	gmail: () => import("./gmail/gmail.ts"),
};

const [name = "", ...argv] = process.argv.slice(2);
const channel = CHANNELS.find((known) => known === name);
if (channel) {
	const { platform } = await LOADERS[channel]();
	await serve(platform, argv);
} else {
	process.stderr.write(`Unknown channel "${name}". Usage: <${CHANNELS.join(" | ")}> <verb> …\n`);
	process.exitCode = exitCodeOf("invalid");
}
