/** Starts a monitor for every configured account whose adapter supports it; retries while an adapter's info is not available. */

import type { AdapterInfo } from "@nexus-stream/adapter/port";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { ChannelChoice } from "../approvals/approvals.ts";
import type { AccountName, AccountPort } from "../port.ts";
import { isCommand } from "./commands.ts";
import type { InboundConfig, InboundLimits } from "./config.ts";
import type { ChannelMessage } from "./message.ts";

export interface ListeningDeps {
	outbound: Pick<AccountPort, "info" | "monitor">;
	config: InboundConfig;
	/** Whether an account is configured now. */
	isConfigured(channel: string, account: string): boolean;
	limits: Pick<InboundLimits, "monitorRetryMs">;
	receive(inbound: ChannelMessage): Promise<unknown>;
	onChoice(pressed: ChannelChoice): Promise<string | undefined>;
	clock: Clock;
	log: Log;
}

export function createListening(deps: ListeningDeps) {
	const { outbound, config, limits, receive, onChoice, isConfigured, clock, log } = deps;
	const cancels = new Set<() => void>();
	let stopped = false;

	async function listen(channel: string, named: readonly string[]): Promise<void> {
		// An account may have been removed while the adapter's info was not available.
		const accounts = named.filter((account) => isConfigured(channel, account));
		if (accounts.length === 0) return;
		let info: AdapterInfo;
		try {
			info = await outbound.info(channel);
		} catch (cause) {
			if (stopped) return;
			log.error({ channel, err: cause, againMs: limits.monitorRetryMs }, "the adapter's info is not available");
			retry(channel, accounts);
			return;
		}
		if (stopped || !info.supports.includes("monitor")) return;
		for (const account of accounts) monitor(channel, account, info.public ?? true);
	}

	function monitor(channel: string, account: string, isPublic: boolean): void {
		const source = { channel, account, public: isPublic };
		try {
			outbound.monitor(channel, account, {
				onMessage: async (message, id) => void (await receive({ ...source, message, id })),
				onChoice: (choice) => onChoice({ channel, account, choice }),
				isUrgent: (message) => isCommand({ ...source, message }),
			});
		} catch (cause) {
			log.error({ channel, account, err: cause }, "the account's monitor could not be started");
		}
	}

	function retry(channel: string, accounts: readonly string[]): void {
		const cancel = clock.after(limits.monitorRetryMs, () => {
			cancels.delete(cancel);
			void listen(channel, accounts);
		});
		cancels.add(cancel);
	}

	/** Starts monitors for these accounts as well. */
	const add = (accounts: readonly AccountName[]): void => {
		if (stopped) return;
		for (const [channel, group] of Map.groupBy(accounts, (account) => account.channel))
			void listen(
				channel,
				group.map(({ id }) => id),
			);
	};

	return {
		start() {
			for (const [channel, { accounts = {} }] of Object.entries(config.channels ?? {}))
				add(Object.keys(accounts).map((id) => ({ channel, id })));
		},
		add,
		stop() {
			stopped = true;
			for (const cancel of cancels) cancel();
		},
	};
}
