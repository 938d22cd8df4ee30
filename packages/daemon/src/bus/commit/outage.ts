/** An outage of the store: since when it refuses commits, and when the next attempt is due. */

import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { sqliteFailure } from "../../std/sqlite.ts";
import type { CommitLimits } from "./outcome.ts";

export interface StoreOutageParts {
	limits: Pick<CommitLimits, "commitRetryMs" | "commitRetryMsMax">;
	clock: Clock;
	log: Log;
	/** Makes the next attempt. */
	retry(): void;
}

export class StoreOutage {
	readonly #parts: StoreOutageParts;
	/** The length of an outage does not depend on what the clock is set to meanwhile. */
	readonly now: () => number;
	#since: number | undefined;
	#isDiskFull = false;
	#cancelRetry: (() => void) | undefined;

	constructor(parts: StoreOutageParts) {
		this.#parts = parts;
		this.now = elapsing(parts.clock);
	}

	get isOn(): boolean {
		return this.#since !== undefined;
	}

	/** A full disk takes empty commits, so they show nothing. */
	get isDiskFull(): boolean {
		return this.#isDiskFull;
	}

	/** How long commits have been failing; since `from` if they have not. */
	ms(from = this.now()): number {
		return this.now() - (this.#since ?? from);
	}

	begin(cause: unknown): void {
		this.#since ??= this.now();
		this.#isDiskFull = sqliteFailure(cause)?.kind === "full";
	}

	end(): void {
		if (this.#since === undefined) return;
		this.#parts.log.info({}, "the store takes commits again");
		this.#since = undefined;
	}

	/** Schedules an attempt; false when the outage has lasted too long, unless there `must` be one. */
	retryLater(isLast: boolean, must: boolean): boolean {
		const { limits, clock, retry } = this.#parts;
		if (this.#since === undefined) return false;
		const isOver = this.ms() >= limits.commitRetryMsMax || isLast;
		if (!isOver || must) {
			this.cancelRetry();
			this.#cancelRetry = clock.after(limits.commitRetryMs, retry, "due");
			return true;
		}
		this.#since = undefined;
		return false;
	}

	cancelRetry(): void {
		this.#cancelRetry?.();
		this.#cancelRetry = undefined;
	}
}
