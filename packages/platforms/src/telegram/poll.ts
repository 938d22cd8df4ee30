/** Long polling: an update is confirmed to Telegram only when it and all before it are safe; meanwhile newer ones are asked for now and then. */

import { setImmediate } from "node:timers/promises";
import { PlatformError, type Tools } from "@nexus-stream/adapter";
import { createConfirmationQueue } from "@nexus-stream/adapter/serve/confirmation-queue";
import { unlessAborted } from "@nexus-stream/adapter/serve/listen";
import { backoffMs, sleep } from "@nexus-stream/protocol/retry";
import type { RawApi } from "grammy";
import type { Update } from "grammy/types";

export const UPDATES = ["message", "callback_query"] as const;

const POLL_SECONDS = 25;
const BACKOFF = { firstMs: 1000, maxMs: 30_000 };
/** A poll that brings nothing takes as long as it was asked to; a server that answers at once is asked less often. */
const BRIEF_MS = 1000;
const IDLE_BACKOFF = { firstMs: BRIEF_MS, maxMs: 10_000 };
/** Failures in a row; then the process ends with the reason, which the daemon shows, and the daemon tries again. */
const FAILURES_MAX = 4;

export interface PollOptions extends Pick<Tools, "clock" | "log" | "listening"> {
	api: RawApi;
	call<T>(method: string, work: () => Promise<T>): Promise<T>;
	/** Resolves once it is read; `safe` resolves when the daemon has stored it, absent when it is not for us. */
	take(update: Update): Promise<{ safe?: Promise<void> | undefined }>;
	signal: AbortSignal;
}

export async function poll(options: PollOptions): Promise<void> {
	await new Poller(options).run();
}

class Poller {
	readonly #options: PollOptions;
	/** Everything before it is stored. */
	#offset = 0;
	/** Everything before it was read. */
	#seen = 0;
	readonly #unconfirmed = createConfirmationQueue();
	#failures = 0;
	/** Polls in a row that returned nothing at once. */
	#idle = 0;
	/** Telegram gives updates to polls only without a webhook. */
	#isOurs = false;

	constructor(options: PollOptions) {
		this.#options = options;
	}

	async run(): Promise<void> {
		const { signal, listening } = this.#options;
		while (!signal.aborted) {
			try {
				const updates = await this.#poll();
				this.#failures = 0;
				listening();
				if (this.#idle > 0) await this.#wait(backoffMs(IDLE_BACKOFF, this.#idle - 1));
				for (const update of updates) {
					if (signal.aborted) return;
					await this.#read(update);
				}
			} catch (cause) {
				if (signal.aborted) return;
				await this.#recover(cause);
			}
		}
	}

	async #poll(): Promise<Update[]> {
		const { clock } = this.#options;
		const begun = clock.now();
		const updates = await this.#next();
		// Only a server that ignores the offset repeats confirmed updates.
		const isNews = updates.some(({ update_id }) => update_id >= this.#offset);
		this.#idle = !isNews && clock.now() - begun < BRIEF_MS ? this.#idle + 1 : 0;
		return updates;
	}

	async #next(): Promise<Update[]> {
		const { api, call, signal } = this.#options;
		if (!this.#isOurs) await call("deleteWebhook", () => api.deleteWebhook({}));
		this.#isOurs = true;
		await this.#untilStored();
		const timeout = this.#offset < this.#seen ? 0 : POLL_SECONDS;
		const params = { offset: this.#offset, timeout, allowed_updates: UPDATES };
		const updates = await call("getUpdates", () =>
			api.getUpdates(params, signal as Parameters<RawApi["getUpdates"]>[1]),
		);
		if (Array.isArray(updates)) return updates;
		throw new PlatformError("unavailable", "getUpdates: the answer is not a list of updates");
	}

	/** While updates are unconfirmed, Telegram answers a poll at once with the same updates: wait for the confirmation, or a moment. */
	async #untilStored(): Promise<void> {
		await setImmediate();
		if (this.#offset >= this.#seen) return;
		const { clock, signal } = this.#options;
		const { promise: moment, resolve } = Promise.withResolvers<void>();
		const cancel = clock.after(BRIEF_MS, resolve);
		await unlessAborted(signal, Promise.race([this.#unconfirmed.confirmed(), moment])).finally(cancel);
	}

	async #read(update: Update): Promise<void> {
		const { take, signal } = this.#options;
		if (this.#offset < this.#seen && update.update_id < this.#seen) return;
		let stored: Promise<void> | undefined;
		const reading = take(update).then(({ safe }) => {
			stored = safe;
		});
		await unlessAborted(signal, reading);
		if (signal.aborted) return;
		const after = update.update_id + 1;
		this.#seen = after;
		const confirm = () => {
			this.#offset = after;
		};
		await unlessAborted(signal, this.#unconfirmed.add(stored, confirm));
	}

	async #recover(cause: unknown): Promise<void> {
		// Another program may have set a webhook meanwhile.
		this.#isOurs = false;
		if (!(cause instanceof PlatformError) || cause.fault === "denied") throw cause;
		const { listening, log } = this.#options;
		listening(cause.message);
		const waitMs = cause.retryAfterMs ?? backoffMs(BACKOFF, this.#failures++);
		if (this.#failures === FAILURES_MAX) throw new PlatformError("unavailable", cause.message, { cause });
		log.warn({ error: cause.message, waitMs }, "no updates from Telegram; retrying");
		await this.#wait(waitMs);
	}

	#wait(ms: number): Promise<void> {
		return sleep(this.#options.clock, ms, this.#options.signal);
	}
}
