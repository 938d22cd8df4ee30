/** The channel lab as a value: its state, and the words and delays that follow from it. */

import type { RunView } from "@nexus-stream/protocol";
import type { LabCallJson, LabChannelJson, LabFaultKind, LabStateJson } from "@nexus-stream/protocol/api";
import { channelName, confirmedOf, DELIVERY_WORDS, errorWords } from "../adapters/channels.tsx";
import type { PageView } from "../ui/page.ts";
import type { Words } from "../ui/status.tsx";

export interface LabView extends PageView {
	/** The daemon's last response; undefined until the lab has started. */
	readonly state?: LabStateJson;
	/** The daemon's clock minus the browser's. */
	readonly skewMs: number;
	/** A run was requested and has not begun. */
	readonly isStarting: boolean;
	readonly runId?: string;
	readonly text?: string;
	/** The run as the page shows it. */
	readonly web?: RunView;
	/** Platforms that do not take part. */
	readonly excluded: ReadonlySet<string>;
}

export const NEW_LAB: LabView = { skewMs: 0, isStarting: false, excluded: new Set() };

const BUSY_POLL_MS = 250;
const STARTING_POLL_MS = 500;
/** While a question is open: its decision may come from another page. */
const QUESTION_POLL_MS = 500;

/** Undefined when nothing changes without a command. */
export function pollDelay({ state, web, runId }: LabView): number | undefined {
	if (!state) return undefined;
	const live = runId !== undefined && web !== undefined && !web.final;
	if (live || state.channels.some((each) => each.state === "active" || isPaused(each, state.now))) return BUSY_POLL_MS;
	if (state.question_open) return QUESTION_POLL_MS;
	return state.channels.some(({ ready }) => !ready) ? STARTING_POLL_MS : undefined;
}

const isPaused = ({ rate_limited_until: until = 0 }: LabChannelJson, now: number): boolean => until > now;

export const chosenOf = ({ state, excluded }: LabView): string[] =>
	(state?.channels ?? []).map(({ channel }) => channel).filter((channel) => !excluded.has(channel));

/** How many of the chosen platforms have a running adapter. */
export function readiness(lab: LabView): { ready: number; chosen: number } {
	const chosen = new Set(chosenOf(lab));
	const rows = (lab.state?.channels ?? []).filter(({ channel }) => chosen.has(channel));
	return { ready: rows.filter(({ ready }) => ready).length, chosen: rows.length };
}

export const isDelivering = ({ state }: LabView): boolean =>
	state?.channels.some((each) => each.state === "active") ?? false;

/** The length of the answer so far, in the unit of a delivery's positions. */
export const sourceLength = (web: RunView | undefined): number =>
	(web?.messages ?? []).reduce((sum, { text }) => sum + text.length, 0);

/** How a platform lays out its messages. */
export const mannerOf = (channel: string): "bubbles" | "rows" | "mail" =>
	channel === "discord" || channel === "slack" ? "rows" : channel === "gmail" ? "mail" : "bubbles";

export function cardWords(row: LabChannelJson, now: number): Words {
	if (!row.ready) return { tone: "quiet", text: "Starting…" };
	if (row.state === undefined) return { tone: "quiet", text: "Ready" };
	if (row.state !== "active") return DELIVERY_WORDS[row.state];
	const last = row.delivery?.messages.at(-1);
	if (pauseOf(row, now)) return { tone: "warn", text: "Paused" };
	if (row.draft) return { tone: "live", text: "Drafting…" };
	if (last?.state === "open") return { tone: "live", text: "Editing…" };
	if (row.typing) return { tone: "live", text: "Typing…" };
	return { tone: "live", text: row.mode === "whole" ? "Waiting…" : "Writing…" };
}

export interface PlatformPause {
	/** The begin of the pause on the daemon's clock. */
	readonly since: number;
	readonly text: string;
}

/** Why a delivery pauses: one of its calls failed and none has succeeded since. A rate limit is shown by its own countdown instead. */
export function pauseOf(row: LabChannelJson, now: number): PlatformPause | undefined {
	if (row.state !== "active" || isPaused(row, now)) return undefined;
	const at = row.calls.findLastIndex(
		({ fault, status, ms }) => fault !== undefined || (status === 0 && ms === undefined),
	);
	const call = row.calls[at];
	if (!call || row.calls.slice(at + 1).some((later) => isSuccess(later))) return undefined;
	return { since: call.at, text: PAUSES[call.fault as LabFaultKind]?.(call) ?? "No answer yet; waiting" };
}

const isSuccess = ({ status, fault, call }: LabCallJson): boolean =>
	status >= 200 && status < 400 && fault === undefined && !/typing|chataction|setstatus/i.test(call);

const PAUSES: Readonly<Partial<Record<LabFaultKind, (call: LabCallJson) => string>>> = {
	"429": () => "Too many requests; trying again",
	"5xx": ({ status }) => `Failed${status >= 500 ? ` with ${status}` : ""}; trying again`,
	hang: ({ ms }) => (ms === undefined ? "No answer yet; waiting" : "No answer; checking whether it arrived"),
	reset_after_accept: () => "Connection broke; checking whether it arrived",
};

/** An explanation of how a delivery ended. `length`: of the whole answer. */
export function outcomeNote({ channel, state, delivery }: LabChannelJson, length: number): string | undefined {
	if (!delivery || state === "active") return undefined;
	if (state !== "unknown") return delivery.error === undefined ? undefined : errorWords(delivery.error);
	const name = channelName(channel);
	return confirmedOf(delivery) >= length
		? `The text arrived. ${name} did not confirm a card or file, and cannot be asked: look at the chat.`
		: `${name} did not confirm a message, and cannot be asked whether it arrived. It is not sent again: look at the chat.`;
}

/** Whether a bubble can still change. */
export function isOpen(row: LabChannelJson, index: number): boolean {
	const last = row.delivery?.messages.at(-1);
	return row.state === "active" && index === row.messages.length - 1 && last?.state === "open";
}

export const FAULTS: readonly { kind: LabFaultKind; label: string; title: string }[] = [
	{ kind: "429", label: "429", title: "refuses the next call: too many requests" },
	{ kind: "5xx", label: "5xx", title: "fails the next call with a server error" },
	{ kind: "hang", label: "Hang", title: "does not answer the next call" },
	{ kind: "reset_after_accept", label: "Reset", title: "takes the next call, then breaks the connection" },
];
