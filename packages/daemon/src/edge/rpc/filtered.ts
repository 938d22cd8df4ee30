/** A subscription to some of a log's events: its reader is given its place though nothing matches, so that retention does not pass it (P8.7). */

import type { Batch } from "../../bus/bus.ts";
import type { OutletStream } from "./outlet.ts";

/** How long a reader's place may be older than what it was shown. */
const PLACE_MS_MAX = 60_000;

interface Filter<Event, Message> {
	/** Undefined: all of them. */
	fits: ((event: Event) => boolean) | undefined;
	message(sequence: number, event: Event): Message;
}

/** A place is an event without a type. */
export function filtered<Event, Message>({
	fits,
	message,
}: Filter<Event, Message>): Pick<OutletStream<Message | { sequence: bigint }>, "messages" | "held"> {
	let seen = 0;
	let told = 0;
	return {
		messages({ first, last, records }: Batch) {
			const wanted: Message[] = [];
			for (const [n, record] of records.entries()) {
				const event = JSON.parse(record) as Event;
				if (fits && !fits(event)) continue;
				wanted.push(message(first + n, event));
				told = first + n;
			}
			seen = last;
			return wanted;
		},
		held: {
			msMax: PLACE_MS_MAX,
			any: () => seen > told,
			take() {
				told = seen;
				return { sequence: BigInt(seen) };
			},
		},
	};
}
