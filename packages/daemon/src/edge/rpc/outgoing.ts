/** The bytes of a call's answer, and whether its client takes any of them (Z8). */

import type { ServerResponse } from "node:http";
import type { Http2ServerResponse, ServerHttp2Session } from "node:http2";

export type RpcResponse = ServerResponse | Http2ServerResponse;

/** The two kinds of response differ in nothing that is used here, but their methods have overloads that do not agree. */
interface Writable {
	readonly writableLength: number;
	write(chunk: Uint8Array, taken?: (cause?: Error | null) => void): boolean;
}

/** The first look at something that waits is where its time begins. */
const NOT_WAITING = -1;

export class OutgoingResponse {
	readonly #response: RpcResponse;
	readonly #reset: () => void;
	#writtenBytes = 0;
	/** How many of them the client had taken at the last look. */
	#takenBytes = 0;
	/** Looks in a row at which it had taken nothing more. */
	#stillLooks = NOT_WAITING;
	/** Called when it is reset because its client took nothing. */
	onStalled: () => void = () => {};

	/** `reset` ends the HTTP stream without trailers: a reader that does not read could not get them (Z8). */
	constructor(response: RpcResponse, reset: () => void) {
		this.#response = response;
		this.#reset = reset;
	}

	get #writable(): Writable {
		return this.#response;
	}

	/** The HTTP/2 session; undefined for HTTP/1.1, whose socket is watched by its own time-out. */
	get session(): ServerHttp2Session | undefined {
		return "stream" in this.#response ? (this.#response.stream?.session as ServerHttp2Session | undefined) : undefined;
	}

	/** Bytes that the connection has not taken yet. */
	get waitingBytes(): number {
		return this.#writable.writableLength;
	}

	write(chunk: Uint8Array, taken?: (cause?: Error | null) => void): boolean {
		this.#writtenBytes += chunk.length;
		return this.#writable.write(chunk, taken);
	}

	/** Whether bytes wait, and whether the client took some since the last look. */
	look(): { isWaiting: boolean; hasMoved: boolean } {
		const { waitingBytes } = this;
		const takenBytes = this.#writtenBytes - waitingBytes;
		const hasMoved = takenBytes !== this.#takenBytes;
		this.#takenBytes = takenBytes;
		if (waitingBytes === 0) this.#stillLooks = NOT_WAITING;
		else if (hasMoved) this.excuse();
		return { isWaiting: waitingBytes > 0, hasMoved };
	}

	/** After a look at which bytes waited and none had moved; true once that was so many times in a row. */
	isStalled(looksMax: number): boolean {
		return ++this.#stillLooks >= looksMax;
	}

	/** It counts as moving. */
	excuse(): void {
		this.#stillLooks = 0;
	}

	reset(): void {
		this.onStalled();
		this.#reset();
	}
}
