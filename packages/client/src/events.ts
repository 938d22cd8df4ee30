/** Follows the events of something that ends, such as a workflow (close mode B), across lost connections and restarts. */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { createParser } from "eventsource-parser";
import { queryOf } from "./api.ts";
import { type Http, textOf } from "./http.ts";
import { isTemporary, LINK_LIMITS, type LinkLimits, retryDelayMs } from "./link.ts";

export interface EventsOptions {
	/** Strictly after this offset; without it the newest event comes first. */
	after?: number;
	/** A connection was made: from here on events come as they are written. */
	onOpen?(): void;
	/** The connection was lost and is being made again. */
	onDrop?(because: string): void;
	signal?: AbortSignal;
	limits?: Partial<LinkLimits>;
	clock?: Clock;
	random?(): number;
}

export interface EventRecord<T> {
	readonly offset: number;
	readonly event: T;
	/** As it was sent: one line of JSON. */
	readonly text: string;
}

/** Ends after the event that `isLast` says so of, when the signal aborts, or when there is nothing more. */
export async function* followEvents<T>(
	{ request }: Pick<Http, "request">,
	path: string,
	isLast: (event: T) => boolean,
	{ signal, clock = systemClock, random = Math.random, onOpen, onDrop, ...options }: EventsOptions = {},
): AsyncGenerator<EventRecord<T>> {
	const limits = withDefaults(LINK_LIMITS, options.limits);
	let { after } = options;
	let lostAt: number | undefined;
	let internals = 0;
	for (let attempt = 0; !signal?.aborted; attempt++) {
		try {
			for await (const record of connection<T>(request, path + queryOf({ after }), limits.silenceMs, clock, signal)) {
				if (record === "nothing-more") return;
				if (record === "open") {
					onOpen?.();
					continue;
				}
				if (after !== undefined && record.offset <= after) continue;
				after = record.offset;
				[attempt, internals, lostAt] = [0, 0, undefined];
				yield record;
				if (isLast(record.event)) return;
			}
		} catch (cause) {
			if (signal?.aborted) return;
			const { code, message } = toNexusError(cause);
			if (!isTemporary(code, internals)) throw cause;
			if (code === "internal") internals++;
			lostAt ??= clock.now();
			if (attempt === 0) onDrop?.(message);
			else if (clock.now() - lostAt > limits.giveUpMs) throw cause;
		}
		await pause(clock, retryDelayMs(attempt, random, limits), signal);
	}
}

/** The events of one connection, until it is lost: then it throws. */
async function* connection<T>(
	request: Http["request"],
	path: string,
	silenceMs: number,
	clock: Clock,
	signal: AbortSignal | undefined,
): AsyncGenerator<EventRecord<T> | "open" | "nothing-more"> {
	const own = new AbortController();
	const stop = () => own.abort();
	signal?.addEventListener("abort", stop, { once: true });
	let cancel = () => {};
	const heard = () => {
		cancel();
		cancel = clock.after(silenceMs, stop, "due");
	};
	try {
		heard();
		const response = await request("GET", path, { accept: "text/event-stream", signal: own.signal });
		if (response.status === 204) return yield "nothing-more";
		yield "open";
		const records: EventRecord<T>[] = [];
		const parser = createParser({
			onEvent: ({ id, data }) => records.push({ offset: Number(id), event: JSON.parse(data) as T, text: data }),
		});
		for await (const text of textOf(response)) {
			heard();
			parser.feed(text);
			yield* records.splice(0);
		}
		throw new NexusError("unavailable", "the connection was closed");
	} finally {
		cancel();
		signal?.removeEventListener("abort", stop);
		own.abort();
	}
}

const pause = (clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> =>
	new Promise((resolve) => {
		const over = () => {
			cancel();
			signal?.removeEventListener("abort", over);
			resolve();
		};
		const cancel = clock.after(ms, over, "due");
		signal?.addEventListener("abort", over);
	});
