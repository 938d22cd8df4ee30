/** The streams of remote procedures that are open, with how each of them closes: what stopping goes by. */

import type { ConnectError } from "@connectrpc/connect";
import type { CloseMode } from "../../protocol/protocol.ts";
import type { OpenStream } from "./open-stream.ts";

/** A reader counts as stalled when it took nothing for so many sweeps. */
const STALLED_SWEEPS = 4;

export class Streams {
	readonly #open = new Set<OpenStream>();
	#stalled = 0;
	/** Who waits for streams to end. */
	readonly #leaving: (() => void)[] = [];

	get count(): number {
		return this.#open.size;
	}

	/** Readers that were disconnected because they took nothing. */
	get stalled(): number {
		return this.#stalled;
	}

	/** Returns how to take it out again. */
	add(stream: OpenStream): () => void {
		this.#open.add(stream);
		return () => this.#remove(stream);
	}

	/** Once none of these modes is open, or none at all. */
	async gone(modes?: readonly CloseMode[]): Promise<void> {
		while (this.#some(modes)) await new Promise<void>((resolve) => this.#leaving.push(resolve));
	}

	/** Of these modes, or all. */
	cut(cause: () => ConnectError, modes?: readonly (CloseMode | undefined)[]): void {
		for (const stream of [...this.#open]) if (!modes || modes.includes(stream.closes)) stream.cut(cause());
	}

	#some(modes?: readonly CloseMode[]): boolean {
		if (!modes) return this.#open.size > 0;
		for (const { closes } of this.#open) if (closes !== undefined && modes.includes(closes)) return true;
		return false;
	}

	#remove(stream: OpenStream): void {
		this.#open.delete(stream);
		for (const resolve of this.#leaving.splice(0)) resolve();
	}

	/** Called four times in the time that a reader may take nothing. */
	sweep(): void {
		for (const stream of this.#open) {
			if (!stream.isStalled(STALLED_SWEEPS)) continue;
			this.#remove(stream);
			this.#stalled++;
			stream.reset();
		}
	}
}
