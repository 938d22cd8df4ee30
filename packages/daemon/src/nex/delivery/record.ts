/**
 * Writes the changes of deliveries to the store through the Bus's committer, in order for each delivery. While the store fails, changes wait
 * here and are retried: none is lost as long as this process lives.
 */

import { NexusError, Refused, toNexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { backoffMs, sleep } from "@nexus-stream/protocol/retry";
import type { Bus } from "../../bus/bus.ts";
import type { Write } from "../../std/write.ts";

const RETRY = { firstMs: 250, maxMs: 10_000 };

export interface RecordsDeps {
	committer: Pick<Bus, "write" | "fenced">;
	clock: Clock;
	log: Log;
}

/** Writes that are stored together or not at all. */
interface Change {
	readonly writes: readonly Write[];
	isStored?: boolean;
	/** Why the store refused them permanently. */
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
	/** Handed to the committer, or waiting to be retried. */
	#current: ChangeBatch | undefined;
	/** The store refused the current batch, which waits to be retried. */
	#isPausing = false;
	/** Changes made while the current batch is being written. */
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
		// Changes made in the same tick become one unit.
		if (!isIdle) return;
		this.#records.busy.add(this);
		queueMicrotask(() => void this.#writeAll());
	}

	/** Resolves when everything so far is durable (I7). Rejects when the newest change was refused, or another daemon has taken over. */
	async durable(): Promise<void> {
		this.lost.throwIfAborted();
		const batch = this.#next ?? this.#current;
		const newest = batch?.changes.at(-1);
		await batch?.done.promise;
		if (newest?.refused) throw newest.refused;
	}

	/** Hands all waiting changes to the committer synchronously, for a process that has to end. */
	push(): void {
		const current = this.#isPausing ? (this.#current?.changes ?? []) : [];
		const next = this.#next?.changes ?? [];
		this.#next = undefined;
		for (const { writes, isStored, refused } of [...current, ...next]) {
			if (isStored || refused) continue;
			this.#records.deps.committer.write(writes).catch(() => {}); // The process ends; there is no caller to report to.
		}
	}

	/** One unit at a time: a later change must not overtake one that is being retried. */
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
				if (isPermanent(cause)) return this.#refused(changes, cause);
				const retryMs = backoffMs(RETRY, failures);
				log.error({ delivery: this.#delivery, err: cause, retryMs }, "a delivery could not be recorded");
				this.#isPausing = true;
				await sleep(clock, retryMs, this.#records.closed);
				this.#isPausing = false;
			}
		}
		// The next process looks up anything that is not on record.
		return new Promise(() => {});
	}

	/** A change that can never be stored must not block the others. */
	async #refused(changes: readonly Change[], cause: unknown): Promise<void> {
		const [first, ...others] = changes;
		if (others.length > 0) {
			for (const change of changes) await this.#write([change]);
			return;
		}
		if (first) first.refused = toNexusError(cause);
		const { log } = this.#records.deps;
		log.error({ delivery: this.#delivery, err: cause }, "the store refused a change of a delivery permanently");
	}
}

export class Records {
	readonly deps: RecordsDeps;
	/** Records with changes that are not durable yet. */
	readonly busy = new Set<DeliveryRecord>();
	readonly #closing = new AbortController();

	constructor(deps: RecordsDeps) {
		this.deps = deps;
	}

	/** Aborts when another daemon has taken over: this one must not write any delivery any more (ST19). */
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

	/** Ends all retries. */
	close(): void {
		this.#closing.abort();
	}
}

const allOf = (changes: readonly Change[]): Write[] => changes.flatMap(({ writes }) => writes);

function newBatch(): ChangeBatch {
	const done = Promise.withResolvers<void>();
	done.promise.catch(() => {}); // Awaiters handle the rejection; there may be none.
	return { changes: [], done };
}

const isFenced = (cause: unknown): boolean => cause instanceof Refused && cause.refusal === "fenced";

/** The change conflicts with its row, or contains a value that cannot be stored. */
const isPermanent = (cause: unknown): boolean =>
	cause instanceof TypeError || (cause instanceof NexusError && cause.code !== "unavailable");
