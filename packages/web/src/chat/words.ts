/** Outcomes, titles, connection states, announcements, and messages to try. */

import type { LinkPhase } from "@nexus-stream/client";
import type { RunView } from "@nexus-stream/protocol";
import type { PhaseJson, RunJson, SessionJson } from "@nexus-stream/protocol/api";
import { openAsksOf } from "./approvals.ts";
import type { ChatState, TurnItem } from "./chat.ts";
import { sessionName, UNNAMED, type Written } from "./writer.ts";

const TITLE_CHARS_MAX = 80;

export interface OutcomeLabel {
	readonly tone: "good" | "quiet" | "bad";
	readonly title: string;
	/** An explanation, where the title does not suffice. */
	readonly detail?: string;
}

/** How a run ended; undefined while it runs. */
export function outcomeOf(view: RunView | undefined, row: RunJson | undefined): OutcomeLabel | undefined {
	if (view && !view.final) return undefined;
	const reason = view?.state ?? reasonOf(row);
	if (reason === undefined || reason === "streaming") return undefined;
	const outcome = OUTCOMES[reason] ?? FAILED;
	const { message, code } = view?.error ?? row?.error ?? {};
	// The error of an interrupted run says only that the process ended, unless data is lost.
	const isTelling = outcome.detail !== undefined && (reason !== "crashed" || code === "data_loss");
	return isTelling && message !== undefined ? { ...outcome, detail: message } : outcome;
}

const FAILED: OutcomeLabel = { tone: "bad", title: "Failed", detail: "The agent failed without saying why." };

/** By the reason of the end, with the detail for a run whose error says nothing else. */
const OUTCOMES: Readonly<Record<string, OutcomeLabel>> = {
	completed: { tone: "good", title: "Done" },
	aborted: { tone: "quiet", title: "Stopped", detail: "This answer was stopped. What was written is kept." },
	timeout: { tone: "bad", title: "Timed out", detail: "The agent did not answer in time." },
	crashed: {
		tone: "bad",
		title: "Interrupted",
		detail: "The daemon restarted while this answer was being written. What was saved is shown.",
	},
};

function reasonOf(row: RunJson | undefined): string | undefined {
	if (!row || row.status === "running" || row.status === "stopping") return undefined;
	if (row.reason) return row.reason;
	return row.status === "failed" ? "error" : row.status;
}

interface OpenSession {
	readonly sessions: readonly SessionJson[];
	readonly chat?: ChatState;
}

/** The open session from the list, or from its own messages while it is not listed. */
export function openSessionOf({
	sessions,
	chat,
}: OpenSession): (Pick<SessionJson, "session" | "title"> & Written) | undefined {
	if (!chat) return undefined;
	const listed = sessions.find(({ session }) => session === chat.session);
	if (listed?.title) return listed;
	const first = chat.turns[0]?.row?.messages.find(({ role }) => role === "user");
	const title = (first?.text ?? chat.outgoing[0]?.text ?? "").slice(0, TITLE_CHARS_MAX);
	return { ...first, ...listed, session: chat.session, title };
}

export function sessionTitle(state: OpenSession): string {
	const open = openSessionOf(state);
	return open ? sessionName(open) : UNNAMED;
}

/** The phase of a session with the one before it and the reason for the change. */
export function phaseWords({ name, from, because }: PhaseJson): string {
	const since = from === undefined ? "" : `, after ${from}`;
	return `Phase ${name}${since}${because === undefined ? "" : `: ${because}`}`;
}

export interface ConnectionLabel {
	readonly state: "live" | "connecting" | "reconnecting" | "paused" | "ended" | "cut";
	readonly label: string;
}

const CONNECTIONS: Readonly<Record<LinkPhase, ConnectionLabel>> = {
	live: { state: "live", label: "Live" },
	connecting: { state: "connecting", label: "Connecting…" },
	waiting: { state: "connecting", label: "Connecting…" },
	paused: { state: "paused", label: "Paused" },
	ended: { state: "ended", label: "Ended" },
	refused: { state: "cut", label: "Cut" },
	lost: { state: "cut", label: "Cut" },
	stopped: { state: "paused", label: "New" },
};

export function connectionOf({ link, wasLive }: ChatState): ConnectionLabel {
	const connection = CONNECTIONS[link];
	return connection.state === "connecting" && wasLive ? { state: "reconnecting", label: "Reconnecting…" } : connection;
}

/** The announcement for screen readers when the state of a turn changes; never the tokens themselves. */
export function announcement(before: TurnItem | undefined, after: TurnItem): string | undefined {
	const ended = outcomeOf(after.view, after.row);
	const sameRun = before?.runId === after.runId;
	const asks = after.view && !ended ? openAsksOf(after.view) : [];
	const announced = new Set(before?.view ? openAsksOf(before.view).map(({ id }) => id) : []);
	const fresh = asks.find(({ id }) => !announced.has(id));
	if (fresh)
		return fresh.kind === "approval" ? `Waiting for your decision: ${fresh.text}` : `A question: ${fresh.text}`;
	if (!ended) return sameRun ? undefined : "The answer is being written.";
	if (sameRun && outcomeOf(before?.view, before?.row)) return undefined;
	const text = (after.view?.messages ?? [])
		.map(({ text }) => text)
		.filter(Boolean)
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

export interface Prompt {
	readonly title: string;
	readonly text: string;
}

const CHAT_DEMO: readonly Prompt[] = [
	{ title: "A tour of everything", text: "Show me what you can stream" },
	{ title: "A long answer to stop", text: "/demo tokens=600 rate=40" },
	{ title: "Thinking and tools", text: "/demo tokens=120 rate=30 reasoning=1 tools=2 tool_ms=1500" },
	{ title: "Product cards in the text", text: "/demo tokens=150 rate=40 cards=3" },
	{ title: "An answer that fails", text: "/demo tokens=200 rate=40 fail_after=60" },
];

const LAB_DEMO: readonly Prompt[] = [
	{ title: "A tool and some text", text: "/demo tokens=200 rate=40 tools=1" },
	{ title: "Everything", text: "Show me what you can stream" },
	{ title: "A long answer", text: "/demo tokens=900 rate=120" },
	{ title: "Several messages", text: "/demo tokens=240 rate=40 messages=3" },
];

const ANY: readonly Prompt[] = [
	{ title: "Formatting", text: "Explain what a log is, with a list, a table and a few lines of code" },
	{ title: "A long answer", text: "Tell me a story of about a thousand words" },
	{ title: "A short answer", text: "Say hello in one sentence" },
];

/** A script plays the same answers to any message. */
const SCRIPTED: readonly Prompt[] = [{ title: "Play the script", text: "Show me what you can do" }];

/** None until the daemon has named its engine. */
function promptsOf(demo: readonly Prompt[], engine: string | undefined, scripted = false): readonly Prompt[] {
	if (engine === undefined) return [];
	if (engine === "demo") return demo;
	return scripted ? SCRIPTED : ANY;
}

export const chatPrompts = (engine: string | undefined, scripted?: boolean) => promptsOf(CHAT_DEMO, engine, scripted);
export const labPrompts = (engine: string | undefined) => promptsOf(LAB_DEMO, engine);
