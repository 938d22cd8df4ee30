/** The configured accounts, each created on first use. */

import { NexusError } from "@nexus-stream/protocol";
import { own } from "@nexus-stream/protocol/own";
import type { AccountChanges, AccountName, AdapterConfig, ChannelConfig } from "../port.ts";
import { type AccountOptions, ChannelAccount } from "./account.ts";
import { createInfoCache } from "./one-shot.ts";

export type Accounts = ReturnType<typeof createAccounts>;

const keyOf = (channel: string, id: string): string => `${channel}/${id}`;

/** Every account with its whole configuration as text. */
function namesOf(adapters: AdapterConfig): Map<string, { name: AccountName; text: string }> {
	const all = Object.entries(adapters).flatMap(([channel, { accounts, ...common }]) =>
		Object.entries(accounts).map(([id, account]) => ({
			name: { channel, id },
			text: JSON.stringify([common, account]),
		})),
	);
	return new Map(all.map((each) => [keyOf(each.name.channel, each.name.id), each]));
}

export type AccountDeps = Omit<AccountOptions, "channel" | "id" | "config" | "infos" | "stopping">;

export function createAccounts(configured: AdapterConfig, deps: AccountDeps) {
	let adapters = configured;
	const controller = new AbortController();
	const stopping = controller.signal;
	const { limits, clock, dataDir, onStatus } = deps;
	const oneShot = { limits: limits.oneShot, clock, signal: stopping, dataDir, onInfo: onStatus };
	const infos = createInfoCache(() => adapters, oneShot);
	const made = new Map<string, ChannelAccount>();
	const configOf = (channel: string, id: string): ChannelConfig => {
		const config = own(adapters, channel);
		if (config && own(config.accounts, id)) return config;
		const others = Object.keys(config?.accounts ?? {});
		const add = `nexus adapter add ${channel}${id === "main" ? "" : ` --account ${id}`}`;
		const hint = others.length === 0 ? "" : `; the channel has ${others.join(", ")} (\`--account\`)`;
		throw new NexusError("not_found", `There is no account ${channel}/${id}: add it with \`${add}\`${hint}.`);
	};
	const of = (channel: string, id: string): ChannelAccount => {
		const key = keyOf(channel, id);
		const existing = made.get(key);
		if (existing) return existing;
		const account = new ChannelAccount({ channel, id, config: configOf(channel, id), infos, stopping, ...deps });
		made.set(key, account);
		return account;
	};
	return {
		infos,
		/** Throws `not_found` for an account that is not configured. */
		check: (channel: string, id: string) => void configOf(channel, id),
		/** Throws like `check`. */
		of,
		/** Every configured account. */
		all: () =>
			Object.entries(adapters).flatMap(([channel, { accounts }]) => Object.keys(accounts).map((id) => of(channel, id))),
		/** Applies another configuration. The caller has to stop the `retired` accounts, which were removed or changed: `of` no longer returns them. */
		reconfigure(next: AdapterConfig): AccountChanges & { retired: ChannelAccount[] } {
			const before = namesOf(adapters);
			const after = namesOf(next);
			const changes = {
				added: [...after].flatMap(([key, { name }]) => (before.has(key) ? [] : [name])),
				removed: [...before].flatMap(([key, { name }]) => (after.has(key) ? [] : [name])),
				changed: [...after].flatMap(([key, { name, text }]) => {
					const old = before.get(key);
					return old && old.text !== text ? [name] : [];
				}),
			};
			adapters = next;
			const retired = [...changes.removed, ...changes.changed].flatMap(({ channel, id }) => {
				const key = keyOf(channel, id);
				const account = made.get(key);
				made.delete(key);
				return account ?? [];
			});
			onStatus();
			return { ...changes, retired };
		},
		async stop(): Promise<void> {
			controller.abort();
			await Promise.all([...made.values()].map((account) => account.stop()));
		},
	};
}
