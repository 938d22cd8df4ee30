/** Where a stream is read from: the cursor of a run or of a session, opened before the first byte is sent (I9). */

import { NexusError } from "@nexus-stream/protocol";
import { chainOf } from "../../broker/broker.ts";
import type { Batch, Bus, Cursor } from "../../bus/bus.ts";
import type { Ledger } from "../../ledger/ledger.ts";

export type Sources = ReturnType<typeof createSources>;

export function createSources(bus: Bus, ledger: Ledger) {
	return {
		async run(runId: string, after: number): Promise<Cursor> {
			try {
				return await bus.cursor({ log: runId }, after);
			} catch (cause) {
				if (!(cause instanceof NexusError) || cause.code !== "not_found") throw cause;
				throw await framesMissing(ledger, runId);
			}
		},
		/** `end` = only what is new; undefined = from the earliest kept record. A session without a run yet is empty, not an error. */
		async session(session: string, after: number | "end" | undefined): Promise<Cursor> {
			const chain = chainOf(session);
			if (typeof after === "number") return await bus.cursor({ chain }, after);
			const range = (await bus.describeChain(chain)) ?? { start: 0, head: 0 };
			return await bus.cursor({ chain }, after === "end" ? range.head : range.start);
		},
	};
}

/** A run whose frames are not on the Bus: removed by retention, or never there. */
export const framesMissing = async (ledger: Ledger, runId: string): Promise<NexusError> =>
	(await ledger.turns.get(runId))
		? new NexusError("expired", `the frames of ${runId} were removed by retention; GET /v1/runs/${runId} has the turn`)
		: new NexusError("not_found", `there is no run ${runId}`);

/** The larger of what the client remembers and what its address says: both mean "I have everything up to here". */
export function resumeAfter(lastEventId: string | null, after: number | undefined): number | undefined {
	if (lastEventId === null || lastEventId === "") return after;
	if (!/^\d{1,15}$/.test(lastEventId))
		throw new NexusError("invalid", "Last-Event-ID must be an offset that this stream sent");
	return Math.max(Number(lastEventId), after ?? 0);
}

/** A cursor that stops after an offset instead of following: for answers that have an end. */
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
