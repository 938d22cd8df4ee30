/** One unit of a commit, with whom it is for. What the outcome does is read from here: the log takes new records meanwhile. */

import type { Write } from "../../std/write.ts";
import type { Creation, Joint, LiveLog, Seal, Waiting } from "../live-log.ts";
import type { Commit, LogWrite, Unit } from "../storage.ts";

/** Changes of stored things that need no record. */
export interface WriteRequest extends Waiting {
	writes: readonly Write[];
	patienceMs: number;
}

export interface Part extends Unit {
	readonly live: LiveLog | undefined;
	readonly request: WriteRequest | undefined;
	/** What the part brings about for its log, besides new records. */
	readonly creation: Creation | undefined;
	readonly joint: Joint | undefined;
	readonly sealing: Seal | undefined;
	/** The records of the batch that were appended without writes: they stay when the writes are refused. */
	readonly own: { count: number; text: string };
}

/** A commit that is made, or to be tried again. */
export interface Flight {
	commit: Commit;
	parts: Part[];
}

const NO_WRITES: readonly Write[] = [];
const NONE = { count: 0, text: "" };

export const partOfRequest = (request: WriteRequest): Part => ({
	...{ writes: request.writes, log: undefined, live: undefined, request, own: NONE },
	...{ creation: undefined, joint: undefined, sealing: undefined },
});

/** Moves what waits of a log into a commit. A tail of `segmentCharsMax` becomes a segment. */
export function partOfLog(log: LiveLog, segmentCharsMax: number): Part {
	const { creation } = log;
	const joint = creation ? undefined : log.joint;
	const sealing = creation || joint ? undefined : log.seal;
	const last = sealing?.records ?? joint?.records;
	const own = { count: log.pendingCount, text: log.pending };
	const write: LogWrite = { id: log.id };
	if (creation) write.create = log.spec;
	if (sealing) write.seal = true;
	write.batch = log.take(last ?? []);
	const isFull = log.tail.size + log.inFlightChars >= segmentCharsMax;
	const all = sealing || isFull || log.cutSoon ? log.tailWith(write.batch) : undefined;
	if (all) write.cut = { batch: all, bytes: Buffer.byteLength(all.text) + 1 };
	log.cutSoon = false;
	const writes = (creation ?? sealing ?? joint)?.writes ?? NO_WRITES;
	return { writes, log: write, live: log, request: undefined, own, creation, joint, sealing };
}

/** For how long whoever waits for it waits for a failing store. */
export const patienceMsOf = ({ creation, sealing, request }: Part): number =>
	(creation ?? sealing ?? request)?.patienceMs ?? Infinity;

/** The records that were appended wait again; what was to go with them does not. */
export function withdraw({ own, sealing, joint }: Part, log: LiveLog, why: Error): void {
	log.putBack(own.text, own.count);
	if (sealing) log.seal = undefined;
	else if (joint) log.disjoin(joint);
	(sealing ?? joint)?.reject(why);
}
