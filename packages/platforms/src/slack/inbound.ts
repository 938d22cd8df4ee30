/** Reads a person's message from a Slack event, and events from requests that Slack signs. */

import { createHmac } from "node:crypto";
import type { Target, WebhookAnswer, WebhookRequest } from "@nexus-stream/adapter";
import { type MessageWithFiles, type RemoteFile, sameSecret } from "@nexus-stream/adapter/platform/network";
import { readPost } from "@nexus-stream/adapter/platform/webhook";
import { heard } from "../heard.ts";

export interface SlackFile extends RemoteFile {
	url: string;
}

/** Where answers to messages that are in no thread go. */
export type Threads = "channels" | "always" | "never";

export interface SlackIdentity {
	userId: string;
	botId: string | undefined;
}

interface SlackMessage {
	type: string;
	subtype?: string;
	hidden?: boolean;
	channel: string;
	channel_type?: string;
	user?: string;
	bot_id?: string;
	text?: string;
	ts: string;
	thread_ts?: string;
	team?: string;
	user_team?: string;
	user_profile?: { real_name?: string; display_name?: string };
	files?: readonly WireFile[];
	/** A message that was forwarded is one of these; the others are previews of links. */
	attachments?: readonly { is_share?: boolean; author_name?: string; text?: string; files?: readonly WireFile[] }[];
}

interface WireFile {
	name?: string;
	title?: string;
	mimetype?: string;
	size?: number;
	url_private?: string;
	url_private_download?: string;
}

/** The other subtypes tell of changes, not of something said. */
const SAID: ReadonlySet<string | undefined> = new Set([
	undefined,
	"file_share",
	"message_share",
	"thread_broadcast",
	"me_message",
]);

/** `payload` is the body of an event callback. Undefined: nothing a person said to the agent (changes, other bots, our own). */
export function readEvent(
	payload: unknown,
	me: SlackIdentity,
	threads: Threads,
): MessageWithFiles<SlackFile> | undefined {
	const { event, team_id: team } = payload as { event?: SlackMessage; team_id?: string };
	if (!event || (event.type !== "message" && event.type !== "app_mention")) return undefined;
	const { user, channel, ts } = event;
	if (!SAID.has(event.subtype) || event.hidden || !user || event.bot_id || user === me.userId) return undefined;
	const { text, mention } = readText(event.text ?? "", me.userId);
	// Mentions do not name the kind of their channel; the id shows a direct one.
	const direct = event.channel_type === undefined ? channel.startsWith("D") : event.channel_type === "im";
	const name = event.user_profile?.display_name || event.user_profile?.real_name;
	return heard([text, ...forwarded(event, me.userId)], filesOf(event), {
		// A mention comes twice, as a message and as a mention: one message.
		eventId: `${channel}:${ts}`,
		from: { id: user, name: name || undefined },
		chat: { id: channel, type: direct ? "direct" : "group" },
		mention: direct ? undefined : mention,
		target: targetOf(event, direct, threads, event.user_team ?? event.team ?? team),
		ts: Math.floor(Number(ts) * 1000),
	});
}

/** `user_id` and `team_id`: native streaming in a channel needs to know for whom. */
function targetOf(event: SlackMessage, direct: boolean, threads: Threads, team: string | undefined): Target {
	const opened = threads === "always" || (threads === "channels" && !direct) ? event.ts : undefined;
	const thread = event.thread_ts ?? opened;
	return {
		to: event.channel,
		thread_id: thread,
		reply_to: event.ts,
		direct,
		user_id: event.user,
		team_id: team,
	};
}

/** A mention inside a forwarded message does not address us. */
const forwarded = (event: SlackMessage, userId: string): string[] =>
	sharesOf(event)
		.filter(({ text }) => text)
		.map(
			({ author_name, text = "" }) => `[forwarded from ${author_name ?? "somebody"}]\n${readText(text, userId).text}`,
		);

const sharesOf = ({ attachments = [] }: SlackMessage) => attachments.filter(({ is_share }) => is_share);

const filesOf = (event: SlackMessage): SlackFile[] =>
	[event, ...sharesOf(event)]
		.flatMap(({ files = [] }) => files)
		.map((file) => ({
			name: file.name ?? file.title ?? "file",
			contentType: file.mimetype ?? "application/octet-stream",
			url: file.url_private_download ?? file.url_private ?? "",
			bytes: file.size,
		}));

/** Slack's markup in angle brackets as markdown, without our own name. */
export function readText(mrkdwn: string, userId: string): { text: string; mention: boolean } {
	let mention = false;
	const text = mrkdwn.replace(/<([^<>]+)>/g, (_, inside: string) => {
		if (inside === `@${userId}` || inside.startsWith(`@${userId}|`)) {
			mention = true;
			return "";
		}
		return readBracket(inside);
	});
	const plain = text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
	return { text: mention ? plain.replace(/[ \t]{2,}/g, " ").trim() : plain, mention };
}

function readBracket(inside: string): string {
	const bar = inside.indexOf("|");
	const [link, label] = bar < 0 ? [inside, ""] : [inside.slice(0, bar), inside.slice(bar + 1)];
	switch (link[0]) {
		case "@":
			return `@${label || link.slice(1)}`;
		case "#":
			return `#${label || link.slice(1)}`;
		case "!":
			return label || `@${link.slice(1).split("^")[0]}`;
		default: {
			const shown = label.replace(/^mailto:/, "");
			return label === "" || link === label || link === `mailto:${shown}` ? shown || link : `[${label}](${link})`;
		}
	}
}

/** A signature that is older, or that far ahead, is a copy of an earlier request. */
const REPLAY_WINDOW_MS = 5 * 60_000;

/** The verified payload of the Events API or of interactivity, or the answer to the request. */
export function openRequest(
	request: WebhookRequest,
	signingSecret: string,
	now: number,
): { payload: unknown } | WebhookAnswer {
	const fault = (given: WebhookRequest) => refusalOf(given, signingSecret, now);
	const opened = readPost<{ type?: unknown; challenge?: unknown } | null>(request, fault, jsonOf);
	if (!("payload" in opened)) return opened;
	const { type, challenge } = opened.payload ?? {};
	if (type === "url_verification") {
		return { status: 200, headers: { "content-type": "text/plain" }, body: String(challenge), messages: [] };
	}
	return type === "event_callback" || type === "block_actions" ? opened : { status: 200, messages: [] };
}

/** Interactivity sends a form with one field. */
function jsonOf({ headers, body }: WebhookRequest): string {
	const text = body.toString("utf8");
	const isForm = headers["content-type"]?.startsWith("application/x-www-form-urlencoded");
	return isForm ? (new URLSearchParams(text).get("payload") ?? "") : text;
}

function refusalOf({ headers, body }: WebhookRequest, secret: string, now: number): string | undefined {
	if (secret === "") return "this account has no signing_secret";
	const stamp = headers["x-slack-request-timestamp"] ?? "";
	if (!/^\d{1,12}$/.test(stamp)) return "no timestamp";
	const expected = `v0=${createHmac("sha256", secret).update(`v0:${stamp}:`).update(body).digest("hex")}`;
	if (!sameSecret(headers["x-slack-signature"] ?? "", expected)) return "wrong signature";
	return Math.abs(now - Number(stamp) * 1000) > REPLAY_WINDOW_MS ? "the request is too old" : undefined;
}
