/** The chat platforms: names, marks, and the states of their accounts and deliveries in words. */

import type {
	AdapterProcessJson,
	DeliveryJson,
	DeliveryMode,
	DeliveryState,
	EventJson,
} from "@nexus-stream/protocol/api";
import { formatRoute } from "../app/route.ts";
import { Icon } from "../ui/element.tsx";
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

export const DELIVERY_WORDS: Readonly<Record<DeliveryState, Words>> = {
	active: { tone: "live", text: "On its way" },
	complete: { tone: "good", text: "Complete" },
	failed: { tone: "bad", text: "Failed" },
	unknown: { tone: "warn", text: "Outcome unknown" },
	stale: { tone: "quiet", text: "Too old to finish" },
	damaged: { tone: "bad", text: "Stored answer damaged" },
};

export const PROCESS_WORDS: Readonly<Record<AdapterProcessJson["state"], Words>> = {
	starting: { tone: "live", text: "Starting" },
	running: { tone: "good", text: "Running" },
	unreachable: { tone: "bad", text: "Platform unreachable" },
	backing_off: { tone: "warn", text: "Waiting to restart" },
	open_circuit: { tone: "bad", text: "Given up for now" },
	stopped: { tone: "quiet", text: "Stopped" },
};

const DISPOSITION_WORDS: Readonly<Record<EventJson["disposition"], Words>> = {
	started: { tone: "good", text: "Answered by a run" },
	queued: { tone: "live", text: "Waiting for its turn" },
	batched: { tone: "good", text: "Answered together with others" },
	injected: { tone: "good", text: "Handed to the run under way" },
	cancelled: { tone: "quiet", text: "Cancelled" },
	handled: { tone: "quiet", text: "Done" },
	superseded: { tone: "quiet", text: "Summarised into a newer message" },
	rejected: { tone: "bad", text: "Not accepted" },
	dropped: { tone: "warn", text: "Dropped at the queue's cap" },
	answered: { tone: "quiet", text: "A decision" },
};

/** The dispositions whose reason is shown. */
const EXPLAINED: ReadonlySet<EventJson["disposition"]> = new Set(["handled", "rejected", "dropped", "answered"]);

/** How a message was handled, and why. */
export function dispositionWords(event: Pick<EventJson, "disposition" | "because" | "run_id">): Words {
	const { tone, text } = DISPOSITION_WORDS[event.disposition];
	if (event.disposition === "superseded" && event.run_id !== undefined)
		return { tone, text: "Stopped for a newer message" };
	const isExplained = EXPLAINED.has(event.disposition) && event.because !== undefined;
	return { tone, text: isExplained ? `${text}: ${event.because}` : text };
}

/** The position up to which the platform has confirmed the text; messages without a confirmation may not have arrived. */
export function confirmedOf({ position, messages }: Pick<DeliveryJson, "position" | "messages">): number {
	const open = messages.filter(({ state }) => state !== "sent" && state !== "open");
	const before = Math.min(position, ...open.map(({ from }) => from));
	return Math.max(before, ...messages.map(({ state, shown = 0, to = 0 }) => (state === "sent" ? to : shown)));
}

/** An error without its code, which is for programs. */
export const errorWords = (error: string): string => error.replace(/^[a-z]+(?:_[a-z]+)*: (?=\S)/, "");

export const ChannelMark = ({ channel }: { channel: string }) => (
	<span class="channel-mark" data-channel={channel} aria-hidden="true">
		{channelMark(channel)}
	</span>
);

/** A link to the run in the inspector. Text that an operator sent directly has no run. */
export const RunLink = ({ runId }: { runId: string | undefined }) =>
	runId?.startsWith("run_") ? (
		<a class="mark inspect" href={formatRoute({ name: "run", runId })} title={runId}>
			<Icon name="pulse" /> Run
		</a>
	) : null;
