/** The pump's transport for remote procedures: holds the messages of one batch, and asks for more when Connect took the last of them (I6). */

import type { Batch, Cursor } from "../../bus/bus.ts";
import type { CloseMode } from "../../protocol/protocol.ts";
import { type Flusher, Pump, type Transport } from "../stream/stream.ts";

export interface OutletStream<Message> {
	cursor: Cursor;
	messages(batch: Batch): readonly Message[];
	closes: CloseMode;
	end?(): readonly Message[];
}

interface OutletServing {
	flusher: Flusher;
	/** Told when the reader waits and nothing is at hand. */
	stream: { establish(): void };
}

interface Asking<Message> {
	resolve(result: IteratorResult<Message, undefined>): void;
	reject(cause: unknown): void;
}

const DONE = { done: true, value: undefined } as const;

export class Outlet<Message> implements Transport<readonly Message[]>, AsyncIterableIterator<Message, undefined> {
	readonly #pump: Pump<readonly Message[]>;
	readonly #serving: OutletServing;
	#messages: readonly Message[] = [];
	#at = 0;
	/** Why there will be no more. */
	#over: { cause?: unknown } | undefined;
	#asking: Asking<Message> | undefined;

	/** An abort of the signal cuts it: what waits is refused with the signal's reason. */
	constructor(serving: OutletServing, { cursor, messages, closes, end }: OutletStream<Message>, signal: AbortSignal) {
		this.#serving = serving;
		this.#pump = new Pump(this, serving.flusher);
		const some = (found: readonly Message[]) => (found.length > 0 ? found : undefined);
		this.#pump.add({
			cursor,
			encoder: {
				text: (batch) => some(messages(batch)),
				...(end && { end: () => some(end()) }),
			},
			// A subscription to a log that can be closed ends with it; a chain never does.
			closes: closes === "D" ? undefined : closes,
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
		if (this.#asking) this.#give(this.#asking);
		return false;
	}

	get waiting(): boolean {
		return this.#at < this.#messages.length;
	}

	close(): void {}

	next(): Promise<IteratorResult<Message, undefined>> {
		return new Promise((resolve, reject) => {
			const asking = { resolve, reject };
			if (!this.waiting && !this.#over) {
				this.#asking = asking;
				this.#pump.drained();
				if (this.#asking) this.#serving.stream.establish();
			} else this.#give(asking);
		});
	}

	async return(): Promise<IteratorResult<Message, undefined>> {
		this.#drop({});
		return DONE;
	}

	[Symbol.asyncIterator](): this {
		return this;
	}

	#give({ resolve, reject }: Asking<Message>): void {
		this.#asking = undefined;
		if (this.waiting) resolve({ done: false, value: this.#messages[this.#at++]! });
		else if (this.#over && "cause" in this.#over) reject(this.#over.cause);
		else resolve(DONE);
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
		if (this.#asking) this.#give(this.#asking);
	}
}
