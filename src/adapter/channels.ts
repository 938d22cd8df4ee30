/** The channels that come with Nexus. Each has a folder of its own name here, and a loader in load.ts. */

export const CHANNELS = [
	"discord",
	"telegram",
	"slack",
	"whatsapp",
	"sms",
	"signal",
	"imessage",
	"gmail",
	"nostr",
] as const;

export type Channel = (typeof CHANNELS)[number];
