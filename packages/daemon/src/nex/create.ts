/** Puts NEX's inbound side together: the inbox, access, plugins, and listening to accounts. */

import { type Random, toNexusError } from "@nexus-stream/protocol";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { type Log, silentLog } from "@nexus-stream/protocol/log";
import { answerOf, type Broker } from "../broker/broker.ts";
import type { Bus } from "../bus/bus.ts";
import type { Engine } from "../engine/engine.ts";
import type { Approval, InboundEvent, Ledger, Pairing, Person } from "../ledger/ledger.ts";
import { createPairingService } from "./access/pairing.ts";
import { createTrust, type Trust } from "./access/trust.ts";
import { type ChatApprovals, createApprovals } from "./approvals/approvals.ts";
import { checkInboundConfig, INBOUND_LIMITS, type InboundConfig, type InboundLimits } from "./inbox/config.ts";
import type { Answered } from "./inbox/continuing.ts";
import { Inbox, type InboxOutbound } from "./inbox/inbox.ts";
import { INBOX_LIMITS, type InboxLimits } from "./inbox/limits.ts";
import { createListening } from "./inbox/listening.ts";
import type { Accepted, ChannelMessage, Destination, Inbound } from "./inbox/message.ts";
import type { InboxStats } from "./inbox/refusals.ts";
import { createHooks, type Hooks, type PluginStats } from "./plugins/hooks.ts";
import { loadPlugins, pluginFrom } from "./plugins/load.ts";
import type { Plugin } from "./plugins/port.ts";
import type { AccountName, Outbound } from "./port.ts";

/** What the inbound side needs of the outbound side. */
export type NexOutbound = InboxOutbound & Pick<Outbound, "deliver" | "info" | "monitor" | "ask" | "settleQuestion">;

export interface NexOptions {
	broker: Broker;
	bus: Bus;
	ledger: Ledger;
	outbound: NexOutbound;
	/** Whether its answers, or the answer to a message, come in one piece. */
	engine?: Pick<Engine, "disableStreaming" | "injects">;
	config?: InboundConfig;
	limits?: Partial<InboxLimits>;
	/** Plugins that are at hand already; they come before those of the config. */
	plugins?: readonly Plugin[];
	/** Called with every message of a platform that was let in, once it is safe. */
	arrived?(message: ChannelMessage): void;
	clock?: Clock;
	random?: Random;
	log?: Log;
}

export interface NexStats extends InboxStats {
	/** Messages that wait for their turn. */
	waiting: number;
	plugins: PluginStats[];
}

export interface Nex {
	/** Takes a message in, from a platform or a client, and says what became of it (I10). Resolves once it is safe. */
	receive(inbound: Inbound): Promise<Accepted>;
	/** Takes back a message that waits; rejects with `conflict` once it has started. */
	cancel(eventId: string): Promise<InboundEvent>;
	/** Goes on with a run that was cut off, as a new run; asked twice, it is the same one. Rejects with `not_found`, or with `conflict` and the reason. */
	continue(runId: string, answer?: Answered): Promise<{ runId: string }>;
	/** Answers the messages of a run that was cut off with a new run. */
	retry(runId: string): Promise<{ runId: string }>;
	pairing: {
		/** Newest first. */
		list(): Promise<Pairing[]>;
		/** Lets the sender in who was told the code, and tells them. */
		approve(code: string): Promise<Pairing>;
		revoke(person: Person): Promise<void>;
	};
	/** A button was pressed: what to tell whoever pressed it. */
	pressed: ChatApprovals["pressed"];
	/** What runs wait for, and what was allowed for sessions. */
	approvals: Pick<ChatApprovals, "decide" | "grants">;
	/** Whether a session's history is trusted. */
	trust: Trust;
	/** Loads the plugins. Rejects with `config` for one that is none. Call before `recover`. */
	load(): Promise<void>;
	/**
	 * Ends the runs that a dead daemon left, and goes on with the messages that waited in it. In between, `owed` begins with the deliveries
	 * that it left, so that no newer answer overtakes them (I7).
	 */
	recover(owed?: () => Promise<void>): Promise<{ recovered: number }>;
	/** Listens to every account. Call after `recover`. */
	start(): void;
	/** Takes up another configuration, and listens to these accounts too. Plugins stay as they are. */
	reconfigure(config: InboundConfig, accounts: readonly AccountName[]): void;
	/** Takes nothing in and starts nothing any more: what waits is the next daemon's. */
	close(): void;
	/** Closes, and lets what is completing end until the deadline. */
	stop(deadlineMs: number): Promise<void>;
	stats(): NexStats;
}

export function createNex(options: NexOptions): Nex {
	const { broker, bus, ledger, outbound, engine = {}, clock = systemClock, log = silentLog } = options;
	let { config = {} } = options;
	checkInboundConfig(config);
	const limits: InboundLimits = withDefaults(INBOUND_LIMITS, config.limits);
	const inboxLimits: InboxLimits = withDefaults(INBOX_LIMITS, options.limits);
	const own = (options.plugins ?? []).map((plugin, n) => pluginFrom(plugin, `plugin-${n + 1}`));
	let hooks: Hooks = createHooks({ plugins: own, limits, clock, log });

	const tell = (place: Destination, text: string): void => {
		const { channel, account, target } = place;
		outbound.deliver({ account: { channel, id: account }, target, text }).catch((cause: unknown) => {
			log.error({ channel, account, err: cause }, "a sender could not be told");
		});
	};
	const { pairings } = ledger;
	const pairing = createPairingService({ bus, pairings, clock, random: options.random ?? secureRandom, limits });
	const shared = { broker, bus, ledger, outbound, engine, pairing, limits, inboxLimits, tell, clock, log };
	const { approvals: questions } = broker;
	const tellAsker = ({ requester }: Approval, text: string) => {
		if (requester?.target) tell({ ...requester, target: requester.target as Destination["target"] }, text);
	};
	const onLateAnswer = (row: Approval) => {
		const facts = { runId: row.runId, approval: row.id };
		inbox.continue(row.runId, { ...answerOf(row), callId: row.callId }).then(
			({ runId }) => log.info({ ...facts, by: runId }, "a run that was cut off goes on with its answer"),
			(cause: unknown) => {
				log.warn({ ...facts, err: cause }, "a run was answered too late to go on");
				const { code, message } = toNexusError(cause);
				// Whoever asked would wait for good. At a stop the decision is kept for whoever continues the run.
				if (code === "conflict") tellAsker(row, `${row.id} was ${row.state} too late: ${message}`);
			},
		);
	};
	const nexApprovals = createApprovals({ ...shared, approvals: questions, config: () => config, onLateAnswer });
	const trust = createTrust({ bus, ledger, config: () => config, clock });
	const inbox = new Inbox({ ...shared, approvals: nexApprovals, trust, config: () => config, hooks: () => hooks });
	const receive = (inbound: Inbound) => inbox.receive(inbound);
	const knows = (channel: string, account: string) => config.channels?.[channel]?.accounts?.[account] !== undefined;
	const listening = createListening({
		outbound,
		config,
		knows,
		limits,
		clock,
		log,
		async receive(message) {
			const { disposition } = await receive(message);
			if (!("because" in disposition)) options.arrived?.(message);
		},
		onChoice: (choice) => nexApprovals.pressed(choice),
	});
	const letIn = (approved: Pairing) =>
		tell(approved as Pairing & Destination, "You are let in. Write to me again, and I will answer.");
	const close = () => {
		inbox.close();
		listening.stop();
	};

	return {
		receive,
		cancel: (eventId) => inbox.cancel(eventId),
		continue: (runId, answer) => inbox.continue(runId, answer),
		retry: (runId) => inbox.retry(runId),
		pairing: {
			list: () => pairing.list(),
			approve: (code) => pairing.approve(code, letIn),
			revoke: (person) => pairing.revoke(person),
		},
		pressed: nexApprovals.pressed,
		approvals: nexApprovals,
		trust,
		async load() {
			await nexApprovals.load();
			const loaded = await loadPlugins(config.plugins ?? [], config.base ?? process.cwd());
			hooks = createHooks({ plugins: [...own, ...loaded], limits, clock, log });
		},
		recover: (owed = async () => {}) => inbox.recover(owed),
		reconfigure(next, accounts) {
			checkInboundConfig(next);
			config = next;
			listening.hear(accounts);
		},
		start: () => listening.start(),
		close,
		async stop(deadlineMs) {
			close();
			await inbox.finish(deadlineMs);
		},
		stats: () => ({ ...inbox.stats(), plugins: hooks.stats() }),
	};
}

const secureRandom: Random = () => crypto.getRandomValues(new Uint32Array(1))[0]! / 2 ** 32;
