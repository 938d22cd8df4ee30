/** The options of NEX: the configuration's channels together with the accounts that `nexus adapter add` stored. */

import { resolve } from "node:path";
import { own } from "@nexus-stream/protocol/own";
import type { ChannelConfig, InboundConfig } from "../../nex/nex.ts";
import { readAccounts, type StoredAccount } from "../data/secrets.ts";
import type { NexusConfig } from "./config.ts";

export interface NexConfig {
	adapters: Readonly<Record<string, ChannelConfig>>;
	inbound: InboundConfig;
}

/** Sent to a person whose answer will not come. */
const ERROR_TEXT = "Sorry, I encountered an error.";

type FileChannel = NonNullable<NexusConfig["channels"]>[string];

/** Channels and accounts that only the store knows are there as well; a setting in the file is stronger than a stored one. */
export function nexConfig(config: NexusConfig): NexConfig {
	const channels: Record<string, FileChannel> = { ...config.channels };
	const stored = readAccounts(config.data);
	for (const { channel } of stored) channels[channel] = own(channels, channel) ?? {};
	const merged = Object.entries(channels).map(([name, channel]) => [name, withStored(name, channel, stored)] as const);
	return {
		adapters: Object.fromEntries(merged.map(([name, channel]) => [name, outboundOf(channel, config.base)])),
		inbound: {
			channels: Object.fromEntries(merged),
			base: config.base,
			agent: config.agents && entryAgent(config.agents),
			approvals: config.approvals,
			agents: Object.keys(config.agents ?? {}),
			sessions: config.sessions,
			plugins: config.plugins,
		},
	};
}

/** The orchestrator, or the only one. */
const entryAgent = (agents: NonNullable<NexusConfig["agents"]>): string =>
	Object.keys(agents).find((name) => agents[name]?.orchestrator) ?? Object.keys(agents)[0]!;

/** Channels with an adapter of one's own and no account: nothing starts them. */
export const idleChannels = (adapters: Readonly<Record<string, ChannelConfig>>): string[] =>
	Object.keys(adapters).filter((name) => {
		const { command, accounts } = adapters[name]!;
		return command !== undefined && Object.keys(accounts).length === 0;
	});

/** How to give the channel an account, in words. */
export const idleRemedy = (channel: string): string => `add one with \`nexus adapter add ${channel}\``;

function withStored(name: string, channel: FileChannel, stored: readonly StoredAccount[]): FileChannel {
	const accounts = { ...channel.accounts };
	for (const { account, settings } of stored.filter((each) => each.channel === name)) {
		const written = own(accounts, account);
		accounts[account] = { ...written, settings: { ...settings, ...written?.settings } };
	}
	return { ...channel, accounts };
}

function outboundOf(channel: FileChannel, base: string): ChannelConfig {
	const { acl: _acl, queue: _queue, session: _session, agent: _agent, busyText: _busy, ...outbound } = channel;
	const accounts = Object.entries(channel.accounts ?? {}).map(
		([id, { settings = {}, streaming }]): [string, ChannelConfig["accounts"][string]] => [id, { settings, streaming }],
	);
	return {
		errorText: ERROR_TEXT,
		...outbound,
		accounts: Object.fromEntries(accounts),
		// The path of a program is relative to the configuration file.
		...(channel.command && {
			command: channel.command.map((part) => (/^\.\.?\//.test(part) ? resolve(base, part) : part)),
		}),
	};
}
