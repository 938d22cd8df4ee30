/** A cursor as an async iterable: catch up, then live, without a gap or a duplicate (I4). */

import type { Cursor } from "../port.ts";
import type { Batch } from "./batch.ts";

/** Ends when the source is sealed and read, or the signal aborts. Closes the cursor. */
export async function* follow(cursor: Cursor, signal?: AbortSignal): AsyncGenerator<Batch, void, undefined> {
	let woken = false;
	let resume: (() => void) | undefined;
	const wake = () => {
		woken = true;
		resume?.();
	};
	cursor.onWake(wake);
	signal?.addEventListener("abort", wake, { once: true });
	try {
		while (!signal?.aborted) {
			woken = false;
			const batch = await cursor.next();
			if (batch) yield batch;
			else if (cursor.ended) return;
			else if (!woken) await new Promise<void>((resolve) => (resume = resolve));
		}
	} finally {
		signal?.removeEventListener("abort", wake);
		cursor.close();
	}
}
