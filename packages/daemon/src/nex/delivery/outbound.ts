/** Outbound delivery: takes what is to be delivered on record, has it carried to its end, and finishes after a restart what was owed. */

import { NexusError } from "@nexus-stream/protocol";
import { type Clock, neverBack, steady, systemClock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../../bus/bus.ts";
import type { Delivery, Ledger } from "../../ledger/ledger.ts";
import { createInTurn, createKeyedLock } from "../../std/lock.ts";
import { createAccounts } from "../accounts/accounts.ts";
import { createNoteKeeping } from "../accounts/kept-notes.ts";
import { checkSignable } from "../accounts/signable.ts";
import { OUTBOUND_LIMITS, type OutboundLimits } from "../limits.ts";
import type { AdapterConfig, DeliveryInfo, Outbound, PlatformCall } from "../port.ts";
import { DeliveryRunner } from "./delivery-runner.ts";
import { createFailures } from "./failures.ts";
import { begun, planDelivery, take } from "./planned-deliveries.ts";
import { ask, settleQuestions } from "./question.ts";
import { Records } from "./record.ts";
import { recover } from "./recovery.ts";
import { createRetirement } from "./retire.ts";
import { sleep } from "./sleep.ts";

export interface OutboundOptions {
	/** Where runs and texts are. */
	bus: Bus;
	/** Who commits the changes of the ledger; the same bus when left out. */
	committer?: Pick<Bus, "write" | "fenced">;
	ledger: Pick<Ledger, "deliveries" | "notes">;
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

export function createOutbound(options: OutboundOptions): Outbound {
	const { clock, limits, records, accounts, runner, retirement, failures, stopping, ...parts } = assemble(options);
	const { deliveries } = parts;
	const inTurn = createInTurn();
	let closing = false;
	const current = (row: Delivery): DeliveryInfo => structuredClone(runner.live(row.id)?.row ?? row);
	/** While the daemon stops it is left to the next one. */
	const launch = (row: Delivery) => {
		if (!closing) runner.launch(row);
	};
	return {
		start: () => recover({ ...parts, limits, runner, clock, closing: () => closing }),
		async deliver(request) {
			if (closing) throw new NexusError("unavailable", "the daemon is stopping");
			const planning = { ...parts, accounts, limits, runner, signal: stopping.signal };
			// They begin in the order of the calls, however long each takes to be on record.
			const { delivery, due } = await inTurn(take(planning, request));
			if (due) launch(delivery);
			return current(delivery);
		},
		async ask(request) {
			if (closing) throw new NexusError("unavailable", "the daemon is stopping");
			const planning = { ...parts, accounts, limits, runner, signal: stopping.signal };
			const { delivery, due } = await ask(planning, request);
			if (due) launch(delivery);
			return current(delivery);
		},
		async settleQuestion(id, text) {
			const planning = { ...parts, accounts, limits, runner, signal: stopping.signal };
			for (const { delivery, due } of await settleQuestions({ ...planning, clock, log: parts.log }, id, text))
				if (due) launch(delivery);
		},
		planDelivery: (request) => planDelivery(accounts, request, parts.stamp()),
		launch: (delivery) => launch(begun(delivery)),
		async settled(id) {
			await runner.settled(id);
			const row = await deliveries.get(id);
			if (!row) throw new NexusError("not_found", `There is no delivery ${id}.`);
			return row;
		},
		deliveries: async (query) => (await deliveries.list(query)).map(current),
		accounts: () => accounts.all().map((account) => account.status(runner.count(account))),
		onAccounts(listener) {
			parts.watching.add(listener);
			return () => void parts.watching.delete(listener);
		},
		counts: async (channel, account) => deliveries.counts(channel, account),
		get live() {
			return runner.count();
		},
		health: async (channel, account) => accounts.of(channel, account).health(),
		info: (channel) => accounts.infos.ask(channel),
		async reconfigure(next) {
			const { retired, ...changes } = accounts.reconfigure(next);
			await Promise.all(retired.map((account) => retirement.begin(account)));
			return changes;
		},
		monitor: (channel, account, onMessage, onChoice = nobodyAsked, isUrgent) =>
			accounts.of(channel, account).listen(onMessage, onChoice, isUrgent),
		admitWebhook(channel, account, head) {
			accounts.check(channel, account);
			checkSignable(channel, accounts.infos.cached(channel).info, head);
		},
		async webhook(channel, account, request) {
			const answer = await accounts.of(channel, account).webhook(request);
			// What it brought is safe before the platform hears that it was taken.
			await failures.recorded();
			return answer;
		},
		flush: () => records.push(),
		async stop(deadlineMs) {
			closing = true;
			const enough = new AbortController();
			const within = (ms: number, work: Promise<unknown>) => Promise.race([work, sleep(clock, ms, enough.signal)]);
			await within(deadlineMs, runner.allSettled());
			// First no more lines, then the end of the adapters' input: what they still report is recorded.
			stopping.abort();
			await Promise.all([accounts.stop(), retirement.settled()]);
			// What is not on record then is looked up by the next process.
			await within(limits.recordMs, Promise.all([runner.allSettled(), records.settled(), parts.notes.settled()]));
			enough.abort();
			records.close();
		},
	};
}

/** Without anybody who asks, every button is from before. */
const nobodyAsked = async (): Promise<string> => "This question is not open any more.";

function assemble(options: OutboundOptions) {
	const { bus, committer = bus, ledger, dataDir, adapters, log, random = Math.random, onCall } = options;
	const { deliveries } = ledger;
	// Setting the clock must neither hold up pauses, blocks, retries and restarts, nor make anybody give up.
	const clock = steady(options.clock ?? systemClock);
	/** What is written into rows: the wall clock's time, which never goes back. */
	const stamp = neverBack(options.clock ?? systemClock);
	const limits = withDefaults(OUTBOUND_LIMITS, options.limits);
	const stopping = new AbortController();
	const { signal } = stopping;
	const write: Bus["write"] = (writes, patienceMs) => committer.write(writes, patienceMs);
	const records = new Records({ committer, clock, log });
	const failures = createFailures({ deliveries, records, stamp, log, runner: () => runner });
	const notes = createNoteKeeping({ notes: ledger.notes, write, log });
	const watching = new Set<() => void>();
	const onStatus = () => {
		for (const listener of watching) listener();
	};
	const shared = { notes, dataDir, limits, clock, random, log, onStatus, onFailure: failures.take };
	const accounts = createAccounts(adapters, { ...shared, ...(onCall && { onCall }) });
	const runner = new DeliveryRunner({ bus, records, accounts, limits, clock, stamp, random, log, signal });
	const retirement = createRetirement({ runner, clock, log, limits, signal });
	const inOrder = createKeyedLock();
	return {
		bus,
		write,
		deliveries,
		notes,
		dataDir,
		log,
		clock,
		stamp,
		limits,
		inOrder,
		watching,
		records,
		failures,
		accounts,
		runner,
		retirement,
		stopping,
	};
}
