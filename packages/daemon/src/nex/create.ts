/** Assembles NEX's inbound side: the inbox, access rules, approvals, plugins, and the monitors of accounts. */

import { type Random, toNexusError } from "@nexus-stream/protocol";
import { systemClock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { type Log, silentLog } from "@nexus-stream/protocol/log";
import { answerOf } from "../broker/broker.ts";
import type { Approval } from "../ledger/approvals/port.ts";
import type { Pairing } from "../ledger/pairings/port.ts";
import { createTrust, type Trust } from "./access/history.ts";
import { createPairingService, type PairingService } from "./access/pairing.ts";
import { ChatApprovals } from "./approvals/approvals.ts";
import type { SessionGrants } from "./approvals/grants.ts";
import {
	checkInboundConfig,
	INBOUND_LIMITS,
	INBOX_LIMITS,
	type InboundConfig,
	type InboundLimits,
	type InboxLimits,
} from "./inbox/config.ts";
import type { InboxDeps } from "./inbox/deps.ts";
import { Inbox } from "./inbox/inbox.ts";
import { createListening } from "./inbox/listening.ts";
import type { Destination } from "./inbox/message.ts";
import type { InboxStats } from "./inbox/refusals.ts";
import { createHooks, type Hooks, loadPlugins, type PluginStats, pluginFrom } from "./plugins/hooks.ts";
import type { Plugin } from "./plugins/port.ts";
import type { AccountName, AccountPort, DeliveryPort, QuestionPort } from "./port.ts";

export type NexOutbound = InboxDeps["outbound"] &
	Pick<DeliveryPort, "deliver"> &
	Pick<AccountPort, "info" | "monitor"> &
	QuestionPort;

export interface NexOptions
	extends Pick<InboxDeps, "broker" | "bus" | "ledger" | "arrived">,
		Partial<Pick<InboxDeps, "engine" | "clock" | "log">> {
	outbound: NexOutbound;
	config?: InboundConfig;
	limits?: Partial<InboxLimits>;
	/** Loaded plugins; they run before those of the config. */
	plugins?: readonly Plugin[];
	random?: Random;
}

export interface NexStats extends InboxStats {
	/** Messages that wait for their turn. */
	waiting: number;
	plugins: PluginStats[];
}

export interface Nex extends Pick<Inbox, "receive" | "cancel" | "continue" | "retry"> {
	/** `approve` also notifies the sender. */
	pairing: Pick<PairingService, "list" | "revoke"> & { approve(code: string): Promise<Pairing> };
	/** Handles a pressed button; resolves with the text for the person who pressed it. */
	pressed: ChatApprovals["pressed"];
	/** Decisions on approvals, and the grants of sessions. */
	approvals: Pick<ChatApprovals, "decide"> & { grants: Pick<SessionGrants, "list" | "revoke"> };
	/** Whether a session's history is trusted. */
	trust: Trust;
	/** Loads the plugins. Rejects with `config` for an invalid one. Call before `recover`. */
	load(): Promise<void>;
	/**
	 * Ends the runs of a dead daemon and restores the messages that waited in it. In between, `startDeliveries` starts that daemon's pending
	 * deliveries, so that no newer answer overtakes them (I7).
	 */
	recover(startDeliveries?: () => Promise<void>): Promise<{ recovered: number }>;
	/** Starts the monitor of every account. Call after `recover`. */
	start(): void;
	/** Applies another configuration, and starts the monitors of these accounts. Plugins do not change. */
	reconfigure(config: InboundConfig, accounts: readonly AccountName[]): void;
	/** Accepts no message and starts no run any more: the next daemon starts what waits. */
	close(): void;
	/** Closes, and lets completing runs end until the deadline. */
	stop(deadlineMs: number): Promise<void>;
	stats(): NexStats;
}

export function createNex(options: NexOptions): Nex {
	const { broker, bus, ledger, outbound, engine = {}, clock = systemClock, log = silentLog, arrived } = options;
	let { config = {} } = options;
	checkInboundConfig(config);
	const currentConfig = () => config;
	const limits: InboundLimits = withDefaults(INBOUND_LIMITS, config.limits);
	const inboxLimits: InboxLimits = withDefaults(INBOX_LIMITS, options.limits);
	const given = (options.plugins ?? []).map((plugin, n) => pluginFrom(plugin, `plugin-${n + 1}`));
	let hooks: Hooks = createHooks({ plugins: given, limits, clock, log });
	const tell = teller(outbound, log);
	const { pairings } = ledger;
	const pairing = createPairingService({ bus, pairings, clock, random: options.random ?? secureRandom, limits });
	const shared = { broker, bus, ledger, outbound, engine, pairing, limits, inboxLimits, tell, arrived, clock, log };
	const onLateAnswer = (row: Approval) => void continueWith(row, inbox, tell, log);
	const approvals = new ChatApprovals({ ...shared, approvals: broker.approvals, config: currentConfig, onLateAnswer });
	const trust = createTrust({ bus, ledger, config: currentConfig, clock });
	const inbox: Inbox = new Inbox({ ...shared, approvals, trust, config: currentConfig, hooks: () => hooks });
	const listening = createListening({
		...shared,
		config,
		isConfigured: (channel, account) => config.channels?.[channel]?.accounts?.[account] !== undefined,
		receive: (message) => inbox.receive(message),
		onChoice: (choice) => approvals.pressed(choice),
	});
	const onApproved = (approved: Pairing) =>
		tell(approved as Pairing & Destination, "You're approved. Send your message again.");
	const close = () => {
		inbox.close();
		listening.stop();
	};

	return {
		receive: (inbound) => inbox.receive(inbound),
		cancel: (eventId) => inbox.cancel(eventId),
		continue: (runId, answer) => inbox.continue(runId, answer),
		retry: (runId) => inbox.retry(runId),
		pairing: { ...pairing, approve: (code) => pairing.approve(code, onApproved) },
		pressed: (choice) => approvals.pressed(choice),
		approvals,
		trust,
		async load() {
			await approvals.load();
			const loaded = await loadPlugins(config.plugins ?? [], config.base ?? process.cwd());
			hooks = createHooks({ plugins: [...given, ...loaded], limits, clock, log });
		},
		recover: (startDeliveries = async () => {}) => inbox.recover(startDeliveries),
		reconfigure(next, accounts) {
			checkInboundConfig(next);
			config = next;
			listening.add(accounts);
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

type Tell = (to: Destination, text: string) => void;

const teller =
	(outbound: Pick<DeliveryPort, "deliver">, log: Log): Tell =>
	({ channel, account, target }, text) => {
		outbound.deliver({ account: { channel, id: account }, target, text }).catch((cause: unknown) => {
			log.error({ channel, account, err: cause }, "a note could not be sent to a chat");
		});
	};

/** Continues an interrupted run with the answer to its approval or question. Never rejects. */
async function continueWith(row: Approval, inbox: Inbox, tell: Tell, log: Log): Promise<void> {
	const { requester } = row;
	const facts = { runId: row.runId, approval: row.id };
	try {
		const { runId } = await inbox.continue(row.runId, { ...answerOf(row), callId: row.callId });
		log.info({ ...facts, by: runId }, "an interrupted run continues with its answer");
	} catch (cause) {
		log.warn({ ...facts, err: cause }, "a run was answered too late to continue");
		const { code, message } = toNexusError(cause);
		// The requester would wait for nothing. When the daemon stops, the decision is kept for the run's continuation.
		if (code === "conflict" && requester?.target)
			tell(
				{ ...requester, target: requester.target as Destination["target"] },
				`${row.id} was ${row.state} too late: ${message}`,
			);
	}
}

const secureRandom: Random = () => crypto.getRandomValues(new Uint32Array(1))[0]! / 2 ** 32;
