/** Long polling: an update is confirmed to Telegram only after it has been taken. */

import type { RawApi } from "grammy";
import type { Update } from "grammy/types";
import type { Clock } from "../../std/clock.ts";
import type { Log } from "../../std/log.ts";
import { PlatformError, type Tools, unlessAborted } from "../kit/kit.ts";

/** What we want to hear of. */
export const UPDATES = ["message", "callback_query"] as const;

const POLL_SECONDS = 25;
const BACKOFF_MS = 1000;
/** A poll that brings nothing takes as long as it was asked to; a server that answers at once is asked less often. */
const BRIEF_MS = 1000;
const IDLE_MS_MAX = 10_000;
/** Failures in a row; then the process ends with the reason, which the daemon shows, and the daemon tries again. */
const FAILURES_MAX = 4;

export interface PollOptions {
	api: RawApi;
	call<T>(method: string, work: () => Promise<T>): Promise<T>;
	/** Resolves when the update is safe. */
	take(update: Update): Promise<void>;
	signal: AbortSignal;
	clock: Clock;
	log: Log;
	listening?: Tools["listening"];
}

export async function poll({ api, call, take, signal, clock, log, listening }: PollOptions): Promise<void> {
	const wait = (ms: number) => unlessAborted(signal, new Promise<void>((resolve) => clock.after(ms, resolve)));
	let offset = 0;
	let failures = 0;
	/** Polls in a row that brought nothing at once. */
	let idle = 0;
	/** Telegram gives updates to one of the two ways only. */
	let isOurs = false;

	async function next(): Promise<Update[]> {
		if (!isOurs) await call("deleteWebhook", () => api.deleteWebhook({}));
		isOurs = true;
		const wish = { offset, timeout: POLL_SECONDS, allowed_updates: UPDATES };
		const updates = await call("getUpdates", () => api.getUpdates(wish, signal as Parameters<RawApi["getUpdates"]>[1]));
		if (!Array.isArray(updates)) throw new PlatformError("unavailable", "getUpdates: the answer is no list of updates");
		return updates;
	}

	while (!signal.aborted) {
		try {
			const begun = clock.now();
			const updates = await next();
			failures = 0;
			listening?.();
			// What was confirmed comes again only from a server that does not count.
			const isNews = updates.some(({ update_id }) => update_id >= offset);
			idle = !isNews && clock.now() - begun < BRIEF_MS ? idle + 1 : 0;
			if (idle > 0) await wait(Math.min(BRIEF_MS * 2 ** (idle - 1), IDLE_MS_MAX));
			if (signal.aborted) return;
			for (const update of updates) {
				await unlessAborted(signal, take(update));
				if (signal.aborted) return;
				offset = update.update_id + 1;
			}
		} catch (cause) {
			if (signal.aborted) return;
			// Somebody may have set a webhook meanwhile.
			isOurs = false;
			if (!(cause instanceof PlatformError) || cause.fault === "denied") throw cause;
			listening?.(cause.message);
			const waitMs = cause.retryAfterMs ?? BACKOFF_MS * 2 ** failures++;
			if (failures === FAILURES_MAX) throw new PlatformError("unavailable", cause.message, { cause });
			log.warn({ error: cause.message, waitMs }, "no updates from Telegram; trying again");
			await wait(waitMs);
		}
	}
}
