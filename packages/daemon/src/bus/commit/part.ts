/** The units of a commit: how they are made of what waits, and what becomes of them when they are given up. */

import type { Write } from "../../std/write.ts";
import type { CommitPart, LiveLog, Seal, WriteRequest } from "../logs/live-log.ts";
import type { Commit, Committed, LogWrite } from "../storage.ts";
import { unwritten } from "./outcome.ts";

/** A commit that is made, or to be tried again. */
export interface Flight {
	commit: Commit;
	parts: CommitPart[];
}

const NO_WRITES: readonly Write[] = [];
const NO_RECORDS: readonly string[] = [];

export const partOfRequest = (request: WriteRequest): CommitPart =>
	partOf(request.writes, undefined, undefined, request);

const partOf = (
	writes: readonly Write[],
	log: LogWrite | undefined,
	live: LiveLog | undefined,
	request: WriteRequest | undefined,
): CommitPart => ({
	writes,
	log,
	live,
	request,
	creation: undefined,
	joint: undefined,
	sealing: undefined,
	ownCount: 0,
	ownText: "",
});

const emptyWrite = (id: number): LogWrite => ({ id, create: undefined, batch: undefined, cut: undefined, seal: false });

/** Moves what waits of a log into a commit. A tail of `segmentChars` becomes a segment. */
export function partOfLog(live: LiveLog, segmentChars: number): CommitPart {
	live.part ??= partOf(NO_WRITES, emptyWrite(live.id), live, undefined);
	const { part } = live;
	const { creation } = live;
	const joint = creation ? undefined : live.joint;
	const sealing = creation || joint ? undefined : live.seal;
	part.ownCount = live.pendingCount;
	part.ownText = live.pending;
	const batch = live.take((sealing ?? joint)?.records ?? NO_RECORDS);
	const isFull = live.tail.size + live.inFlightChars >= segmentChars;
	const write = part.log!;
	write.create = creation ? live.spec : undefined;
	write.batch = batch;
	write.cut = sealing || isFull || live.cutSoon ? live.tail.bytesWith(batch) : undefined;
	write.seal = sealing !== undefined;
	live.cutSoon = false;
	part.writes = (creation ?? sealing ?? joint)?.writes ?? NO_WRITES;
	part.creation = creation;
	part.joint = joint;
	part.sealing = sealing;
	return part;
}

export const isUnderWay = (seal: Seal, flight: Flight | undefined): boolean =>
	flight?.parts.some(({ sealing }) => sealing === seal) ?? false;

/** Characters of its own records, a line feed included. */
export const ownCharsOf = ({ ownCount, ownText }: CommitPart): number => (ownCount > 0 ? ownText.length + 1 : 0);

/** For how long whoever waits for it waits for a failing store. */
export const patienceMsOf = ({ creation, sealing, request }: CommitPart): number =>
	(creation ?? sealing ?? request)?.patienceMs ?? Infinity;

/** Those that go on waiting for a store that has failed for so long; the others are told why they do not. */
export const patientOf = (requests: readonly WriteRequest[], failingMs: number, cause: unknown): WriteRequest[] =>
	requests.filter((request) => {
		if (failingMs < request.patienceMs) return true;
		request.reject(unwritten("a change", cause));
		return false;
	});

const NO_TOPICS: ReadonlySet<string> = new Set();

/** Whom to call by what has become durable. */
export function topicsOf(parts: readonly CommitPart[], outcomes: Committed["outcomes"]): ReadonlySet<string> {
	let topics: Set<string> | undefined;
	for (let place = 0; place < parts.length; place++) {
		const { writes } = parts[place]!;
		if (writes.length === 0 || isRefused(outcomes, place)) continue;
		for (const { topic } of writes) {
			if (topic === undefined) continue;
			topics ??= new Set();
			topics.add(topic);
		}
	}
	return topics ?? NO_TOPICS;
}

function isRefused(outcomes: Committed["outcomes"], place: number): boolean {
	const outcome = outcomes.size > 0 ? outcomes.get(place) : undefined;
	return outcome !== undefined && "refused" in outcome;
}

/** The records that were appended wait again; what was to go with them does not. */
export function withdraw({ ownText, ownCount, sealing, joint }: CommitPart, log: LiveLog, why: Error): void {
	log.putBack(ownText, ownCount);
	if (sealing) log.seal = undefined;
	else if (joint) log.disjoin(joint);
	(sealing ?? joint)?.reject(why);
}
