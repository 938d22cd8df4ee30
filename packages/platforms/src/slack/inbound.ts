/** What a person wrote, from a Slack event. */

import type { InboundMessage, Target } from "@nexus-stream/adapter";
import type { RemoteFile } from "@nexus-stream/adapter/platform/network";

export interface SlackFile extends RemoteFile {
	url: string;
}

export interface SlackInboundMessage {
	message: InboundMessage;
	/** To be fetched; messages only name their files. */
	files: SlackFile[];
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
export function readEvent(payload: unknown, me: SlackIdentity, threads: Threads): SlackInboundMessage | undefined {
	const { event, team_id: team } = payload as { event?: SlackMessage; team_id?: string };
	if (!event || (event.type !== "message" && event.type !== "app_mention")) return undefined;
	const { user, channel, ts } = event;
	if (!SAID.has(event.subtype) || event.hidden || !user || event.bot_id || user === me.userId) return undefined;
	const { text: said, mention } = readText(event.text ?? "", me.userId);
	const text = [said, ...forwarded(event, me.userId)].filter((each) => each !== "").join("\n");
	const files = filesOf(event);
	if (text === "" && files.length === 0) return undefined;
	// Mentions do not name the kind of their channel; direct ones are told by their id.
	const direct = event.channel_type === undefined ? channel.startsWith("D") : event.channel_type === "im";
	const name = event.user_profile?.display_name || event.user_profile?.real_name;
	return {
		files,
		message: {
			// A mention comes twice, as a message and as a mention: one message.
			eventId: `${channel}:${ts}`,
			from: { id: user, name: name || undefined },
			chat: { id: channel, type: direct ? "direct" : "group" },
			text,
			mention: direct ? undefined : mention,
			target: targetOf(event, direct, threads, event.user_team ?? event.team ?? team),
			ts: Math.floor(Number(ts) * 1000),
		},
	};
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
		...(event.user === undefined ? {} : { user_id: event.user }),
		...(team === undefined ? {} : { team_id: team }),
	};
}

/** Whoever is named in them is not addressed by who forwards them. */
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
