/** Nostr: answers stream through public threads as ephemeral events and are stored once as a reply; private chats get the wrapped answer only. */

import { definePlatform } from "@nexus-stream/adapter";
import { IS_ADDRESS } from "@nexus-stream/adapter/platform/platform";
import { LOOK_GAPS, PUBLISHER_LIMITS } from "./publisher.ts";
import { NostrSession } from "./session.ts";

/** Twice encrypted and padded it still fits the 64 KiB that relays take. */
const TEXT_BYTES_MAX = 16_000;

export const platform = definePlatform({
	info: {
		channel: "nostr",
		supports: ["monitor", "send", "stream", "health", "typing"],
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
				required: true,
				prompt: "Relays, with spaces between (wss://relay.example.com …)",
				pattern: "^wss?://\\S+(\\s+wss?://\\S+)*$",
			},
			{
				name: "quorum",
				prompt: "How many relays must take a message (at most as many as there are)",
				default: "1",
				pattern: "^[1-9]\\d*$",
			},
			{
				name: "flush_ms",
				prompt: "Least time between two pieces of an answer, in milliseconds (50 to 10000)",
				default: String(PUBLISHER_LIMITS.gapMs),
				pattern: "^\\d{2,5}$",
			},
			{
				name: "flush_ms_max",
				prompt: "Longest wait of a fast answer's text, in milliseconds (up to 10000)",
				default: String(PUBLISHER_LIMITS.flushMsMax),
				pattern: "^\\d{2,5}$",
			},
			{ name: "name", prompt: "Name in the profile (empty: leave the profile alone)" },
			{ name: "about", prompt: "About the agent, in the profile" },
			{ name: "picture", prompt: "Address of the profile's picture", pattern: IS_ADDRESS },
			{ name: "nip05", prompt: "Verified name (agent@example.com)" },
		],
	},
	pace: () => ({ targetIntervalMs: PUBLISHER_LIMITS.gapMs * LOOK_GAPS }),
	open: (settings, tools) => new NostrSession(settings, tools),
});
