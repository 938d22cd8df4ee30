/** The units of a commit: how they are made of what waits, and how one is withdrawn. */

import type { Write } from "../../std/write.ts";
import type { CommitPart, LiveLog, Seal, WriteRequest } from "../logs/live-log.ts";
import type { Commit, Committed, LogWrite } from "../storage.ts";

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

/** Moves the waiting records of a log into a commit. A tail of `segmentChars` becomes a segment. */
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

/** Characters of the records that were appended without writes, a line feed included. */
export const ownCharsOf = ({ ownCount, ownText }: CommitPart): number => (ownCount > 0 ? ownText.length + 1 : 0);

/** How long its caller waits for a failing store. */
export const patienceMsOf = ({ creation, sealing, request }: CommitPart): number =>
	(creation ?? sealing ?? request)?.patienceMs ?? Infinity;

const NO_TOPICS: ReadonlySet<string> = new Set();

/** The topics of the writes that have become durable. */
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

/** Its own records wait for the next commit; the seal or the writes that were to go with them fail. */
export function withdraw({ ownText, ownCount, sealing, joint }: CommitPart, log: LiveLog, why: Error): void {
	log.putBack(ownText, ownCount);
	if (sealing) log.seal = undefined;
	else if (joint) log.disjoin(joint);
	(sealing ?? joint)?.reject(why);
}

/** Brings the log into the state that is now durable, and resolves its waiting callers. */
export function settle(
	{ creation, joint, sealing, log: write }: CommitPart,
	log: LiveLog,
	now: number,
	base = 0,
): void {
	if (creation) {
		log.base = base;
		log.createdAt = now;
		log.creation = undefined;
	}
	log.landed();
	log.publish(write!.batch, write!.cut);
	if (sealing) log.sealedAt = now;
	log.settleWaiting();
	creation?.resolve();
	if (joint && !sealing) {
		log.disjoin();
		joint.resolve();
	}
	sealing?.resolve();
}
