/** Listening that goes on: rounds of polling or connections, one after another, slower after failures, until the signal or a denial ends it. */

import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { PlatformError, type Tools } from "../platform/platform.ts";

const BACKOFF_MS = 1000;
const BACKOFF_MAX_MS = 30_000;

export interface ListenOptions {
	/** One poll, or one connection until it ends. */
	round(): Promise<void>;
	/** Between two rounds that went well. */
	pauseMs: number;
	signal: AbortSignal;
	clock: Clock;
	log: Log;
	/** A round that is a connection says by itself when it is there. */
	listening?: Tools["listening"];
}

/** Rejects when the platform denies; everything else is tried again. */
export async function keepListening(options: ListenOptions): Promise<void> {
	const { round, pauseMs, signal, clock, log, listening } = options;
	const now = elapsing(clock);
	const wait = (ms: number) => unlessAborted(signal, new Promise<void>((resolve) => clock.after(ms, resolve)));
	let failures = 0;
	while (!signal.aborted) {
		const begun = now();
		try {
			await unlessAborted(signal, round());
			failures = 0;
			if (!signal.aborted) listening?.();
			// A connection that ends as soon as it is there is not made again in a circle.
			const brief = now() - begun < BACKOFF_MS;
			if (!signal.aborted) await wait(brief ? Math.max(pauseMs, BACKOFF_MS) : pauseMs);
		} catch (cause) {
			if (signal.aborted) return;
			if (cause instanceof PlatformError && cause.fault === "denied") throw cause;
			// A connection that held is not one of a row of failures, although it ends with one.
			if (now() - begun >= BACKOFF_MAX_MS) failures = 0;
			const known = cause instanceof PlatformError ? cause.retryAfterMs : undefined;
			const waitMs = known ?? Math.min(BACKOFF_MS * 2 ** failures++, BACKOFF_MAX_MS);
			listening?.(cause instanceof Error ? cause.message : String(cause));
			log.warn({ error: String(cause), waitMs }, "listening was interrupted; trying again");
			await wait(waitMs);
		}
	}
}

/**
 * Settles with the work, or resolves when the signal aborts first. A race against one promise for the signal's whole life would keep every
 * round, and what came of it, for as long as the process lives.
 */
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
