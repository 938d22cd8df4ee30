/** A stream of a remote procedure while it is open: how it is carried, and how it is cut. */

import type { ConnectError } from "@connectrpc/connect";
import type { CloseMode } from "@nexus-stream/protocol";
import type { Direct } from "./direct.ts";

export interface StreamParts {
	/** Undefined for server reflection, which is a dialogue. */
	closes: CloseMode | undefined;
	controller: AbortController;
	/** Sends the headers, so that a client knows that it is established before the first message. */
	establish(): void;
	/** How messages are written without Connect, if they can be. */
	direct: Direct | undefined;
	/** The error that a client sees, or the cut if the signal has aborted. */
	shown(cause: unknown, signal: AbortSignal): ConnectError;
}

export class OpenStream {
	readonly closes: CloseMode | undefined;
	readonly #parts: StreamParts;

	constructor(parts: StreamParts) {
		this.closes = parts.closes;
		this.#parts = parts;
	}

	/** Nothing is at hand and the reader waits. */
	establish(): void {
		this.#parts.establish();
	}

	/** A cut is an error: the reader must not take it for an end (Z7). */
	cut(cause: ConnectError): void {
		this.#parts.controller.abort(cause);
	}

	/** A method's messages, for Connect. A cut reaches a method that waits; if the method then merely returns, the stream still fails. */
	carry<Message>(begin: () => AsyncIterable<Message>, signal: AbortSignal): AsyncIterable<Message> {
		let inner: AsyncIterator<Message>;
		try {
			inner = begin()[Symbol.asyncIterator]();
		} catch (cause) {
			throw this.#parts.shown(cause, signal);
		}
		let refuse: ((cause: unknown) => void) | undefined;
		const shown = (cause?: unknown) => this.#parts.shown(cause, signal);
		const leave = () => void inner.return?.().catch(() => {});
		signal.addEventListener(
			"abort",
			() => {
				refuse?.(shown());
				leave();
			},
			{ once: true },
		);
		const iterator: AsyncIterator<Message> = {
			next: () =>
				new Promise((resolve, reject) => {
					refuse = reject;
					const give = (result: IteratorResult<Message>) => {
						refuse = undefined;
						if (result.done && signal.aborted) reject(shown());
						else resolve(result);
					};
					const fail = (cause: unknown) => reject(shown(cause));
					const take = (result: IteratorResult<Message>) => {
						if (result.done || signal.aborted) give(result);
						else this.#write(result, give, fail, pull);
					};
					const pull = () => {
						if (signal.aborted) reject(shown());
						else inner.next().then(take, fail);
					};
					pull();
				}),
			async return() {
				leave();
				return { done: true, value: undefined };
			},
		};
		return { [Symbol.asyncIterator]: () => iterator };
	}

	/** Writes a message and continues, or gives it to Connect, which keeps a message in its pipeline until the next one. */
	#write<Message>(
		result: IteratorYieldResult<Message>,
		give: (result: IteratorResult<Message>) => void,
		fail: (cause: unknown) => void,
		pull: () => void,
	): void {
		const { direct } = this.#parts;
		try {
			if (direct) this.establish();
			const room = direct?.write(result.value as Readonly<Record<string, unknown>>);
			if (room === undefined) give(result);
			else if (room) pull();
			else direct?.whenDrained(pull);
		} catch (cause) {
			fail(cause);
		}
	}
}
