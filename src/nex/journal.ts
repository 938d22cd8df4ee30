/** Writes what deliveries report to the ledger: all that comes in one tick in one transaction, tried again while the store fails. */

import type { Deliveries } from "../ledger/ledger.ts";
import { NexusError } from "../protocol/protocol.ts";
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import { sqliteFailure } from "../std/sqlite.ts";

export type Entry = (deliveries: Deliveries) => void;

export interface Journal {
	/** In order. Durable within the tick, unless the store fails. */
	record(entry: Entry): void;
	/** Everything recorded so far is durable. */
	recorded(): Promise<void>;
	/** Writes what waits, now; throws when the store refuses it. */
	flush(): void;
	/** Writes what waits, and nothing after it; throws when the store refuses it. */
	close(): void;
}

const RETRY_MS = 250;
const RETRY_MS_MAX = 10_000;

export function createJournal(deliveries: Deliveries, clock: Clock, log: Log): Journal {
	let entries: Entry[] = [];
	let waiting: (() => void)[] = [];
	let scheduled = false;
	let failures = 0;
	let closed = false;

	/** An entry that can never succeed must not hold up the others. */
	const attempt = (entry: Entry) => {
		try {
			entry(deliveries);
		} catch (cause) {
			if (!isForGood(cause)) throw cause;
			log.error({ err: cause }, "a change of a delivery does not fit its row");
		}
	};
	const write = () => {
		const batch = entries;
		if (batch.length > 0) {
			deliveries.together(() => {
				for (const entry of batch) attempt(entry);
			});
		}
		entries = [];
		failures = 0;
		for (const resolve of waiting.splice(0)) resolve();
	};
	const flush = () => {
		scheduled = false;
		if (closed) return;
		try {
			write();
		} catch (cause) {
			const wait = Math.min(RETRY_MS * 2 ** failures++, RETRY_MS_MAX);
			log.error({ err: cause, entries: entries.length, retryMs: wait }, "deliveries could not be recorded");
			scheduled = true;
			clock.after(wait, flush);
		}
	};
	return {
		record(entry) {
			entries.push(entry);
			if (scheduled) return;
			scheduled = true;
			setImmediate(flush);
		},
		recorded: () => (entries.length === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
		flush: write,
		close() {
			closed = true;
			write();
			waiting = [];
		},
	};
}

/** It does not fit its row, or holds a value that no row can. */
const isForGood = (cause: unknown): boolean =>
	cause instanceof NexusError || cause instanceof TypeError || sqliteFailure(cause)?.kind === "duplicate";
