/** The channels that come with Nexus. Each has a folder of its own name here, and a loader in main.ts. */

export const CHANNELS = ["discord", "telegram", "slack", "whatsapp", "sms", "signal", "imessage", "gmail"] as const;

export type Channel = (typeof CHANNELS)[number];
