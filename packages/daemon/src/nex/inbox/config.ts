/** The configuration of the inbound side: by channel, account and session. */

import { createHash } from "node:crypto";
import { isSessionLabel, NexusError } from "@nexus-stream/protocol";
import type { ApprovalPolicy, Engine } from "@nexus-stream/protocol/engine";
import { own } from "@nexus-stream/protocol/own";
import type { QueueSettings } from "../../ledger/inbox/port.ts";
import { type AclConfig, aclOf } from "../access/acl.ts";
import { PAIRING_LIMITS } from "../access/pairing.ts";
import { HOOK_LIMITS, type Hooks } from "../plugins/hooks.ts";

export interface QueueConfig {
	/** `steer` is a synonym of `interrupt`. */
	mode?: QueueSettings["mode"] | "steer";
	/** The mode used instead of `inject` when the engine accepts no messages during a run; default followup. */
	fallback?: NonNullable<QueueSettings["fallback"]> | "steer";
	/** With `interrupt`: the stopped turn is removed from the context. */
	rollback?: boolean;
	collectMs?: number;
	messagesMax?: number;
	atCap?: QueueSettings["atCap"];
}

/** Settings of an account; those of the channel are the default. */
export interface InboundAccountConfig {
	acl?: AclConfig;
	queue?: QueueConfig;
	/** Default: chat. */
	session?: SessionRule;
	/** The name of the agent that answers, as in the access rules. */
	agent?: string;
}

export interface InboundChannelConfig extends InboundAccountConfig {
	accounts?: Readonly<Record<string, InboundAccountConfig>>;
	/** The reply in mode `reject` when the session is busy; empty = none. */
	busyText?: string;
}

export interface SessionConfig {
	queue?: QueueConfig;
	/** All text in its history may act with the rights of a run's sender, unless the owner has changed this since. */
	trustHistory?: boolean;
}

export interface InboundConfig {
	channels?: Readonly<Record<string, InboundChannelConfig>>;
	/** By session label; overrides the channel's settings. */
	sessions?: Readonly<Record<string, SessionConfig>>;
	/** The agent of channels that name none. Default: main. */
	agent?: string;
	/** How approvals of tools are requested. */
	approvals?: ApprovalsConfig;
	/** Names of all configured agents. */
	agents?: readonly string[];
	/** Paths of modules, relative to `base`. */
	plugins?: readonly string[];
	/** Default: the working directory. */
	base?: string;
	limits?: Partial<InboundLimits>;
}

export const INBOUND_LIMITS = {
	...PAIRING_LIMITS,
	...HOOK_LIMITS,
	/** Messages of one session that may wait to be accepted, because of plugins or a slow store. */
	hooksWaitingMax: 256,
	/** Characters kept of a rejected message. */
	rejectedTextCharsMax: 2000,
	/** Rejected messages that are kept. */
	rejectedEventsMax: 10_000,
	/** A session gets the busy text at most once in this time. */
	busyReplyMs: 10_000,
	/** Delay before an adapter without info is asked again. */
	monitorRetryMs: 30_000,
};
export type InboundLimits = typeof INBOUND_LIMITS;

export const COLLECT_MS = 1500;
const AGENT = "main";
const BUSY_TEXT = "I am still answering your last message. Please send this again when I am done.";

/** The effective rules of one account. */
export interface InboundRules {
	acl: AclConfig;
	session: SessionRule;
	agent: string;
	busyText: string;
}

export function rulesOf(
	{ channels = {}, agent: defaultAgent = AGENT }: InboundConfig,
	channel: string,
	account: string,
): InboundRules {
	const { accounts, busyText = BUSY_TEXT, ...common } = own(channels, channel) ?? {};
	const specific = own(accounts, account) ?? {};
	const { session = "chat", agent = defaultAgent } = { ...common, ...specific };
	return { acl: aclOf(common.acl, specific.acl), session, agent, busyText };
}

/** Only the agent: a client's message needs no other rule. */
export const agentOf = ({ channels, agent = AGENT }: InboundConfig, channel: string, account: string): string => {
	const common = own(channels, channel);
	return own(common?.accounts, account)?.agent ?? common?.agent ?? agent;
};

/** Undefined for the web and the API without configuration: one message after another. `messagesMax` is the default of the queue. */
export function queueOf(
	config: InboundConfig,
	{ channel, account, session }: { channel: string; account: string; session: string },
	messagesMax: number,
): QueueSettings | undefined {
	const common = own(config.channels, channel);
	const layers = [common?.queue, own(common?.accounts, account)?.queue, own(config.sessions, session)?.queue];
	if (channel === WEB && layers.every((layer) => layer === undefined)) return undefined;
	const isWeb = channel === WEB;
	const { mode, fallback, ...rest } = {
		mode: isWeb ? "followup" : "interrupt",
		collectMs: COLLECT_MS,
		atCap: isWeb ? "drop_newest" : "summarise",
		messagesMax,
		...Object.assign({}, ...layers),
	} as Required<Omit<QueueConfig, "fallback" | "rollback">> & Pick<QueueConfig, "fallback" | "rollback">;
	const settings: QueueSettings = { ...rest, mode: plain(mode) };
	return mode === "inject" ? { ...settings, fallback: plain(fallback ?? "followup") } : settings;
}

/** The settings of a message that replaces the current run. */
export const interruptingOf = (messagesMax: number): QueueSettings => ({
	mode: "interrupt",
	collectMs: COLLECT_MS,
	messagesMax,
	atCap: "drop_newest",
});

const plain = <Mode extends string>(mode: Mode | "steer") =>
	(mode === "steer" ? "interrupt" : mode) as Exclude<Mode, "steer">;

/** Falls back from `inject` when the engine does not support it, or when a plugin prepares runs and must see every message. */
export const settingsFor = (
	queue: QueueSettings,
	{ injects }: Pick<Engine, "injects">,
	plugins: Pick<Hooks, "has">,
): QueueSettings =>
	queue.mode === "inject" && (injects !== true || plugins.has("onPrepare"))
		? { ...queue, mode: queue.fallback ?? "followup" }
		: queue;

/** The channel of clients that use the daemon's own API. */
export const WEB = "web";

/** Throws `config` for errors that the schema cannot detect. */
export function checkInboundConfig({ channels = {}, approvals = {} }: InboundConfig): void {
	// A server may change the meaning of its tool, which a command prefix would not reveal.
	const served = Object.keys(approvals.prefixes ?? {}).find((tool) => tool.startsWith("mcp__"));
	if (served !== undefined)
		throw new NexusError(
			"config",
			`approvals.prefixes.${served}: calls of MCP servers are allowed only with their exact arguments; remove this entry`,
		);
	for (const [name, channel] of Object.entries(channels)) {
		if (channel.session !== undefined) checkSessionRule(channel.session, `channels.${name}.session`);
		for (const [id, account] of Object.entries(channel.accounts ?? {})) {
			if (account.session !== undefined) checkSessionRule(account.session, `channels.${name}.accounts.${id}.session`);
		}
	}
}

/** The limits of the inbox (I11), for all channels. */
export const INBOX_LIMITS = {
	/** Longer messages are refused. */
	textCharsMax: 200_000,
	idempotencyKeyCharsMax: 256,
	/** Messages of one session that may wait, unless its queue settings define a limit. */
	queueMessagesMax: 100,
	/** Sessions with a run at the same time. */
	runsMax: 4096,
	/** A message that has waited longer than this when the daemon starts is rejected as stale. */
	queuedStaleMs: 15 * 60_000,
};
export type InboxLimits = typeof INBOX_LIMITS;

export interface ChatAddress {
	channel: string;
	account: string;
	chat: string;
	thread?: string;
	sender: string;
}

/** `chat`: one session per chat and thread. `sender`: one per person. Anything else is the label of the one session for all. */
export type SessionRule = string;

/** Characters of a part that cannot be confused with the colons between parts. */
const PLAIN = /^[A-Za-z0-9._@+-]+$/;
const LABEL_CHARS_MAX = 128;
const DIGEST_CHARS = 16;

/** The same label for the same chat or sender, and different labels for different ones. */
export function sessionOf(rule: SessionRule, address: ChatAddress): string {
	if (rule !== "chat" && rule !== "sender") return rule;
	const { channel, account, chat, thread, sender } = address;
	const parts =
		rule === "chat"
			? [channel, account, chat, ...(thread === undefined ? [] : [thread])]
			: [channel, account, "from", sender];
	const label = parts.join(":");
	if (parts.every((part) => PLAIN.test(part)) && label.length <= LABEL_CHARS_MAX && isSessionLabel(label)) return label;
	// A label that is not allowed is reduced to its allowed characters, and a digest of the whole makes it unique.
	const digest = createHash("sha256")
		.update(JSON.stringify([rule, ...parts]))
		.digest("hex")
		.slice(0, DIGEST_CHARS);
	const shown = label.replace(/[^A-Za-z0-9._:@+-]/g, "").replace(/^[^A-Za-z0-9]+/, "");
	return `${shown.slice(0, LABEL_CHARS_MAX - DIGEST_CHARS - 2) || "chat"}:-${digest}`;
}

/** Throws `config` for an invalid label. */
export function checkSessionRule(rule: SessionRule, where: string): void {
	if (isSessionLabel(rule)) return;
	throw new NexusError(
		"config",
		`${where}: ${JSON.stringify(rule)} is not allowed; allowed: chat, sender, or the label of a session (letters, digits and . _ : @ + -)`,
	);
}

/** The configuration of approvals: the operator's chat and the policy by tool. */
export interface ApprovalsConfig {
	/** Where the operator is asked when no member of the requester's chat may decide. */
	to?: ApprovalsTarget;
	/** By tool, for all agents without a policy; a trailing `*` matches any rest. */
	policy?: Readonly<Record<string, ApprovalPolicy>>;
	/** Tools whose results are untrusted text; a trailing `*` matches any rest. Default: `mcp__*` and `bash`. */
	outside?: readonly string[];
	/** By tool: command prefixes that "allow for this session" allows with any arguments. */
	prefixes?: Readonly<Record<string, readonly string[]>>;
}

/** `bash` as well, because a command may fetch any text. */
export const OUTSIDE_TOOLS: readonly string[] = ["mcp__*", "bash"];

export interface ApprovalsTarget {
	channel: string;
	account: string;
	/** The chat's id on the platform. */
	to: string;
	thread?: string;
}
