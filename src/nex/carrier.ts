/** Carries every delivery to its end: waits for its turn, asks the adapter what it can, takes the way that fits, and records the outcome. */

import type { AdapterInfo, Target } from "../adapter/adapter.ts";
import type { Bus } from "../bus/bus.ts";
import type { Delivery, MessagePlace } from "../ledger/ledger.ts";
import { toNexusError } from "../protocol/protocol.ts";
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import type { Account } from "./account.ts";
import type { Accounts } from "./accounts.ts";
import type { Delivering, Outcome } from "./delivering.ts";
import type { Journal } from "./journal.ts";
import { createLanes } from "./lanes.ts";
import type { OutboundLimits } from "./limits.ts";
import type { DeliverOptions } from "./port.ts";
import { route } from "./router.ts";
import { sleep } from "./sleep.ts";
import { Tracked } from "./tracked.ts";

export interface CarrierDeps {
	bus: Bus;
	journal: Journal;
	accounts: Accounts;
	limits: OutboundLimits;
	clock: Clock;
	/** What is written into rows. */
	stamp: () => number;
	random: () => number;
	log: Log;
	/** Aborts when this process stops. */
	signal: AbortSignal;
}

export class Carrier {
	readonly #deps: CarrierDeps;
	readonly #lanes = createLanes();
	readonly #active = new Map<string, { tracked: Tracked; done: Promise<void> }>();

	constructor(deps: CarrierDeps) {
		this.#deps = deps;
	}

	/** Begins, or goes on with, a delivery. */
	launch(row: Delivery): void {
		const tracked = new Tracked(row, this.#deps.journal, { now: this.#deps.stamp });
		const done = this.#work(tracked).finally(() => this.#active.delete(row.id));
		this.#active.set(row.id, { tracked, done });
	}

	/** The row as it is now, while it is under way. */
	row(id: string): Delivery | undefined {
		return this.#active.get(id)?.tracked.row;
	}

	/** The one under way that has a message of this id or nonce. */
	ofMessage({ channel, account, messageId, nonce }: MessagePlace): { tracked: Tracked; nonce: string } | undefined {
		for (const { tracked } of this.#active.values()) {
			const { row } = tracked;
			if (row.channel !== channel || row.account !== account) continue;
			const same = row.messages.find((each) =>
				each.messageId === undefined ? each.nonce === nonce : each.messageId === messageId,
			);
			if (same) return { tracked, nonce: same.nonce };
		}
		return undefined;
	}

	/** How many of an account are under way or waiting. */
	count({ channel, id }: Account): number {
		return [...this.#active.values()].filter(({ tracked: { row } }) => row.channel === channel && row.account === id)
			.length;
	}

	async settled(id: string): Promise<void> {
		await this.#active.get(id)?.done;
	}

	/** Those of an account that are under way now. */
	async settledOf({ channel, id }: Account): Promise<void> {
		const own = [...this.#active.values()].filter(
			({ tracked: { row } }) => row.channel === channel && row.account === id,
		);
		await Promise.all(own.map(({ done }) => done));
	}

	async allSettled(): Promise<void> {
		await Promise.all([...this.#active.values()].map(({ done }) => done));
	}

	/** Never rejects: a delivery always ends with an outcome on record, or is left to the next process. */
	async #work(tracked: Tracked): Promise<void> {
		const { row } = tracked;
		const { log } = this.#deps;
		const facts = { delivery: row.id, runId: row.runId, channel: row.channel, account: row.account, to: row.target.to };
		const failed = (cause: unknown): Outcome => {
			if (this.#deps.signal.aborted) return { state: "left" };
			log.error({ ...facts, err: cause }, "a delivery failed");
			return { state: "failed", error: toNexusError(cause).message };
		};
		let outcome = await this.#inOrder(tracked).catch(failed);
		// Its account was changed or removed: it goes on with the new one, or has failed.
		while (outcome.state === "left" && !this.#deps.signal.aborted) {
			outcome = await this.#inOrder(tracked).catch(failed);
		}
		if (outcome.state === "left") return;
		const missed = row.messages.find((message) => message.state === "failed");
		const isOut = outcome.state === "complete" && !missed;
		const { state: ended } = outcome;
		const state = isOut ? "complete" : ended === "unknown" || ended === "damaged" ? ended : "failed";
		const error = "error" in outcome ? outcome.error : missed?.error;
		tracked.finish(state, error);
		if (state === "complete") log.debug({ ...facts, messages: row.messages.length }, "delivered");
		else log.warn({ ...facts, state, error }, "a delivery did not reach its platform as it should");
		await tracked.recorded();
	}

	async #inOrder(tracked: Tracked): Promise<Outcome> {
		const { bus, signal } = this.#deps;
		const meta = (await bus.describe(tracked.row.runId))?.meta as { session?: string } | undefined;
		return this.#lanes.inOrder(tracked.row, meta?.session, signal, () => this.#carry(tracked));
	}

	async #carry(tracked: Tracked): Promise<Outcome> {
		const { bus, limits, clock, random, log, accounts } = this.#deps;
		const { row } = tracked;
		const account = accounts.of(row.channel, row.account);
		const signal = AbortSignal.any([this.#deps.signal, account.retired]);
		const info = await this.#infoOf(account, signal);
		if (!info) return { state: "left" };
		const { streaming } = account;
		const { errorText } = account.config;
		const options = row.options as DeliverOptions;
		const tools = options.tools ?? streaming.tools;
		const { placeholder } = streaming;
		const delivering: Delivering = {
			...{ tracked, account, info, bus, limits, clock, random, log, signal },
			target: row.target as Target,
			options: {
				...(tools !== undefined && { tools }),
				...(placeholder !== undefined && { placeholder }),
				...(errorText !== undefined && { errorText }),
			},
			reasoning: (options.reasoning ?? streaming.reasoning) === true,
			parts: streaming.parts !== false,
			files: new Map(),
		};
		return route(delivering, options);
	}

	/** Adapters that cannot be asked now may be in a minute: an update, a file that is missing. */
	async #infoOf(account: Account, signal: AbortSignal): Promise<AdapterInfo | undefined> {
		const { clock, limits, log } = this.#deps;
		const begun = clock.now();
		for (let tries = 0; !signal.aborted; tries++) {
			try {
				return await account.info();
			} catch (cause) {
				if (clock.now() - begun >= limits.giveUpMs) throw cause;
				log.warn({ channel: account.channel, account: account.id, err: cause }, "the adapter could not be asked");
			}
			await sleep(clock, Math.min(limits.retryMs * 2 ** tries, limits.retryMsMax), signal);
		}
		return undefined;
	}
}
