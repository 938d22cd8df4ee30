/**
 * The pipeline from an inbound message to a delivered answer: receive ▸ acl ▸ hooks ▸ queue ▸ prepare ▸ execute ▸ deliver ▸ complete.
 * The first three are the reception's; the Broker queues and executes and calls back here at the turning points of a run.
 */

import type { Accepted, Broker } from "../broker/broker.ts";
import type { EventQuery, InboundEvent, Ledger, Pairing, Pairings, Person } from "../ledger/ledger.ts";
import { NexusError, type Random } from "../protocol/protocol.ts";
import { type Clock, systemClock } from "../std/clock.ts";
import { type Log, silentLog } from "../std/log.ts";
import { createPairingDesk } from "./acl/pairing.ts";
import { createHooks, type Hooks, type PluginStats } from "./hooks/hooks.ts";
import { loadPlugins, pluginFrom } from "./hooks/load.ts";
import type { Plugin } from "./hooks/port.ts";
import { checkInboundConfig, INBOUND_LIMITS, type InboundConfig, type InboundLimits } from "./inbound/config.ts";
import { createListening } from "./inbound/listening.ts";
import { Reception, type ReceptionStats } from "./inbound/reception.ts";
import type { ApiSubmission, ChannelMessage, Destination } from "./inbound/request.ts";
import { Runs, type RunsOutbound } from "./inbound/runs.ts";
import type { AccountName, Outbound } from "./port.ts";

/** What the pipeline needs of the outbound side. */
export type PipelineOutbound = RunsOutbound & Pick<Outbound, "deliver" | "info" | "monitor">;

export interface NexOptions {
	broker: Broker;
	ledger: Ledger;
	pairings: Pairings;
	outbound: PipelineOutbound;
	config?: InboundConfig;
	/** Plugins that are at hand already; they come before those of the config. */
	plugins?: readonly Plugin[];
	clock?: Clock;
	random?: Random;
	log?: Log;
}

export interface NexStats extends ReceptionStats {
	plugins: PluginStats[];
}

export interface Nex {
	/** Takes a message in, from a platform or a client, and says what became of it (I10). Resolves once it is safe. */
	receive(inbound: ChannelMessage | ApiSubmission): Promise<Accepted>;
	/** Inbound messages with what became of them, newest first. */
	inbox(query: EventQuery): InboundEvent[];
	pairing: {
		/** Newest first. */
		list(): Pairing[];
		/** Lets the sender in who was told the code, and tells them. */
		approve(code: string): Pairing;
		revoke(person: Person): void;
	};
	/** Loads the plugins. Rejects with `config` for one that is none. Call before the Broker recovers. */
	load(): Promise<void>;
	/** Listens to every account. Call after the Broker recovered. */
	start(): void;
	/** Takes up another configuration, and listens to these accounts too. Plugins stay as they are. */
	reconfigure(config: InboundConfig, accounts: readonly AccountName[]): void;
	/** Takes nothing in any more; lets what is completing end until the deadline. */
	stop(deadlineMs: number): Promise<void>;
	stats(): NexStats;
}

export function createNex(options: NexOptions): Nex {
	const { broker, ledger, pairings, outbound, clock = systemClock, log = silentLog } = options;
	let { config = {} } = options;
	checkInboundConfig(config);
	const limits: InboundLimits = { ...INBOUND_LIMITS, ...config.limits };
	const own = (options.plugins ?? []).map((plugin, n) => pluginFrom(plugin, `plugin-${n + 1}`));
	let hooks: Hooks = createHooks({ plugins: own, limits, clock, log });
	let stopped = false;

	const tell = (place: Destination, text: string): void => {
		const { channel, account, target } = place;
		outbound.deliver({ account: { channel, id: account }, target, text }).catch((cause: unknown) => {
			log.error({ channel, account, err: cause }, "a sender could not be told");
		});
	};
	const pairing = createPairingDesk({ pairings, clock, random: options.random ?? secureRandom, limits });
	const reception = new Reception({
		...{ broker, ledger, pairing, limits, tell, clock, log, config: () => config, hooks: () => hooks },
	});
	const runs = new Runs({ ledger, outbound, clock, log, hooks: () => hooks });
	broker.attach(runs);
	const receive = async (inbound: ChannelMessage | ApiSubmission): Promise<Accepted> => {
		if (stopped) throw new NexusError("unavailable", "The daemon is stopping; send it again when it is back.");
		return reception.receive(inbound);
	};
	const knows = (channel: string, account: string) => config.channels?.[channel]?.accounts?.[account] !== undefined;
	const listening = createListening({ outbound, config, knows, limits, clock, log, receive });

	return {
		receive,
		inbox: (query) => ledger.events(query),
		pairing: {
			list: () => pairing.list(),
			approve: (code) =>
				pairing.approve(code, (approved) =>
					tell(approved as Pairing & Destination, "You are let in. Write to me again, and I will answer."),
				),
			revoke: (person) => pairing.revoke(person),
		},
		async load() {
			const loaded = await loadPlugins(config.plugins ?? [], config.base ?? process.cwd());
			hooks = createHooks({ plugins: [...own, ...loaded], limits, clock, log });
		},
		reconfigure(next, accounts) {
			checkInboundConfig(next);
			config = next;
			listening.hear(accounts);
		},
		start() {
			listening.start();
		},
		async stop(deadlineMs) {
			stopped = true;
			listening.stop();
			await runs.finish(deadlineMs);
		},
		stats: () => ({ ...reception.stats(), plugins: hooks.stats() }),
	};
}

const secureRandom: Random = () => crypto.getRandomValues(new Uint32Array(1))[0]! / 2 ** 32;
