/** What the inbound side is configured with: per channel, per account, per session. */

import { NexusError } from "@nexus-stream/protocol";
import { own } from "@nexus-stream/protocol/own";
import type { Engine } from "../../engine/engine.ts";
import type { QueueSettings } from "../../ledger/ledger.ts";
import { type AclConfig, aclOf } from "../access/acl.ts";
import { PAIRING_LIMITS, type PairingLimits } from "../access/pairing.ts";
import type { ApprovalsConfig } from "../approvals/config.ts";
import { HOOK_LIMITS, type HookLimits, type Hooks } from "../plugins/hooks.ts";
import { checkSessionRule, type SessionRule } from "./session.ts";

export interface QueueConfig {
	/** `steer` is another word for `interrupt`. */
	mode?: QueueSettings["mode"] | "steer";
	/** What `inject` is with an engine that cannot take messages during a run; default followup. */
	fallback?: NonNullable<QueueSettings["fallback"]> | "steer";
	/** `interrupt`: the session starts over without the stopped turn in the context. */
	rollback?: boolean;
	collectMs?: number;
	messagesMax?: number;
	atCap?: QueueSettings["atCap"];
}

/** What an account may say for itself; the channel's words hold where it is silent. */
export interface InboundAccountConfig {
	acl?: AclConfig;
	queue?: QueueConfig;
	/** Default: chat. */
	session?: SessionRule;
	/** The name of the agent that answers, as the access rules call it. */
	agent?: string;
}

export interface InboundChannelConfig extends InboundAccountConfig {
	accounts?: Readonly<Record<string, InboundAccountConfig>>;
	/** Said in mode `reject` when the session is busy; empty = nothing. */
	busyText?: string;
}

export interface SessionConfig {
	queue?: QueueConfig;
	/** Everything in its history may act with the rights of the sender of a run, unless the owner has set it otherwise since. */
	trustHistory?: boolean;
}

export interface InboundConfig {
	channels?: Readonly<Record<string, InboundChannelConfig>>;
	/** By the session's label: stronger than the channel's. */
	sessions?: Readonly<Record<string, SessionConfig>>;
	/** Who answers where a channel does not say it. Default: main. */
	agent?: string;
	/** How people are asked about tools. */
	approvals?: ApprovalsConfig;
	/** Names of all agents that are configured. */
	agents?: readonly string[];
	/** Modules; relative to `base`. */
	plugins?: readonly string[];
	/** Default: the working directory. */
	base?: string;
	limits?: Partial<InboundLimits>;
}

export interface InboundLimits extends PairingLimits, HookLimits {
	/** Messages of one session that may wait to be taken in: for its plugins, or for a slow store. */
	hooksWaitingMax: number;
	/** What is kept of the text of a message that was not let in. */
	rejectedTextCharsMax: number;
	/** How many rejected messages are kept. */
	rejectedEventsMax: number;
	/** A session is told that it is busy only once in this time. */
	busyReplyMs: number;
	/** An adapter that could not be asked what it is, is asked again after this. */
	monitorRetryMs: number;
}

export const INBOUND_LIMITS: InboundLimits = {
	...PAIRING_LIMITS,
	...HOOK_LIMITS,
	hooksWaitingMax: 256,
	rejectedTextCharsMax: 2000,
	rejectedEventsMax: 10_000,
	busyReplyMs: 10_000,
	monitorRetryMs: 30_000,
};

export const COLLECT_MS = 1500;
const AGENT = "main";
const BUSY_TEXT = "I am still answering your last message. Please send this again when I am done.";

/** What holds for one account of one channel. */
export interface InboundRules {
	acl: AclConfig;
	session: SessionRule;
	agent: string;
	busyText: string;
}

export function rulesOf(
	{ channels = {}, agent: usual = AGENT }: InboundConfig,
	channel: string,
	account: string,
): InboundRules {
	const { accounts, busyText = BUSY_TEXT, ...common } = own(channels, channel) ?? {};
	const particular = own(accounts, account) ?? {};
	const { session = "chat", agent = usual } = { ...common, ...particular };
	return { acl: aclOf(common.acl, particular.acl), session, agent, busyText };
}

/** The agent alone: all that a client's message needs to know of the rules. */
export const agentOf = ({ channels, agent = AGENT }: InboundConfig, channel: string, account: string): string => {
	const common = own(channels, channel);
	return own(common?.accounts, account)?.agent ?? common?.agent ?? agent;
};

/** Undefined for the web and the API when nothing is said: one after another. `messagesMax` holds where the queue does not say it. */
export function queueOf(
	config: InboundConfig,
	{ channel, account, session }: { channel: string; account: string; session: string },
	messagesMax: number,
): QueueSettings | undefined {
	const common = own(config.channels, channel);
	const words = [common?.queue, own(common?.accounts, account)?.queue, own(config.sessions, session)?.queue];
	if (channel === WEB && words.every((word) => word === undefined)) return undefined;
	const isWeb = channel === WEB;
	const { mode, fallback, ...rest } = {
		mode: isWeb ? "followup" : "interrupt",
		collectMs: COLLECT_MS,
		atCap: isWeb ? "drop_newest" : "summarise",
		messagesMax,
		...Object.assign({}, ...words),
	} as Required<Omit<QueueConfig, "fallback" | "rollback">> & Pick<QueueConfig, "fallback" | "rollback">;
	const settings: QueueSettings = { ...rest, mode: plain(mode) };
	return mode === "inject" ? { ...settings, fallback: plain(fallback ?? "followup") } : settings;
}

/** Of a message that is answered in the place of what is under way. */
export const interruptingOf = (messagesMax: number): QueueSettings => ({
	mode: "interrupt",
	collectMs: COLLECT_MS,
	messagesMax,
	atCap: "drop_newest",
});

const plain = <Mode extends string>(mode: Mode | "steer") =>
	(mode === "steer" ? "interrupt" : mode) as Exclude<Mode, "steer">;

/** How a message waits with this engine, and beside plugins: one that prepares runs has its say on every message. */
export const settingsFor = (
	queue: QueueSettings,
	{ injects }: Pick<Engine, "injects">,
	plugins: Pick<Hooks, "has">,
): QueueSettings =>
	queue.mode === "inject" && (injects !== true || plugins.has("onPrepare"))
		? { ...queue, mode: queue.fallback ?? "followup" }
		: queue;

/** The channel of clients that speak to the daemon itself. */
export const WEB = "web";

/** Throws `config` for what a schema cannot see. */
export function checkInboundConfig({ channels = {}, approvals = {} }: InboundConfig): void {
	// A server may change what its tool means, and the beginning of a command would not tell.
	const served = Object.keys(approvals.prefixes ?? {}).find((tool) => tool.startsWith("mcp__"));
	if (served !== undefined)
		throw new NexusError(
			"config",
			`approvals.prefixes.${served}: calls of MCP servers are allowed with their exact arguments only; take it out`,
		);
	for (const [name, channel] of Object.entries(channels)) {
		if (channel.session !== undefined) checkSessionRule(channel.session, `channels.${name}.session`);
		for (const [id, account] of Object.entries(channel.accounts ?? {})) {
			if (account.session !== undefined) checkSessionRule(account.session, `channels.${name}.accounts.${id}.session`);
		}
	}
}
