/** The lease of a node: how long the daemon may act outside the store after the last renewal that the store has answered. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Lease } from "./port.ts";

/** The share of the lease after which it counts as lapsed. In the remainder, whatever has left this daemon may still arrive. */
const LAPSE_SHARE = 0.7;

export interface NodeLeaseParts {
	readonly leaseMs: number;
	/** The lease of a daemon that is alone does not lapse. */
	readonly isShared: boolean;
	readonly clock: Clock;
	/** Elapsed time, which setting the system clock does not change. */
	now(): number;
	readonly fenced: AbortSignal;
}

export class NodeLease implements Lease {
	readonly #parts: NodeLeaseParts;
	readonly #lapseMs: number;
	readonly #listeners = new Set<() => void>();
	readonly #waiting = new Set<() => void>();
	/** When the last renewal with an answer was sent. */
	#sentAt: number;
	#isReported = false;
	#disarm: (() => void) | undefined;

	constructor(parts: NodeLeaseParts) {
		this.#parts = parts;
		this.#lapseMs = parts.leaseMs * LAPSE_SHARE;
		this.#sentAt = parts.now();
		parts.fenced.addEventListener("abort", () => this.#report(), { once: true });
	}

	get isHeld(): boolean {
		if (this.#parts.fenced.aborted) return false;
		return !this.#parts.isShared || this.silentMs < this.#lapseMs;
	}

	get silentMs(): number {
		return this.#parts.now() - this.#sentAt;
	}

	held(): Promise<void> {
		return this.isHeld ? Promise.resolve() : new Promise((resolve) => this.#waiting.add(resolve));
	}

	onLapse(listener: () => void): () => void {
		this.#listeners.add(listener);
		return () => void this.#listeners.delete(listener);
	}

	/** The store has answered a renewal that was sent at this time. */
	renewed(sentAt: number): void {
		if (!this.#parts.isShared) return;
		this.#sentAt = Math.max(this.#sentAt, sentAt);
		this.#arm();
		if (!this.isHeld) return;
		this.#isReported = false;
		const waiting = [...this.#waiting];
		this.#waiting.clear();
		for (const resolve of waiting) resolve();
	}

	close(): void {
		this.#disarm?.();
	}

	#arm(): void {
		const { clock } = this.#parts;
		this.#disarm?.();
		this.#disarm = clock.after(Math.max(0, this.#lapseMs - this.silentMs), () => {
			if (!this.isHeld) this.#report();
			else this.#arm();
		});
	}

	#report(): void {
		if (this.#isReported) return;
		this.#isReported = true;
		for (const listener of [...this.#listeners]) listener();
	}
}
