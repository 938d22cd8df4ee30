/** Nostr: answers stream through public threads as ephemeral events and are stored once as a reply; private chats get the wrapped answer only. */

import { type Platform, settingsOf } from "@nexus-stream/adapter";
import type { AdapterInfo } from "@nexus-stream/adapter/port";
import { measure, render } from "./format.ts";
import { LOOK_GAPS, PUBLISHER_LIMITS } from "./publisher.ts";
import { NostrSession } from "./session.ts";

/** Twice encrypted and padded it still fits the 64 KiB that relays take. */
const TEXT_BYTES_MAX = 16_000;

const info = {
	channel: "nostr",
	version: "1",
	protocol: 1,
	supports: ["monitor", "send", "stream", "health", "typing"],
	fields: ["runId", "offset", "intent"],
	limits: { textMax: TEXT_BYTES_MAX, unit: "utf8" },
	typing: { intervalMs: 10_000, expiryMs: 15_000, text: true },
	// The intent fixes the event's id: saying it again is saying the same event.
	reconcile: "history",
	public: true,
	settings: [
		{
			name: "secret_key",
			secret: true,
			required: true,
			prompt: "Secret key of the agent (nsec1… or 64 hex digits)",
			pattern: "^(nsec1[02-9ac-hj-np-z]{58}|[0-9a-fA-F]{64})$",
		},
		{
			name: "relays",
			secret: false,
			required: true,
			prompt: "Relays, with spaces between (wss://relay.example.com …)",
			pattern: "^wss?://\\S+(\\s+wss?://\\S+)*$",
		},
		{
			name: "quorum",
			secret: false,
			required: false,
			prompt: "How many relays must take a message (at most as many as there are)",
			default: "1",
			pattern: "^[1-9]\\d*$",
		},
		{
			name: "flush_ms",
			secret: false,
			required: false,
			prompt: "Least time between two pieces of an answer, in milliseconds (50 to 10000)",
			default: String(PUBLISHER_LIMITS.gapMs),
			pattern: "^\\d{2,5}$",
		},
		{
			name: "flush_ms_max",
			secret: false,
			required: false,
			prompt: "Longest wait of a fast answer's text, in milliseconds (up to 10000)",
			default: String(PUBLISHER_LIMITS.flushMsMax),
			pattern: "^\\d{2,5}$",
		},
		{ name: "name", secret: false, required: false, prompt: "Name in the profile (empty: leave the profile alone)" },
		{ name: "about", secret: false, required: false, prompt: "About the agent, in the profile" },
		{
			name: "picture",
			secret: false,
			required: false,
			prompt: "Address of the profile's picture",
			pattern: "^https?://\\S+$",
		},
		{ name: "nip05", secret: false, required: false, prompt: "Verified name (agent@example.com)" },
	],
} as const satisfies AdapterInfo;

export const platform: Platform = {
	info,
	render,
	measure,
	pace: () => ({ targetIntervalMs: PUBLISHER_LIMITS.gapMs * LOOK_GAPS }),
	open: (account, tools) => new NostrSession(settingsOf(info, account), tools),
};
