/** Outbound delivery: records deliveries, runs each to completion, and resumes unfinished ones after a restart. */

import { NexusError } from "@nexus-stream/protocol";
import { type Clock, neverBack, steady, systemClock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { createKeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import type { Log } from "@nexus-stream/protocol/log";
import { sleep } from "@nexus-stream/protocol/retry";
import type { Bus } from "../../bus/bus.ts";
import type { Delivery, DeliveryCounts, DeliveryQuery, NewDelivery } from "../../ledger/deliveries/port.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { ChannelAccount } from "../accounts/account.ts";
import { createAccounts } from "../accounts/accounts.ts";
import { createNoteKeeping } from "../accounts/kept-notes.ts";
import {
	checkSignable,
	type InboundHandlers,
	type WireWebhookAnswer,
	type WireWebhookRequest,
} from "../accounts/monitor-port.ts";
import { OUTBOUND_LIMITS, type OutboundLimits } from "../limits.ts";
import type {
	AccountChanges,
	AccountStatus,
	AdapterConfig,
	AskRequest,
	DeliverRequest,
	Outbound,
	PlatformCall,
	RunDelivery,
} from "../port.ts";
import type { DeliveryMeans } from "./delivery-context.ts";
import { DeliveryRunner } from "./delivery-runner.ts";
import { createFailures } from "./failures.ts";
import { newRow, type PlanDeps, planDelivery, type RecordedDelivery, take } from "./planned-deliveries.ts";
import { ask, settleQuestions } from "./question.ts";
import { Records } from "./record.ts";
import { endLeftProcesses, recover } from "./recovery.ts";

export interface OutboundOptions {
	/** The logs of runs and texts. */
	bus: Bus;
	/** Commits the changes of the ledger. Default: the bus. */
	committer?: Pick<Bus, "write" | "fenced">;
	ledger: Pick<Ledger, "deliveries" | "notes">;
	/** The files of accounts are below it. */
	dataDir: string;
	adapters: AdapterConfig;
	log: Log;
	clock?: Clock;
	/** In [0, 1). */
	random?: () => number;
	limits?: Partial<OutboundLimits>;
	/** Called for every platform call that an adapter reports. */
	onCall?: (call: PlatformCall) => void;
}

export const createOutbound = (options: OutboundOptions): Outbound => new OutboundService(assemble(options));

class OutboundService implements Outbound {
	readonly #parts: ReturnType<typeof assemble>;
	readonly #plan: PlanDeps;
	readonly #turns = createKeyedQueue();
	readonly #retrying = new Set<string>();
	#isClosing = false;

	constructor(parts: ReturnType<typeof assemble>) {
		this.#parts = parts;
		this.#plan = { ...parts, signal: parts.stopping.signal };
	}

	start(): Promise<void> {
		endLeftProcesses(this.#parts);
		return this.takeOver();
	}

	takeOver(): Promise<void> {
		return recover({ ...this.#parts, retrying: this.#retrying, closing: () => this.#isClosing });
	}

	async deliver(request: DeliverRequest): Promise<Delivery> {
		this.#refuseWhenClosing();
		// Deliveries begin in the order of the calls, however long each takes to be recorded.
		return this.#begin(await this.#turns.run("", take(this.#plan, request)));
	}

	async ask(request: AskRequest): Promise<Delivery> {
		this.#refuseWhenClosing();
		return this.#begin(await ask(this.#plan, request));
	}

	async settleQuestion(id: string, text: string): Promise<void> {
		const { clock, log } = this.#parts;
		for (const recorded of await settleQuestions({ ...this.#plan, clock, log }, id, text)) this.#begin(recorded);
	}

	planDelivery(request: RunDelivery) {
		const { accounts, stamp } = this.#parts;
		return planDelivery(accounts, request, stamp());
	}

	launch(delivery: NewDelivery): void {
		this.#launch(newRow(delivery));
	}

	async settled(id: string): Promise<Delivery> {
		const { runner, deliveries } = this.#parts;
		await runner.settled(id);
		const row = await deliveries.get(id);
		if (!row) throw new NexusError("not_found", `There is no delivery ${id}.`);
		return row;
	}

	async deliveries(query: DeliveryQuery): Promise<Delivery[]> {
		return (await this.#parts.deliveries.list(query)).map((row) => this.#current(row));
	}

	async counts(channel: string, account: string): Promise<DeliveryCounts> {
		return this.#parts.deliveries.counts(channel, account);
	}

	get live(): number {
		return this.#parts.runner.count();
	}

	accounts(): AccountStatus[] {
		const { accounts, runner } = this.#parts;
		return accounts.all().map((account) => account.status(runner.count(account)));
	}

	onAccounts(listener: () => void): () => void {
		const { watching } = this.#parts;
		watching.add(listener);
		return () => void watching.delete(listener);
	}

	async health(channel: string, account: string) {
		return this.#parts.accounts.of(channel, account).health();
	}

	info(channel: string) {
		return this.#parts.accounts.infos.ask(channel);
	}

	async reconfigure(next: AdapterConfig): Promise<AccountChanges> {
		const { accounts, retirement } = this.#parts;
		const { retired, ...changes } = accounts.reconfigure(next);
		await Promise.all(retired.map((account) => retirement.begin(account)));
		return changes;
	}

	monitor(channel: string, account: string, handlers: InboundHandlers): void {
		this.#parts.accounts.of(channel, account).monitor(handlers);
	}

	admitWebhook(channel: string, account: string, head: Omit<WireWebhookRequest, "body">): void {
		const { accounts } = this.#parts;
		accounts.check(channel, account);
		checkSignable(channel, accounts.infos.cached(channel).info, head);
	}

	async webhook(channel: string, account: string, request: WireWebhookRequest): Promise<WireWebhookAnswer> {
		const { accounts, failures } = this.#parts;
		const answer = await accounts.of(channel, account).webhook(request);
		// The failures that the request reported are durable before the platform gets its answer.
		await failures.recorded();
		return answer;
	}

	flush(): void {
		this.#parts.records.push();
	}

	async stop(deadlineMs: number): Promise<void> {
		const { clock, limits, runner, accounts, retirement, records, notes, stopping } = this.#parts;
		this.#isClosing = true;
		const enough = new AbortController();
		const within = (ms: number, work: Promise<unknown>) => Promise.race([work, sleep(clock, ms, enough.signal)]);
		await within(deadlineMs, runner.allSettled());
		// First the lines end, then the adapters' input: their last reports are still recorded.
		stopping.abort();
		await Promise.all([accounts.stop(), retirement.settled()]);
		// The next process looks up anything that is not recorded by then.
		await within(limits.recordMs, Promise.all([runner.allSettled(), records.settled(), notes.settled()]));
		enough.abort();
		records.close();
	}

	#begin({ delivery, due }: RecordedDelivery): Delivery {
		if (due) this.#launch(delivery);
		return this.#current(delivery);
	}

	/** While the daemon stops, the delivery is left to the next one. */
	#launch(row: Delivery): void {
		if (!this.#isClosing) this.#parts.runner.launch(row);
	}

	#current(row: Delivery): Delivery {
		return structuredClone(this.#parts.runner.live(row.id)?.row ?? row);
	}

	#refuseWhenClosing(): void {
		if (this.#isClosing) throw new NexusError("unavailable", "the daemon is stopping");
	}
}

function assemble(options: OutboundOptions) {
	const { bus, committer = bus, ledger, dataDir, adapters, log, random = Math.random, onCall } = options;
	const { deliveries } = ledger;
	// A change of the system time must neither delay pauses, blocks, retries and restarts, nor end them early.
	const clock = steady(options.clock ?? systemClock);
	/** The time written into rows: the wall clock, which never goes back. */
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
	const { lease } = bus;
	const shared = { notes, lease, dataDir, limits, clock, random, log, onCall, onStatus, onFailure: failures.take };
	const accounts = createAccounts(adapters, shared);
	const runner = new DeliveryRunner({ bus, records, accounts, limits, clock, stamp, random, log, signal });
	const retirement = createRetirement(runner, { clock, log, limits, signal });
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
		byRun: createKeyedQueue(),
		watching,
		records,
		failures,
		accounts,
		runner,
		retirement,
		stopping,
	};
}

/** Stops accounts that were removed from the configuration or changed: first their deliveries may finish, then their processes end. */
function createRetirement(
	runner: DeliveryRunner,
	{ clock, log, limits, signal }: Pick<DeliveryMeans, "clock" | "log" | "limits" | "signal">,
) {
	const leaving = new Set<Promise<void>>();

	async function leave(account: ChannelAccount): Promise<void> {
		const enough = new AbortController();
		const limit = sleep(clock, limits.retireMs, AbortSignal.any([signal, enough.signal]));
		await Promise.race([runner.settledOf(account), limit]);
		enough.abort();
		account.retire();
		await account.stop();
	}

	return {
		/** Resolves when the account accepts no more messages; its deliveries and processes end later. */
		async begin(account: ChannelAccount): Promise<void> {
			const facts = { channel: account.channel, account: account.id };
			await account.stopMonitor();
			const work = leave(account)
				.then(() => log.info(facts, "the processes of a retired account have ended"))
				.catch((cause: unknown) =>
					log.error({ ...facts, err: cause }, "the processes of a retired account did not end cleanly"),
				)
				.finally(() => leaving.delete(work));
			leaving.add(work);
		},
		/** Resolves when the processes of all retired accounts have ended. */
		settled: async () => void (await Promise.all(leaving)),
	};
}
