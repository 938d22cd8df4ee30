/** Names and marks of the chat platforms, and the states of their accounts and deliveries in words. */

import type {
	AdapterProcessJson,
	DeliveryJson,
	DeliveryMode,
	DeliveryState,
	EventJson,
} from "@nexus-stream/protocol/api";
import type { Words } from "../ui/status.tsx";

const NAMES: ReadonlyMap<string, string> = new Map([
	["web", "Web page"],
	["telegram", "Telegram"],
	["discord", "Discord"],
	["slack", "Slack"],
	["whatsapp", "WhatsApp"],
	["imessage", "iMessage"],
	["signal", "Signal"],
	["sms", "SMS"],
	["gmail", "Gmail"],
	["nostr", "Nostr"],
]);

export const channelName = (channel: string): string => NAMES.get(channel) ?? channel;

const MARKS: ReadonlyMap<string, string> = new Map([
	["whatsapp", "WA"],
	["imessage", "iM"],
	["sms", "SM"],
]);

/** One or two letters that stand for a channel where there is no room for its name. */
export const channelMark = (channel: string): string =>
	MARKS.get(channel) ?? channelName(channel).slice(0, 1).toUpperCase();

export const MODE_WORDS: Readonly<Record<DeliveryMode, string>> = {
	stream: "Live",
	blocks: "In blocks",
	whole: "In one piece",
};

const DELIVERY_WORDS: Readonly<Record<DeliveryState, Words>> = {
	active: { tone: "live", text: "On its way" },
	complete: { tone: "good", text: "Complete" },
	failed: { tone: "bad", text: "Failed" },
	unknown: { tone: "warn", text: "Outcome unknown" },
	stale: { tone: "quiet", text: "Too old to finish" },
	damaged: { tone: "bad", text: "Stored answer damaged" },
};

export const deliveryWords = (state: DeliveryState): Words => DELIVERY_WORDS[state];

const PROCESS_WORDS: Readonly<Record<AdapterProcessJson["state"], Words>> = {
	starting: { tone: "live", text: "Starting" },
	running: { tone: "good", text: "Running" },
	unreachable: { tone: "bad", text: "Platform unreachable" },
	backing_off: { tone: "warn", text: "Waiting to restart" },
	open_circuit: { tone: "bad", text: "Given up for now" },
	stopped: { tone: "quiet", text: "Stopped" },
};

export const processWords = (state: AdapterProcessJson["state"]): Words => PROCESS_WORDS[state];

/** How a message was handled, and why. */
export function dispositionWords(event: Pick<EventJson, "disposition" | "because" | "run_id">): Words {
	const why = event.because === undefined ? "" : `: ${event.because}`;
	switch (event.disposition) {
		case "started":
			return { tone: "good", text: "Answered by a run" };
		case "queued":
			return { tone: "live", text: "Waiting for its turn" };
		case "batched":
			return { tone: "good", text: "Answered together with others" };
		case "injected":
			return { tone: "good", text: "Handed to the run under way" };
		case "cancelled":
			return { tone: "quiet", text: "Cancelled" };
		case "handled":
			return { tone: "quiet", text: `Done${why}` };
		case "superseded":
			return {
				tone: "quiet",
				text: event.run_id === undefined ? "Summarised into a newer message" : "Stopped for a newer message",
			};
		case "rejected":
			return { tone: "bad", text: `Not accepted${why}` };
		case "dropped":
			return { tone: "warn", text: `Dropped at the queue's cap${why}` };
		case "answered":
			return { tone: "quiet", text: `A decision${why}` };
		default:
			return event.disposition satisfies never;
	}
}

/** The position up to which the platform has confirmed the text; messages without a confirmation may not have arrived. */
export function confirmedOf({ position, messages }: Pick<DeliveryJson, "position" | "messages">): number {
	const open = messages.filter(({ state }) => state !== "sent" && state !== "open");
	const before = Math.min(position, ...open.map(({ from }) => from));
	return Math.max(before, ...messages.map(({ state, shown = 0, to = 0 }) => (state === "sent" ? to : shown)));
}

/** An error without its code, which is for programs. */
export const errorWords = (error: string): string => error.replace(/^[a-z]+(?:_[a-z]+)*: (?=\S)/, "");
