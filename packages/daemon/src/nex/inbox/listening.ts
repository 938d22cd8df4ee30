/** Listens to every configured account whose adapter can be listened to; one that cannot be asked yet is asked again. */

import type { AdapterInfo, InboundChoice } from "@nexus-stream/adapter/host";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { AccountName, Outbound } from "../port.ts";
import { isCommand } from "./commands.ts";
import type { InboundConfig, InboundLimits } from "./config.ts";
import type { ChannelMessage } from "./message.ts";

export interface ListeningDeps {
	outbound: Pick<Outbound, "info" | "monitor">;
	config: InboundConfig;
	/** Whether an account is configured now. */
	knows(channel: string, account: string): boolean;
	limits: Pick<InboundLimits, "monitorRetryMs">;
	receive(inbound: ChannelMessage): Promise<unknown>;
	/** Absent: nobody asks questions. */
	onChoice?: OnChannelChoice;
	clock: Clock;
	log: Log;
}

/** A button of a question that was asked in a chat. */
export interface ChannelChoice {
	channel: string;
	account: string;
	choice: InboundChoice;
}

/** Resolves with what to tell whoever pressed, if anything. */
export type OnChannelChoice = (pressed: ChannelChoice) => Promise<string | undefined>;

export interface InboundListener {
	start(): void;
	/** Listens to these too. */
	hear(accounts: readonly AccountName[]): void;
	stop(): void;
}

export function createListening(deps: ListeningDeps): InboundListener {
	const { outbound, config, limits, receive, onChoice, knows, clock, log } = deps;
	const cancels = new Set<() => void>();
	let stopped = false;

	async function listen(channel: string, named: readonly string[]): Promise<void> {
		// Some may have been removed while their adapter could not be asked.
		const accounts = named.filter((account) => knows(channel, account));
		if (accounts.length === 0) return;
		let info: AdapterInfo;
		try {
			info = await outbound.info(channel);
		} catch (cause) {
			if (stopped) return;
			log.error({ channel, err: cause, againMs: limits.monitorRetryMs }, "the adapter cannot be asked what it is");
			again(channel, accounts);
			return;
		}
		if (stopped || !info.supports.includes("monitor")) return;
		for (const account of accounts) hear(channel, account, info.public ?? true);
	}

	function hear(channel: string, account: string, isPublic: boolean): void {
		try {
			const of = (message: ChannelMessage["message"]) => ({ channel, account, message, public: isPublic });
			const take = async (message: ChannelMessage["message"], id: string) => {
				await receive({ ...of(message), id });
			};
			const choose = onChoice && ((choice: InboundChoice) => onChoice({ channel, account, choice }));
			outbound.monitor(channel, account, take, choose, (message) => isCommand(of(message)));
		} catch (cause) {
			log.error({ channel, account, err: cause }, "the account cannot be listened to");
		}
	}

	function again(channel: string, accounts: readonly string[]): void {
		const cancel = clock.after(limits.monitorRetryMs, () => {
			cancels.delete(cancel);
			void listen(channel, accounts);
		});
		cancels.add(cancel);
	}

	return {
		start() {
			for (const [channel, { accounts = {} }] of Object.entries(config.channels ?? {})) {
				const names = Object.keys(accounts);
				if (names.length > 0) void listen(channel, names);
			}
		},
		hear(accounts) {
			if (stopped) return;
			for (const [channel, own] of Map.groupBy(accounts, (account) => account.channel)) {
				void listen(
					channel,
					own.map(({ id }) => id),
				);
			}
		},
		stop() {
			stopped = true;
			for (const cancel of cancels) cancel();
		},
	};
}
