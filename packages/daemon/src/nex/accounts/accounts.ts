/** The configured accounts, each made when it is first needed. */

import { NexusError } from "@nexus-stream/protocol";
import { own } from "@nexus-stream/protocol/own";
import type { AccountChanges, AccountName, AdapterConfig, ChannelConfig } from "../port.ts";
import { type AccountOptions, ChannelAccount, createInfoCache, type InfoCache } from "./account.ts";

export interface Accounts {
	readonly infos: InfoCache;
	/** Throws `not_found` for one that is not configured. */
	check(channel: string, id: string): void;
	/** Throws like `check`. */
	of(channel: string, id: string): ChannelAccount;
	/** All that are configured. */
	all(): ChannelAccount[];
	/** Takes up another configuration. Those that are gone or different are handed out to be ended: nobody gets them any more. */
	reconfigure(adapters: AdapterConfig): AccountChanges & { retired: ChannelAccount[] };
	stop(): Promise<void>;
}

const keyOf = (channel: string, id: string): string => `${channel}/${id}`;

/** Every account with all that is said about it. */
function namesOf(adapters: AdapterConfig): Map<string, { name: AccountName; print: string }> {
	const all = Object.entries(adapters).flatMap(([channel, { accounts, ...common }]) =>
		Object.entries(accounts).map(([id, own]) => ({ name: { channel, id }, print: JSON.stringify([common, own]) })),
	);
	return new Map(all.map((each) => [keyOf(each.name.channel, each.name.id), each]));
}

export type AccountDeps = Omit<AccountOptions, "channel" | "id" | "config" | "infos" | "stopping">;

export function createAccounts(configured: AdapterConfig, deps: AccountDeps): Accounts {
	let adapters = configured;
	const ending = new AbortController();
	const stopping = ending.signal;
	const { limits, dataDir, onStatus } = deps;
	const oneShot = { limits: limits.oneShot, signal: stopping, dataDir, onInfo: onStatus };
	const infos = createInfoCache(() => adapters, oneShot);
	const made = new Map<string, ChannelAccount>();
	const configOf = (channel: string, id: string): ChannelConfig => {
		const config = own(adapters, channel);
		if (config && own(config.accounts, id)) return config;
		const others = Object.keys(config?.accounts ?? {});
		const add = `nexus adapter add ${channel}${id === "main" ? "" : ` --account ${id}`}`;
		const known = others.length === 0 ? "" : `; the channel has ${others.join(", ")} (\`--account\`)`;
		throw new NexusError("not_found", `There is no account ${channel}/${id}: add it with \`${add}\`${known}.`);
	};
	const of = (channel: string, id: string): ChannelAccount => {
		const key = keyOf(channel, id);
		const known = made.get(key);
		if (known) return known;
		const account = new ChannelAccount({ channel, id, config: configOf(channel, id), infos, stopping, ...deps });
		made.set(key, account);
		return account;
	};
	return {
		infos,
		check: (channel, id) => void configOf(channel, id),
		of,
		all: () =>
			Object.entries(adapters).flatMap(([channel, { accounts }]) => Object.keys(accounts).map((id) => of(channel, id))),
		reconfigure(next) {
			const before = namesOf(adapters);
			const after = namesOf(next);
			const found = {
				added: [...after].flatMap(([key, { name }]) => (before.has(key) ? [] : [name])),
				removed: [...before].flatMap(([key, { name }]) => (after.has(key) ? [] : [name])),
				changed: [...after].flatMap(([key, { name, print }]) => {
					const old = before.get(key);
					return old && old.print !== print ? [name] : [];
				}),
			};
			adapters = next;
			const retired = [...found.removed, ...found.changed].flatMap(({ channel, id }) => {
				const key = keyOf(channel, id);
				const account = made.get(key);
				made.delete(key);
				return account ?? [];
			});
			onStatus();
			return { ...found, retired };
		},
		async stop() {
			ending.abort();
			await Promise.all([...made.values()].map((account) => account.stop()));
		},
	};
}
