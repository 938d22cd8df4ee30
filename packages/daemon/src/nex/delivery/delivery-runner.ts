/** Runs every delivery to completion: waits for its turn, gets the adapter's info, routes it, and records the outcome. */

import type { AdapterInfo, Target } from "@nexus-stream/adapter/port";
import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type { DeliveryMode } from "@nexus-stream/protocol/api";
import { createKeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import { backoffMs, sleep } from "@nexus-stream/protocol/retry";
import type { Delivery, MessageAddress } from "../../ledger/deliveries/port.ts";
import type { ChannelAccount } from "../accounts/account.ts";
import type { Accounts } from "../accounts/accounts.ts";
import type { DeliverOptions, StreamingConfig } from "../port.ts";
import { deliverBySend } from "./blocks/send-delivery.ts";
import { type DeliveryContext, type DeliveryMeans, type DeliveryOutcome, factsOf } from "./delivery-context.ts";
import { isAttachmentNonce, LiveDelivery } from "./live-delivery.ts";
import { DeliveryRecord, type Records } from "./record.ts";
import { doubtOf } from "./stream/half-shown.ts";
import { deliverByStream } from "./stream/stream-delivery.ts";

export interface DeliveryRunnerDeps extends DeliveryMeans {
	records: Records;
	accounts: Accounts;
	/** The time written into rows. */
	stamp: () => number;
}

export class DeliveryRunner {
	readonly #deps: DeliveryRunnerDeps;
	readonly #lanes = createLanes();
	readonly #active = new Map<string, { live: LiveDelivery; done: Promise<void> }>();
	/** Aborts when this process stops, or another daemon has taken over. */
	readonly #signal: AbortSignal;

	constructor(deps: DeliveryRunnerDeps) {
		this.#deps = deps;
		this.#signal = AbortSignal.any([deps.signal, deps.records.lost]);
	}

	/** Begins or resumes a delivery, unless it is already running. */
	launch(row: Delivery): void {
		if (this.#active.has(row.id)) return;
		const record = new DeliveryRecord(row.id, this.#deps.records);
		const live = new LiveDelivery(row, record, { now: this.#deps.stamp });
		const done = this.#work(live).finally(() => this.#active.delete(row.id));
		this.#active.set(row.id, { live, done });
	}

	/** Undefined when the delivery is not running. */
	live(id: string): LiveDelivery | undefined {
		return this.#active.get(id)?.live;
	}

	/** The running delivery that has a message of this id or nonce. */
	ofMessage({ channel, account, messageId, nonce }: MessageAddress): { live: LiveDelivery; nonce: string } | undefined {
		for (const { live } of this.#active.values()) {
			const { row } = live;
			if (row.channel !== channel || row.account !== account) continue;
			const same = row.messages.find((each) =>
				each.messageId === undefined ? each.nonce === nonce : each.messageId === messageId,
			);
			if (same) return { live, nonce: same.nonce };
		}
		return undefined;
	}

	/** How many deliveries run or wait, of one account or of all. */
	count(account?: ChannelAccount): number {
		return account ? this.#of(account).length : this.#active.size;
	}

	async settled(id: string): Promise<void> {
		await this.#active.get(id)?.done;
	}

	/** Resolves when the deliveries of the account that run now have ended. */
	async settledOf(account: ChannelAccount): Promise<void> {
		await Promise.all(this.#of(account).map(({ done }) => done));
	}

	#of({ channel, id }: ChannelAccount) {
		return [...this.#active.values()].filter(({ live: { row } }) => row.channel === channel && row.account === id);
	}

	async allSettled(): Promise<void> {
		await Promise.all([...this.#active.values()].map(({ done }) => done));
	}

	/** Never rejects: a delivery ends with a recorded outcome, or is left to the next process or to the daemon that took it over. */
	async #work(live: LiveDelivery): Promise<void> {
		const signal = this.#signal;
		const failed = (cause: unknown): DeliveryOutcome => {
			if (signal.aborted) return { state: "left" };
			this.#deps.log.error({ ...factsOf(live), err: cause }, "a delivery failed");
			return { state: "failed", error: toNexusError(cause).message };
		};
		let outcome: DeliveryOutcome;
		// Its account was changed or removed: continue with the new configuration, or fail.
		do outcome = await this.#inOrder(live).catch(failed);
		while (outcome.state === "left" && !signal.aborted);
		if (outcome.state !== "left") await this.#finish(live, outcome);
		if (live.lost.aborted) this.#deps.log.warn(factsOf(live), "another daemon has taken a delivery over");
	}

	async #finish(live: LiveDelivery, outcome: DeliveryOutcome): Promise<void> {
		const { log } = this.#deps;
		const { messages } = live.row;
		const missed = messages.find((message) => message.state === "failed");
		const isOut = outcome.state === "complete" && !missed;
		const { state: ended } = outcome;
		const state = isOut ? "complete" : ended === "unknown" || ended === "damaged" ? ended : "failed";
		const error = "error" in outcome ? outcome.error : missed?.error;
		live.finish(state, error);
		if (state === "complete") log.debug({ ...factsOf(live), messages: messages.length }, "delivered");
		else log.warn({ ...factsOf(live), state, error }, "a delivery ended incomplete");
		await live.recorded().catch(() => {}); // The record has logged the reason.
	}

	#inOrder(live: LiveDelivery): Promise<DeliveryOutcome> {
		const { row } = live;
		const session = this.#deps.bus
			.describe(row.runId)
			.then((info) => (info?.meta as { session?: string } | undefined)?.session);
		return this.#lanes.inOrder(row, session, this.#signal, () => this.#deliver(live));
	}

	async #deliver(live: LiveDelivery): Promise<DeliveryOutcome> {
		const { row } = live;
		const account = this.#deps.accounts.of(row.channel, row.account);
		const signal = AbortSignal.any([this.#signal, account.retired]);
		const info = await this.#infoOf(account, signal);
		if (!info) return { state: "left" };
		const { streaming } = account;
		const { errorText } = account.config;
		const options = row.options as DeliverOptions;
		const tools = options.tools ?? streaming.tools;
		const { placeholder } = streaming;
		const context: DeliveryContext = {
			...this.#deps,
			live,
			account,
			info,
			signal,
			target: row.target as Target,
			options: tools === undefined ? { placeholder, errorText } : { tools, placeholder, errorText },
			question: options.ask,
			reasoning: (options.reasoning ?? streaming.reasoning) === true,
			parts: streaming.parts !== false,
			files: new Map(),
		};
		return route(context, options);
	}

	/** Retries: an adapter that does not answer now may do so in a minute, for example during an update. */
	async #infoOf(account: ChannelAccount, signal: AbortSignal): Promise<AdapterInfo | undefined> {
		const { clock, limits, log } = this.#deps;
		const since = clock.now();
		for (let failures = 0; !signal.aborted; failures++) {
			try {
				return await account.info();
			} catch (cause) {
				if (clock.now() - since >= limits.giveUpMs) throw cause;
				log.warn({ channel: account.channel, account: account.id, err: cause }, "the adapter's info is not available");
			}
			await sleep(clock, backoffMs({ firstMs: limits.retryMs, maxMs: limits.retryMsMax }, failures), signal);
		}
		return undefined;
	}
}

/** The answers of one session in one chat are delivered one at a time, so that a slow one is not overtaken. */
export function createLanes() {
	const queue = createKeyedQueue();
	return {
		/** Runs in the order of the calls, whichever session is known first. Rejects when the signal aborts before its turn. */
		async inOrder<T>(
			{ channel, account, target }: Delivery,
			session: Promise<string | undefined>,
			signal: AbortSignal,
			work: () => Promise<T>,
		): Promise<T> {
			const key = JSON.stringify([channel, account, target.to, target.thread_id, await queue.run("", session)]);
			return queue.run(key, work, signal);
		},
	};
}

export function modeOf(info: AdapterInfo, config: StreamingConfig, options: DeliverOptions): DeliveryMode {
	const can = (verb: "stream" | "send") => info.supports.includes(verb);
	if (!can("stream") && !can("send")) {
		throw new NexusError("invalid", `The adapter of ${info.channel} supports neither stream nor send.`);
	}
	if (options.ask) return "whole";
	const { enabled, mode } = config;
	const isWhole = enabled === false || options.disableStreaming === true || mode === "accumulate" || mode === "off";
	if (can("stream") && ((!isWhole && mode !== "blocks") || !can("send"))) return "stream";
	return isWhole || info.delivery === "whole" ? "whole" : "blocks";
}

/** Runs a delivery to completion, also when its adapter dies on the way. */
export async function route(context: DeliveryContext, options: DeliverOptions): Promise<DeliveryOutcome> {
	const { live, info, account } = context;
	const begun = live.row.mode !== undefined;
	if (!begun) {
		live.given = 0;
		live.setMode(modeOf(info, account.streaming, options));
		await live.recorded();
	}
	return finalOutcome(context, await deliver(context, begun));
}

/** A completely sent text is still `damaged` or `unknown` when the stored answer was damaged, or the outcome of a message is unknown. */
function finalOutcome({ live, damage }: DeliveryContext, outcome: DeliveryOutcome): DeliveryOutcome {
	if (outcome.state === "complete" && damage !== undefined)
		return { state: "damaged", error: `The stored answer is damaged: ${damage}` };
	const doubt = doubtOf(live);
	if (outcome.state === "complete" && doubt !== undefined) return { state: "unknown", error: doubt };
	const doubtful = live.row.messages.some(({ state, nonce }) => state === "unknown" && isAttachmentNonce(nonce));
	if (outcome.state !== "complete" || !doubtful) return outcome;
	return { state: "unknown", error: "The text is there; an image, a file or the like may or may not be." };
}

async function deliver(context: DeliveryContext, begun: boolean): Promise<DeliveryOutcome> {
	const { live, info, log } = context;
	if (live.row.mode !== "stream") return deliverBySend(context);
	const outcome = await deliverByStream(context, begun);
	if (outcome.state !== "degraded") return outcome;
	log.warn({ ...factsOf(context.live), error: outcome.error }, "streaming failed; the remainder is sent in blocks");
	if (!info.supports.includes("send")) return { state: "failed", error: outcome.error };
	live.setMode("blocks");
	await live.recorded();
	return deliverBySend(context);
}
