/** The streams of remote procedures that are open, with how each of them closes: what stopping goes by. */

import type { ConnectError } from "@connectrpc/connect";
import type { CloseMode } from "../../protocol/protocol.ts";
import type { OpenStream } from "./open-stream.ts";

/** A reader counts as stalled when it took nothing for so many sweeps. */
const STALLED_SWEEPS = 4;

export class Streams {
	readonly #open = new Set<OpenStream>();
	#stalled = 0;

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
		return () => void this.#open.delete(stream);
	}

	/** Of these modes, or all. */
	cut(cause: () => ConnectError, modes?: readonly (CloseMode | undefined)[]): void {
		for (const stream of [...this.#open]) if (!modes || modes.includes(stream.closes)) stream.cut(cause());
	}

	has(modes: readonly CloseMode[]): boolean {
		for (const { closes } of this.#open) if (closes !== undefined && modes.includes(closes)) return true;
		return false;
	}

	/** Called four times in the time that a reader may take nothing. */
	sweep(): void {
		for (const stream of this.#open) {
			if (!stream.isStalled(STALLED_SWEEPS)) continue;
			this.#open.delete(stream);
			this.#stalled++;
			stream.reset();
		}
	}
}
