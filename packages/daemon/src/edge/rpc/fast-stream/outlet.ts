/** The pump's transport for remote procedures: holds the messages of one batch, and asks for more when Connect took the last of them (I6). */

import type { CloseMode } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Batch, Cursor } from "../../../bus/bus.ts";
import { type Flusher, Pump, type Transport } from "../../stream/stream.ts";

export interface OutletStream<Message> {
	cursor: Cursor;
	/** The messages for the records of a batch; may be empty. */
	messages(batch: Batch): readonly Message[];
	closes: CloseMode;
	/** The messages after the last record of a log that has ended. */
	end?(): readonly Message[];
	/** Content that no message has brought to the reader yet, and how long it may wait for one. */
	held?: { msMax: number; any(): boolean; take(): Message };
}

interface OutletServing {
	flusher: Flusher;
	clock: Clock;
	/** Established when the reader waits and its log has nothing for it now. */
	stream: { establish(): void };
}

type PendingRead<Message> = Omit<PromiseWithResolvers<IteratorResult<Message, undefined>>, "promise">;

const DONE = { done: true, value: undefined } as const;

export class Outlet<Message> implements Transport<readonly Message[]>, AsyncIterableIterator<Message, undefined> {
	readonly #pump: Pump<readonly Message[]>;
	readonly #serving: OutletServing;
	#messages: readonly Message[] = [];
	#at = 0;
	/** Why there will be no more. */
	#over: { cause?: unknown } | undefined;
	#pendingRead: PendingRead<Message> | undefined;
	/** The store has answered that there is nothing more: until then it may only be slow. */
	#isCaughtUp = false;
	readonly #held: OutletStream<Message>["held"];
	/** Waits for the time of what is held; undefined while nothing is. */
	#cancelHeld: (() => void) | undefined;
	/** The held content has waited long enough. */
	#isHeldDue = false;

	/** An abort of the signal cuts it: what waits is refused with the signal's reason. */
	constructor(serving: OutletServing, stream: OutletStream<Message>, signal: AbortSignal) {
		const { cursor, messages, closes, end } = stream;
		this.#serving = serving;
		this.#held = stream.held;
		this.#pump = new Pump(this, serving.flusher);
		const some = (found: readonly Message[]) => (found.length > 0 ? found : undefined);
		this.#pump.add({
			cursor,
			encoder: {
				text: (batch) => {
					const found = some(messages(batch));
					this.#watchHeld();
					return found;
				},
				end: end ? () => some(end()) : undefined,
			},
			// A subscription to a log that can be closed ends with it; a chain never does.
			closes: closes === "D" ? undefined : closes,
			caughtUp: () => {
				this.#isCaughtUp = true;
				if (this.#pendingRead) serving.stream.establish();
			},
			ended: () => this.#finish({}),
			failed: (cause) => this.#finish({ cause }),
		});
		const cut = () => this.#drop({ cause: signal.reason });
		if (signal.aborted) cut();
		else signal.addEventListener("abort", cut, { once: true });
	}

	/** Full until the last message was taken. */
	write(messages: readonly Message[]): boolean {
		this.#messages = messages;
		this.#at = 0;
		if (this.#pendingRead) this.#give(this.#pendingRead);
		return false;
	}

	get waiting(): boolean {
		return this.#at < this.#messages.length;
	}

	close(): void {}

	next(): Promise<IteratorResult<Message, undefined>> {
		return new Promise((resolve, reject) => {
			const approvals = { resolve, reject };
			if (!this.waiting && !this.#over) {
				this.#pendingRead = approvals;
				this.#pump.drained();
				if (this.#isHeldDue) this.#releaseHeld();
				if (this.#pendingRead && this.#isCaughtUp) this.#serving.stream.establish();
			} else this.#give(approvals);
		});
	}

	async return(): Promise<IteratorResult<Message, undefined>> {
		this.#drop({});
		return DONE;
	}

	[Symbol.asyncIterator](): this {
		return this;
	}

	#give({ resolve, reject }: PendingRead<Message>): void {
		this.#pendingRead = undefined;
		if (this.waiting) resolve({ done: false, value: this.#messages[this.#at++]! });
		else if (this.#over && "cause" in this.#over) reject(this.#over.cause);
		else resolve(DONE);
	}

	/** One timer for what is held, from the first of it on. */
	#watchHeld(): void {
		if (this.#held?.any()) {
			this.#cancelHeld ??= this.#serving.clock.after(this.#held.msMax, () => {
				this.#isHeldDue = true;
				this.#releaseHeld();
			});
		} else this.#letGoHeld();
	}

	/** Only to a reader that waits: one that does not gets it when it asks. */
	#releaseHeld(): void {
		if (!this.#pendingRead || this.#over || !this.#held?.any()) return;
		this.#letGoHeld();
		this.write([this.#held.take()]);
	}

	#letGoHeld(): void {
		this.#cancelHeld?.();
		this.#cancelHeld = undefined;
		this.#isHeldDue = false;
	}

	/** Before its end: what was read is thrown away. */
	#drop(over: { cause?: unknown }): void {
		this.#messages = [];
		this.#at = 0;
		this.#pump.gone();
		this.#finish(over);
	}

	#finish(over: { cause?: unknown }): void {
		this.#over ??= over;
		this.#letGoHeld();
		if (this.#pendingRead) this.#give(this.#pendingRead);
	}
}

/** How long a reader's place may be older than what it was shown. */
const PLACE_MS_MAX = 60_000;

interface Filter<Event, Message> {
	/** Undefined: all of them. */
	fits: ((event: Event) => boolean) | undefined;
	message(sequence: number, event: Event): Message;
}

/**
 * A subscription to some of a log's events: its reader is given its place though nothing matches, so that retention does not pass it
 * (P8.7). A place is an event without a type.
 */
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
