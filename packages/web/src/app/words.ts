/** How states and numbers are put for people. */

import type { PhaseJson, RunJson, RunView, SessionJson } from "@nexus-stream/protocol";
import { openAsksOf } from "../chat/approvals.ts";
import type { ChatState, TurnItem } from "../chat/chat.ts";
import { sessionName, UNNAMED, type Written } from "../chat/writer.ts";

const TITLE_CHARS_MAX = 80;

export interface OutcomeLabel {
	readonly tone: "good" | "quiet" | "bad";
	readonly title: string;
	/** What to make of it; undefined when there is nothing to add. */
	readonly detail?: string;
}

/** How a run ended; undefined while it has not. */
export function outcomeOf(view: RunView | undefined, row: RunJson | undefined): OutcomeLabel | undefined {
	if (view && !view.final) return undefined;
	const reason = view?.state ?? reasonOf(row);
	const error = view?.error ?? row?.error;
	switch (reason) {
		case undefined:
		case "streaming":
			return undefined;
		case "completed":
			return { tone: "good", title: "Done" };
		case "aborted":
			return {
				tone: "quiet",
				title: "Stopped",
				detail: error?.message ?? "This answer was stopped. What was written is kept.",
			};
		case "timeout":
			return { tone: "bad", title: "Timed out", detail: error?.message ?? "The agent did not answer in time." };
		case "crashed":
			return {
				tone: "bad",
				title: "Interrupted",
				detail:
					(error?.code === "data_loss" ? error.message : undefined) ??
					"The daemon restarted while this answer was being written. What was saved is shown.",
			};
		default:
			return { tone: "bad", title: "Failed", detail: error?.message ?? "The agent failed without saying why." };
	}
}

function reasonOf(row: RunJson | undefined): string | undefined {
	if (!row || row.status === "running" || row.status === "stopping") return undefined;
	if (row.reason) return row.reason;
	return row.status === "failed" ? "error" : row.status;
}

interface Known {
	readonly sessions: readonly SessionJson[];
	readonly chat?: ChatState;
}

/** The open session as the list knows it, or as its own messages tell while it is not listed. */
export function openSessionOf({
	sessions,
	chat,
}: Known): (Pick<SessionJson, "session" | "title"> & Written) | undefined {
	if (!chat) return undefined;
	const listed = sessions.find(({ session }) => session === chat.session);
	if (listed?.title) return listed;
	const first = chat.turns[0]?.row?.messages.find(({ role }) => role === "user");
	const title = (first?.text ?? chat.outgoing[0]?.text ?? "").slice(0, TITLE_CHARS_MAX);
	return { ...first, ...listed, session: chat.session, title };
}

export function sessionTitle(known: Known): string {
	const open = openSessionOf(known);
	return open ? sessionName(open) : UNNAMED;
}

/** Since when and why a session is in its phase. */
export function phaseWords({ name, from, because }: PhaseJson): string {
	const since = from === undefined ? "" : `, after ${from}`;
	return `Phase ${name}${since}${because === undefined ? "" : `: ${because}`}`;
}

export interface ConnectionLabel {
	readonly state: "live" | "connecting" | "reconnecting" | "paused" | "ended" | "cut";
	readonly label: string;
}

export function connectionOf(chat: ChatState): ConnectionLabel {
	switch (chat.link) {
		case "live":
			return { state: "live", label: "Live" };
		case "connecting":
		case "waiting":
			return chat.wasLive
				? { state: "reconnecting", label: "Reconnecting…" }
				: { state: "connecting", label: "Connecting…" };
		case "paused":
			return { state: "paused", label: "Paused" };
		case "ended":
			return { state: "ended", label: "Ended" };
		case "refused":
		case "lost":
			return { state: "cut", label: "Cut" };
		case "stopped":
			return { state: "paused", label: "New" };
		default:
			return chat.link satisfies never;
	}
}

export function durationText(ms: number): string {
	if (ms < 0) return "0 ms";
	// Rounded first: 999.6 ms is a second, not a thousand of its parts.
	const whole = Math.round(ms);
	if (whole < 1000) return `${whole} ms`;
	const tenths = Math.round(ms / 100) / 10;
	if (tenths < 10) return `${tenths.toFixed(1)} s`;
	const seconds = Math.round(ms / 1000);
	return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

const TENTHS_BELOW_MS = 10_000;

/** A time that runs down. Tenths only where they are waited for: a platform may ask for an hour. */
export const leftText = (ms: number): string =>
	ms < TENTHS_BELOW_MS ? `${(ms / 1000).toFixed(1)} s` : durationText(ms);

export function ageText(at: number, now: number): string {
	const minutes = Math.floor((now - at) / 60_000);
	if (minutes < 1) return "now";
	if (minutes < 60) return `${minutes} min`;
	if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h`;
	if (minutes < 7 * 24 * 60) return `${Math.floor(minutes / (24 * 60))} d`;
	return new Date(at).toLocaleDateString(undefined, { month: "short", day: "numeric" });
}

export const plural = (count: number, one: string, many = `${one}s`): string =>
	`${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** What a screen reader says when a turn's state changes; never the tokens themselves. */
export function announcement(before: TurnItem | undefined, after: TurnItem): string | undefined {
	const ended = outcomeOf(after.view, after.row);
	const sameRun = before?.runId === after.runId;
	const asks = after.view && !ended ? openAsksOf(after.view) : [];
	const known = new Set(before?.view ? openAsksOf(before.view).map(({ id }) => id) : []);
	const fresh = asks.find(({ id }) => !known.has(id));
	if (fresh)
		return fresh.kind === "approval" ? `Waiting for your decision: ${fresh.text}` : `A question: ${fresh.text}`;
	if (!ended) return sameRun ? undefined : "The answer is being written.";
	if (sameRun && outcomeOf(before?.view, before?.row)) return undefined;
	const text = (after.view?.messages ?? [])
		.map(({ text }) => text)
		.filter((said) => said !== "")
		.join(" ")
		.trim();
	const beginning = text
		.slice(0, 1000)
		.replace(/[*`#>|]|(?<!\w)_|_(?!\w)/g, "")
		.replace(/\s+/g, " ")
		.slice(0, 160)
		.trim();
	const said = beginning === "" ? "" : ` ${beginning}${text.length > 160 ? "…" : ""}`;
	return ended.tone === "good" ? `Answer finished.${said}` : `${ended.title}. ${ended.detail ?? ""}${said}`;
}
