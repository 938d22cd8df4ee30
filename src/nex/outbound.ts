/** Outbound delivery: takes what is to be delivered on record, has it carried to its end, and finishes after a restart what was owed. */

import { isSameChat, type MessageFailure } from "../adapter/adapter.ts";
import type { Bus } from "../bus/bus.ts";
import type { Deliveries, Delivery, MessagePlace } from "../ledger/ledger.ts";
import { NexusError, newId } from "../protocol/protocol.ts";
import { type Clock, neverBack, steady, systemClock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import { type Accounts, createAccounts } from "./accounts.ts";
import { Carrier } from "./carrier.ts";
import { createJournal, type Journal } from "./journal.ts";
import { OUTBOUND_LIMITS, type OutboundLimits } from "./limits.ts";
import type { AdapterConfig, DeliverRequest, DeliveryInfo, Outbound, PlatformCall } from "./port.ts";
import { staleness } from "./recovery.ts";
import { createRetirement, type Retirement } from "./retire.ts";
import { sleep } from "./sleep.ts";
import { endLeftProcesses } from "./supervise/places.ts";
import { checkSignable } from "./supervise/signable.ts";
import { sealLeftTexts, writeTextLog } from "./text-log.ts";

export interface OutboundOptions {
	bus: Bus;
	deliveries: Deliveries;
	/** Accounts' files go below it. */
	dataDir: string;
	adapters: AdapterConfig;
	log: Log;
	clock?: Clock;
	/** In [0, 1). */
	random?: () => number;
	limits?: Partial<OutboundLimits>;
	/** Hears of every platform call that an adapter reports. */
	onCall?: (call: PlatformCall) => void;
}

type Failure = MessagePlace & MessageFailure;

interface Parts extends Omit<Required<OutboundOptions>, "onCall" | "limits"> {
	limits: OutboundLimits;
	/** What is written into rows: the wall clock's time, which never goes back. */
	stamp: () => number;
	journal: Journal;
	accounts: Accounts;
	carrier: Carrier;
	retirement: Retirement;
	stopping: AbortController;
}

export function createOutbound(options: OutboundOptions): Outbound {
	const parts = assemble(options);
	const { deliveries, accounts, carrier } = parts;
	let closing = false;
	const current = (row: Delivery): DeliveryInfo => structuredClone(carrier.row(row.id) ?? row);
	return {
		start: () => recover(parts),
		async deliver(request) {
			if (closing) throw new NexusError("unavailable", "the daemon is stopping");
			return current(await take(parts, request));
		},
		open: (request) => register(parts, request, request.runId).delivery,
		launch(id) {
			const row = deliveries.get(id);
			// While the daemon stops it is left to the next one.
			if (row?.state === "active" && !carrier.row(id) && !closing) carrier.launch(row);
		},
		async settled(id) {
			await carrier.settled(id);
			const row = deliveries.get(id);
			if (!row) throw new NexusError("not_found", `There is no delivery ${id}.`);
			return row;
		},
		deliveries: (query) => deliveries.list(query).map(current),
		accounts: () =>
			accounts
				.all()
				.map((account) => account.status(carrier.count(account), deliveries.counts(account.channel, account.id))),
		health: async (channel, account) => accounts.of(channel, account).health(),
		info: (channel) => accounts.infos.ask(channel),
		async reconfigure(next) {
			const { retired, ...changes } = accounts.reconfigure(next);
			await Promise.all(retired.map((account) => parts.retirement.begin(account)));
			return changes;
		},
		monitor: (channel, account, onMessage) => accounts.of(channel, account).listen(onMessage),
		admitWebhook(channel, account, head) {
			accounts.check(channel, account);
			checkSignable(channel, accounts.infos.known(channel).info, head);
		},
		async webhook(channel, account, request) {
			const answer = await accounts.of(channel, account).webhook(request);
			// What it brought is safe before the platform hears that it was taken.
			await parts.journal.recorded();
			return answer;
		},
		flush: () => parts.journal.flush(),
		async stop(deadlineMs) {
			closing = true;
			const enough = new AbortController();
			await Promise.race([carrier.allSettled(), sleep(parts.clock, deadlineMs, enough.signal)]);
			// First no more lines, then the end of the adapters' input: what they still report is recorded.
			parts.stopping.abort();
			await Promise.all([accounts.stop(), parts.retirement.settled()]);
			// What is not on record then is looked up by the next process.
			await Promise.race([carrier.allSettled(), sleep(parts.clock, parts.limits.recordMs, enough.signal)]);
			enough.abort();
			parts.journal.close();
		},
	};
}

function assemble(options: OutboundOptions): Parts {
	const { random = Math.random, onCall, ...given } = options;
	// Setting the clock must neither hold up pauses, blocks, retries and restarts, nor make anybody give up.
	const clock = steady(options.clock ?? systemClock);
	const stamp = neverBack(options.clock ?? systemClock);
	const { deliveries, adapters, log, dataDir, bus } = given;
	const limits = { ...OUTBOUND_LIMITS, ...options.limits };
	const stopping = new AbortController();
	const journal = createJournal(deliveries, clock, log);
	const onFailure = (failure: Failure) => missed(parts, failure);
	const shared = { dataDir, limits, clock, random, log, onFailure };
	const accounts = createAccounts(adapters, { ...shared, ...(onCall && { onCall }) });
	const carrier = new Carrier({ bus, journal, accounts, limits, clock, stamp, random, log, signal: stopping.signal });
	const retirement = createRetirement({ carrier, clock, log, limits, signal: stopping.signal });
	const parts: Parts = { ...given, clock, stamp, random, limits, journal, accounts, carrier, retirement, stopping };
	return parts;
}

/** A message that a platform had taken did not reach its reader: the delivery that was thought complete is not. */
function missed({ deliveries, carrier, journal, stamp, log }: Parts, failure: Failure): void {
	const { channel, account, messageId, error } = failure;
	const live = carrier.ofMessage(failure);
	const known = live ? { delivery: live.tracked.row, nonce: live.nonce } : deliveries.ofMessage(failure);
	const facts = { channel, account, messageId, error };
	if (!known) {
		log.warn(facts, "a message that no delivery knows was not delivered");
		return;
	}
	const { delivery, nonce } = known;
	const stored = delivery.messages.find((message) => message.nonce === nonce);
	if (stored?.error !== undefined) return;
	log.error(
		{ ...facts, delivery: delivery.id, runId: delivery.runId },
		"the platform took a message and did not deliver it",
	);
	const now = stamp();
	if (live) live.tracked.failed(nonce, { messageId, error });
	else journal.record((ledger) => ledger.failed(delivery.id, nonce, { messageId, error }, now));
}

async function recover({ bus, deliveries, dataDir, log, stamp, limits, carrier, journal }: Parts): Promise<void> {
	const left = endLeftProcesses(dataDir);
	if (left.length > 0) log.warn({ pids: left }, "ended adapter processes of a daemon that was killed");
	await sealLeftTexts(bus);
	for (const row of deliveries.unfinished()) {
		if (carrier.row(row.id)) continue;
		const stale = await staleness(bus, row, stamp(), limits.staleMs);
		if (stale === undefined) {
			carrier.launch(row);
			continue;
		}
		log.warn({ delivery: row.id, runId: row.runId, channel: row.channel, account: row.account }, stale);
		journal.record((ledger) => ledger.finish(row.id, "stale", stale, stamp()));
	}
	await journal.recorded();
}

async function take(parts: Parts, request: DeliverRequest): Promise<Delivery> {
	parts.accounts.check(request.account.channel, request.account.id);
	const { delivery, created } = register(parts, request, await logOf(parts, request));
	const due = created ? delivery : takeAgain(parts, delivery);
	if (due) parts.carrier.launch(due);
	return due ?? delivery;
}

/** One that failed or became stale is taken up where it stopped, unless something of it may be out already without our knowing. */
function takeAgain({ deliveries, carrier, stamp }: Parts, { id }: Delivery): Delivery | undefined {
	const known = carrier.row(id) ? undefined : deliveries.get(id);
	if (!known || (known.state !== "failed" && known.state !== "stale")) return undefined;
	if (known.messages.some(({ state }) => state !== "sent" && state !== "open")) return undefined;
	deliveries.reopen(id, stamp());
	return deliveries.get(id);
}

function register({ deliveries, accounts, stamp }: Parts, request: DeliverRequest, runId: string) {
	const { target, options } = request;
	const { channel, id: account } = request.account;
	accounts.check(channel, account);
	const now = stamp();
	const fresh = { id: newId("dlv", now), runId, channel, account, target, options: { ...options }, createdAt: now };
	return deliveries.open(fresh, (known) => isSameChat(channel, known, target));
}

/** The log that a request is about. */
async function logOf({ bus, stamp, limits }: Parts, request: DeliverRequest): Promise<string> {
	if ("runId" in request) {
		if (await bus.describe(request.runId)) return request.runId;
		throw new NexusError("not_found", `There is no run ${request.runId}, or its log is no longer kept.`);
	}
	const { text } = request;
	if (text.trim() === "") throw new NexusError("invalid", "There is nothing to deliver: the text is empty.");
	if (text.length > limits.textCharsMax) {
		throw new NexusError("too_large", `A text has at most ${limits.textCharsMax} characters.`);
	}
	return writeTextLog(bus, text, stamp);
}
