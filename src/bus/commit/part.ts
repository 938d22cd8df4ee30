/** One unit of a commit, with whom it is for. What the outcome does is read from here: the log takes new records meanwhile. */

import type { Write } from "../../std/write.ts";
import type { Creation, Joint, LiveLog, Seal, Waiting } from "../live-log.ts";
import type { Commit, LogWrite, Unit } from "../storage.ts";
import { unwritten } from "./outcome.ts";

/** Changes of stored things that need no record. */
export interface WriteRequest extends Waiting {
	writes: readonly Write[];
	patienceMs: number;
}

export interface Part extends Unit {
	readonly log: Required<LogWrite> | undefined;
	readonly live: LiveLog | undefined;
	readonly request: WriteRequest | undefined;
	/** What the part brings about for its log, besides new records. */
	readonly creation: Creation | undefined;
	readonly joint: Joint | undefined;
	readonly sealing: Seal | undefined;
	/** The records of the batch that were appended without writes: they stay when the writes are refused. */
	readonly ownCount: number;
	readonly ownText: string;
}

/** A commit that is made, or to be tried again. */
export interface Flight {
	commit: Commit;
	parts: Part[];
}

const NO_WRITES: readonly Write[] = [];
const NO_RECORDS: readonly string[] = [];

export const partOfRequest = (request: WriteRequest): Part => ({
	writes: request.writes,
	log: undefined,
	live: undefined,
	request,
	creation: undefined,
	joint: undefined,
	sealing: undefined,
	ownCount: 0,
	ownText: "",
});

/** Moves what waits of a log into a commit. A tail of `segmentChars` becomes a segment. All fields are there, so that all parts are alike to V8. */
export function partOfLog(live: LiveLog, segmentChars: number): Part {
	const { creation, pendingCount: ownCount, pending: ownText } = live;
	const joint = creation ? undefined : live.joint;
	const sealing = creation || joint ? undefined : live.seal;
	const batch = live.take((sealing ?? joint)?.records ?? NO_RECORDS);
	const isFull = live.tail.size + live.inFlightChars >= segmentChars;
	const cut = sealing || isFull || live.cutSoon ? live.tail.bytesWith(batch) : undefined;
	live.cutSoon = false;
	const create = creation ? live.spec : undefined;
	return {
		writes: (creation ?? sealing ?? joint)?.writes ?? NO_WRITES,
		log: { id: live.id, create, batch, cut, seal: sealing !== undefined },
		live,
		request: undefined,
		creation,
		joint,
		sealing,
		ownCount,
		ownText,
	};
}

/** Characters of its own records, a line feed included. */
export const ownCharsOf = ({ ownCount, ownText }: Part): number => (ownCount > 0 ? ownText.length + 1 : 0);

/** For how long whoever waits for it waits for a failing store. */
export const patienceMsOf = ({ creation, sealing, request }: Part): number =>
	(creation ?? sealing ?? request)?.patienceMs ?? Infinity;

/** Those that go on waiting for a store that has failed for so long; the others are told why they do not. */
export const patientOf = (requests: readonly WriteRequest[], failingMs: number, cause: unknown): WriteRequest[] =>
	requests.filter((request) => {
		if (failingMs < request.patienceMs) return true;
		request.reject(unwritten("a change", cause));
		return false;
	});

/** The records that were appended wait again; what was to go with them does not. */
export function withdraw({ ownText, ownCount, sealing, joint }: Part, log: LiveLog, why: Error): void {
	log.putBack(ownText, ownCount);
	if (sealing) log.seal = undefined;
	else if (joint) log.disjoin(joint);
	(sealing ?? joint)?.reject(why);
}
