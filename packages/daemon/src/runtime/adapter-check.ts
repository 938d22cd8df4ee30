/** Asks an adapter what it needs, and whether an account works, without a daemon. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AdapterInfo, HealthReport } from "@nexus-stream/adapter/port";
import { CHANNELS } from "@nexus-stream/platforms";
import { NexusError } from "@nexus-stream/protocol";
import { systemClock } from "@nexus-stream/protocol/clock";
import { silentLog } from "@nexus-stream/protocol/log";
import { own } from "@nexus-stream/protocol/own";
import { createBus, sqliteStorage } from "../bus/bus.ts";
import { sqliteLedger } from "../ledger/ledger.ts";
import { createOutbound, type Outbound } from "../nex/nex.ts";
import { openSqlite } from "../std/sqlite/sqlite.ts";
import { idleChannels, idleRemedy, nexConfig } from "./config/channels.ts";
import type { NexusConfig } from "./config/config.ts";
import type { StoredAccount } from "./data/secrets.ts";

export { forgetSettings } from "../nex/nex.ts";

/** Throws `not_found` for a channel that is neither bundled nor configured. */
export function askAdapter(config: NexusConfig, channel: string): Promise<AdapterInfo> {
	const known = [...CHANNELS, ...Object.keys(config.channels ?? {})];
	if (!known.includes(channel))
		throw new NexusError("not_found", `there is no channel "${channel}"; known: ${[...new Set(known)].join(", ")}`);
	return withOutbound(config, { channel, account: "main", settings: {} }, (outbound) => outbound.info(channel));
}

/** Accounts of the configuration and stored ones, with their settings. */
export const accountsOf = (config: NexusConfig): StoredAccount[] =>
	Object.entries(nexConfig(config).adapters).flatMap(([channel, { accounts }]) =>
		Object.entries(accounts).map(([account, { settings }]) => ({ channel, account, settings })),
	);

/** Adapters of one's own that nothing starts, and what to do about it. */
export const idleOf = (config: NexusConfig): { channel: string; todo: string }[] =>
	idleChannels(nexConfig(config).adapters).map((channel) => ({ channel, todo: idleRemedy(channel) }));

/** Signs in with these settings as the daemon would. */
export const checkAccount = (config: NexusConfig, account: StoredAccount): Promise<HealthReport> =>
	withOutbound(config, account, (outbound) => outbound.health(account.channel, account.account));

async function withOutbound<T>(
	config: NexusConfig,
	{ channel, account, settings }: StoredAccount,
	work: (outbound: Outbound) => Promise<T>,
): Promise<T> {
	const dataDir = mkdtempSync(join(tmpdir(), "nexus-adapter-"));
	const file = openSqlite(":memory:", "process");
	const ledger = sqliteLedger(file);
	const bus = createBus({ storage: sqliteStorage(file), clock: systemClock, log: silentLog });
	const configured = own(nexConfig({ ...config, data: dataDir }).adapters, channel);
	const written = own(configured?.accounts, account)?.settings;
	const adapters = { [channel]: { ...configured, accounts: { [account]: { settings: { ...settings, ...written } } } } };
	const outbound = createOutbound({ bus, ledger, dataDir, adapters, log: silentLog });
	try {
		return await work(outbound);
	} finally {
		await outbound.stop(0);
		await bus.close();
		file.close();
		rmSync(dataDir, { recursive: true, force: true });
	}
}
