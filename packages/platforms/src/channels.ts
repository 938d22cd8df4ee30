/** The channels that come with Nexus. Each has a folder of the same name here, and a loader in main.ts. */

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

/** Blocks as people expect them on a channel of this name, whichever adapter serves it. */
export const CHANNEL_BLOCKS = {
	imessage: { minChars: 600, maxChars: 1000, humanDelayMs: { min: 1000, max: 3000 } },
	whatsapp: { minChars: 600, maxChars: 1000, humanDelayMs: { min: 800, max: 2500 } },
	sms: { minChars: 140, maxChars: 160, humanDelayMs: { min: 500, max: 1500 } },
} as const;

export type Channel = (typeof CHANNELS)[number];
