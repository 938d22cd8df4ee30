/**
 * The way of deliveries' changes to the store: units of the Bus's one committer, in order for each delivery. While the store fails they wait
 * here and are written again: as long as this process lives none is lost.
 */

import { NexusError, Refused, toNexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../../bus/bus.ts";
import type { Write } from "../../std/write.ts";
import { sleep } from "./sleep.ts";

const RETRY_MS = 250;
const RETRY_MS_MAX = 10_000;

export interface RecordsDeps {
	committer: Pick<Bus, "write" | "fenced">;
	clock: Clock;
	log: Log;
}

/** Writes that are stored together or not at all. */
interface Change {
	readonly writes: readonly Write[];
	isStored?: boolean;
	/** Why the store will never take them. */
	refused?: Error;
}

interface ChangeBatch {
	changes: Change[];
	done: PromiseWithResolvers<void>;
}

/** The changes of one delivery. */
export class DeliveryRecord {
	readonly #delivery: string;
	readonly #records: Records;
	/** Handed to the committer, or about to be again. */
	#current: ChangeBatch | undefined;
	/** The store has not taken the current ones; they are written again after a pause. */
	#isPausing = false;
	/** Made meanwhile. */
	#next: ChangeBatch | undefined;

	constructor(delivery: string, records: Records) {
		this.#delivery = delivery;
		this.#records = records;
	}

	get lost(): AbortSignal {
		return this.#records.lost;
	}

	add(...writes: readonly Write[]): void {
		if (writes.length === 0 || this.lost.aborted) return;
		const isIdle = !this.#current && !this.#next;
		this.#next ??= newBatch();
		this.#next.changes.push({ writes });
		// What is said in one breath becomes one unit.
		if (!isIdle) return;
		this.#records.busy.add(this);
		queueMicrotask(() => void this.#writeAll());
	}

	/** Resolves when everything so far is durable (I7). Rejects when the newest change was refused, or all is lost. */
	async durable(): Promise<void> {
		this.lost.throwIfAborted();
		const batch = this.#next ?? this.#current;
		const newest = batch?.changes.at(-1);
		await batch?.done.promise;
		if (newest?.refused) throw newest.refused;
	}

	/** Hands over what waits in the tick of the call, for a process that has to end. */
	push(): void {
		const current = this.#isPausing ? (this.#current?.changes ?? []) : [];
		const next = this.#next?.changes ?? [];
		this.#next = undefined;
		for (const { writes, isStored, refused } of [...current, ...next]) {
			if (isStored || refused) continue;
			this.#records.deps.committer.write(writes).catch(() => {}); // Nobody is left to hear of it.
		}
	}

	/** One unit at a time: what comes after one that is tried again must not overtake it. */
	async #writeAll(): Promise<void> {
		while (this.#next) {
			const batch = this.#next;
			this.#current = batch;
			this.#next = undefined;
			try {
				await this.#write(batch.changes);
				batch.done.resolve();
			} catch (cause) {
				batch.done.reject(cause);
				this.#drop(cause);
			}
			this.#current = undefined;
		}
		this.#records.busy.delete(this);
	}

	#drop(cause: unknown): void {
		this.#next?.done.reject(cause);
		this.#next = undefined;
	}

	async #write(changes: readonly Change[]): Promise<void> {
		const { committer, clock, log } = this.#records.deps;
		for (let failures = 0; !this.#records.closed.aborted; failures++) {
			try {
				await committer.write(allOf(changes));
				for (const change of changes) change.isStored = true;
				return;
			} catch (cause) {
				if (isFenced(cause)) throw cause;
				if (isForGood(cause)) return this.#refused(changes, cause);
				const retryMs = Math.min(RETRY_MS * 2 ** failures, RETRY_MS_MAX);
				log.error({ delivery: this.#delivery, err: cause, retryMs }, "a delivery could not be recorded");
				this.#isPausing = true;
				await sleep(clock, retryMs, this.#records.closed);
				this.#isPausing = false;
			}
		}
		// What is not on record is looked up by the next process.
		return new Promise(() => {});
	}

	/** A change that can never be stored must not hold up the others. */
	async #refused(changes: readonly Change[], cause: unknown): Promise<void> {
		const [first, ...others] = changes;
		if (others.length > 0) {
			for (const change of changes) await this.#write([change]);
			return;
		}
		if (first) first.refused = toNexusError(cause);
		const { log } = this.#records.deps;
		log.error({ delivery: this.#delivery, err: cause }, "a change of a delivery does not fit its row");
	}
}

export class Records {
	readonly deps: RecordsDeps;
	/** Those with changes that are not durable. */
	readonly busy = new Set<DeliveryRecord>();
	readonly #closing = new AbortController();

	constructor(deps: RecordsDeps) {
		this.deps = deps;
	}

	/** Aborts when another daemon has taken over what this one owned: it may write nothing any more, for no delivery (ST19). */
	get lost(): AbortSignal {
		return this.deps.committer.fenced;
	}

	get closed(): AbortSignal {
		return this.#closing.signal;
	}

	/** Resolves when everything so far is durable, or never will be. */
	async settled(): Promise<void> {
		await Promise.allSettled([...this.busy].map((record) => record.durable()));
	}

	push(): void {
		for (const record of this.busy) record.push();
	}

	/** Nothing is tried again. */
	close(): void {
		this.#closing.abort();
	}
}

const allOf = (changes: readonly Change[]): Write[] => changes.flatMap(({ writes }) => writes);

function newBatch(): ChangeBatch {
	const done = Promise.withResolvers<void>();
	done.promise.catch(() => {}); // Whoever waits hears of it; it may be nobody.
	return { changes: [], done };
}

const isFenced = (cause: unknown): boolean => cause instanceof Refused && cause.refusal === "fenced";

/** It does not fit its row, or holds a value that no row can. */
const isForGood = (cause: unknown): boolean =>
	cause instanceof TypeError || (cause instanceof NexusError && cause.code !== "unavailable");
