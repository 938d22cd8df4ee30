/** Keeps an account listening: polls or connections one after another, with back-off after failures, until the signal or a denial ends it. */

import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { backoffMs, sleep } from "@nexus-stream/protocol/retry";
import type { Tools } from "../platform/platform.ts";
import { PlatformError } from "../platform/platform-error.ts";

const BACKOFF = { firstMs: 1000, maxMs: 30_000 };

export interface ListenOptions {
	/** One poll, or one connection until it ends. */
	round(): Promise<void>;
	/** Between two successful rounds. */
	pauseMs: number;
	signal: AbortSignal;
	clock: Clock;
	log: Log;
	/** Called after every round. A round that is a connection also calls it once it is open. */
	listening?: Tools["listening"];
}

/** Rejects when the platform denies access; retries everything else. */
export async function keepListening(options: ListenOptions): Promise<void> {
	const { round, pauseMs, signal, clock, log, listening } = options;
	const now = elapsing(clock);
	const wait = (ms: number) => sleep(clock, ms, signal);
	let failures = 0;
	while (!signal.aborted) {
		const begun = now();
		try {
			await unlessAborted(signal, round());
			failures = 0;
			if (!signal.aborted) listening?.();
			// A connection that closes at once must not be reopened in a tight loop.
			const isBrief = now() - begun < BACKOFF.firstMs;
			if (!signal.aborted) await wait(isBrief ? Math.max(pauseMs, BACKOFF.firstMs) : pauseMs);
		} catch (cause) {
			if (signal.aborted) return;
			if (cause instanceof PlatformError && cause.fault === "denied") throw cause;
			// A connection that lasted resets the back-off, although it ended with a failure.
			if (now() - begun >= BACKOFF.maxMs) failures = 0;
			const requestedMs = cause instanceof PlatformError ? cause.retryAfterMs : undefined;
			const waitMs = requestedMs ?? backoffMs(BACKOFF, failures++);
			listening?.(cause instanceof Error ? cause.message : String(cause));
			log.warn({ error: String(cause), waitMs }, "listening was interrupted; retrying");
			await wait(waitMs);
		}
	}
}

/** Settles with the work, or resolves when the signal aborts first. A race against one lasting promise would keep every round's result in memory. */
export async function unlessAborted(signal: AbortSignal, work: Promise<unknown>): Promise<void> {
	const { promise: aborted, resolve } = Promise.withResolvers<void>();
	const end = () => resolve();
	signal.addEventListener("abort", end, { once: true });
	if (signal.aborted) end();
	try {
		await Promise.race([aborted, work]);
	} finally {
		signal.removeEventListener("abort", end);
	}
}
