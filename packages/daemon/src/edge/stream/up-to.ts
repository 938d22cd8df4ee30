/** A cursor that stops after an offset instead of following: for answers that have an end. */

import type { Batch, Cursor } from "../../bus/bus.ts";

export function upTo(cursor: Cursor, last: number): Cursor {
	const cutBatch = (batch: Batch | undefined): Batch | undefined => batch?.upTo(last);
	return {
		get offset() {
			return Math.min(cursor.offset, last);
		},
		get ended() {
			return cursor.offset >= last;
		},
		next() {
			if (cursor.offset >= last) return undefined;
			const batch = cursor.next();
			return batch instanceof Promise ? batch.then(cutBatch) : cutBatch(batch);
		},
		check: () => (cursor.offset >= last ? undefined : cursor.check()),
		onWake: (listener) => cursor.onWake(listener),
		close: () => cursor.close(),
	};
}
