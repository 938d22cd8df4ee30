/** Follows the events of something that ends, such as a workflow (close mode B), across lost connections and restarts. */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { sleep } from "@nexus-stream/protocol/retry";
import { createParser } from "eventsource-parser";
import { queryOf } from "./api.ts";
import { type Http, textOf } from "./http.ts";
import { LINK_LIMITS, type LinkLimits } from "./link.ts";
import { failureKindOf, NO_OUTAGE, type Outage, stepOutage } from "./outage.ts";

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
	let outage: Outage = NO_OUTAGE;
	while (!signal?.aborted) {
		let error: NexusError;
		try {
			for await (const record of connection<T>(request, path + queryOf({ after }), limits.silenceMs, clock, signal)) {
				if (record === "nothing-more") return;
				if (record === "open") {
					onOpen?.();
					continue;
				}
				if (after !== undefined && record.offset <= after) continue;
				after = record.offset;
				outage = NO_OUTAGE;
				yield record;
				if (isLast(record.event)) return;
			}
			continue;
		} catch (cause) {
			if (signal?.aborted) return;
			error = toNexusError(cause);
		}
		const step = stepOutage(outage, failureKindOf(error.code), clock.now(), random, limits);
		if (typeof step === "string") throw error;
		if (outage.attempt === 0) onDrop?.(error.message);
		outage = step.outage;
		await sleep(clock, step.delayMs, signal, "due");
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
