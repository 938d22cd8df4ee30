/** Long polling: an update is confirmed to Telegram only when it and all before it are safe; meanwhile newer ones are asked for now and then. */

import { setImmediate } from "node:timers/promises";
import { PlatformError, type Tools } from "@nexus-stream/adapter";
import { createConfirmationQueue } from "@nexus-stream/adapter/serve/confirmation-queue";
import { unlessAborted } from "@nexus-stream/adapter/serve/listen";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { RawApi } from "grammy";
import type { Update } from "grammy/types";

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
	/** Resolves once it is read; `safe` when the daemon has it, absent when it is nothing for us. */
	take(update: Update): Promise<{ safe?: Promise<void> | undefined }>;
	signal: AbortSignal;
	clock: Clock;
	log: Log;
	listening?: Tools["listening"];
}

export async function poll({ api, call, take, signal, clock, log, listening }: PollOptions): Promise<void> {
	const wait = (ms: number) => unlessAborted(signal, new Promise<void>((resolve) => clock.after(ms, resolve)));
	/** Everything before it is safe. */
	let offset = 0;
	/** Everything before it was taken up. */
	let seen = 0;
	const heard = createConfirmationQueue();
	let failures = 0;
	/** Polls in a row that brought nothing at once. */
	let idle = 0;
	/** Telegram gives updates to one of the two ways only. */
	let isOurs = false;

	/** Asked from where all is safe, Telegram answers at once, with what it has told already: it is asked so only now and then. */
	async function untilSafe(): Promise<void> {
		await setImmediate();
		if (offset >= seen) return;
		const { promise: awhile, resolve } = Promise.withResolvers<void>();
		const cancel = clock.after(BRIEF_MS, resolve);
		await unlessAborted(signal, Promise.race([heard.confirmed(), awhile])).finally(cancel);
	}

	async function next(): Promise<Update[]> {
		if (!isOurs) await call("deleteWebhook", () => api.deleteWebhook({}));
		isOurs = true;
		await untilSafe();
		const params = { offset, timeout: offset < seen ? 0 : POLL_SECONDS, allowed_updates: UPDATES };
		const updates = await call("getUpdates", () =>
			api.getUpdates(params, signal as Parameters<RawApi["getUpdates"]>[1]),
		);
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
				if (offset < seen && update.update_id < seen) continue;
				let safe: Promise<void> | undefined;
				const read = take(update).then((taken) => {
					safe = taken.safe;
				});
				await unlessAborted(signal, read);
				if (signal.aborted) return;
				const after = update.update_id + 1;
				seen = after;
				const confirm = () => {
					offset = after;
				};
				await unlessAborted(signal, heard.add(safe, confirm));
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
