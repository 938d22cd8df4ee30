/** The plan of the next commit: the logs and the changes that wait for it, the units that it makes of them, and when it is made. */

import type { Write } from "../../std/write.ts";
import type { CommitPart, LiveLog, WriteRequest } from "../logs/live-log.ts";
import type { Commit, Committed } from "../storage.ts";
import { type CommitLimits, segmentCharsOf, unwritten } from "./outcome.ts";

/** Logs with something to commit, the longest waiting first, each once. A set would make two objects for every token. */
class LogQueue {
	#logs: LiveLog[] = [];

	get size(): number {
		return this.#logs.length;
	}

	add(log: LiveLog): void {
		if (log.queued) return;
		log.queued = true;
		this.#logs.push(log);
	}

	/** Takes one after the other as long as there is room. */
	take(hasRoom: () => boolean, take: (log: LiveLog) => void): void {
		const logs = this.#logs;
		let taken = 0;
		for (; taken < logs.length && hasRoom(); taken++) {
			logs[taken]!.queued = false;
			take(logs[taken]!);
		}
		this.#logs = logs.slice(taken);
	}

	/** Keeps the logs for which this is true. None may be added meanwhile. */
	keep(isKept: (log: LiveLog) => boolean): void {
		this.#logs = this.#logs.filter((log) => {
			log.queued = isKept(log);
			return log.queued;
		});
	}
}

interface PlanParts {
	limits: CommitLimits;
	node(): number;
	liveLogs(): number;
}

export class CommitPlan {
	readonly #parts: PlanParts;
	readonly #logs = new LogQueue();
	#requests: WriteRequest[] = [];
	/** The number of the last commit. */
	#last = 0;

	constructor(parts: PlanParts) {
		this.#parts = parts;
	}

	get logs(): number {
		return this.#logs.size;
	}

	get isEmpty(): boolean {
		return this.#logs.size === 0 && this.#requests.length === 0;
	}

	addLog(log: LiveLog): void {
		this.#logs.add(log);
	}

	addRequest(request: WriteRequest): void {
		this.#requests.push(request);
	}

	/** Takes what waits, up to the size of a commit. */
	take(): Flight {
		const { limits, liveLogs } = this.#parts;
		const parts = this.#requests.map((request) => partOf(undefined, request));
		this.#requests = [];
		let chars = 0;
		const segmentChars = segmentCharsOf(limits, liveLogs());
		const take = (log: LiveLog) => {
			parts.push(partOfLog(log, segmentChars));
			chars += log.inFlightChars;
		};
		this.#logs.take(() => chars <= limits.commitTotalCharsMax, take);
		return this.#flight(parts);
	}

	/** A commit of nothing, which shows whether the store is back. */
	probe(): Flight {
		return this.#flight([]);
	}

	#flight(parts: Flight["parts"]): Flight {
		return { commit: { node: this.#parts.node(), n: ++this.#last, again: false, units: parts }, parts };
	}

	/** Fails the callers that do not wait for a store that has been failing for so long; only its outcome ends a seal that is `underWay`. */
	failImpatient(
		failingMs: number,
		cause: unknown,
		underWay: readonly CommitPart[],
		giveUp: (log: LiveLog) => void,
	): void {
		this.#logs.keep((log) => {
			const { creation, seal } = log;
			if (creation && failingMs >= creation.patienceMs) giveUp(log);
			else if (seal && failingMs >= seal.patienceMs && !underWay.some(({ sealing }) => sealing === seal)) {
				log.seal = undefined;
				seal.reject(unwritten(`log ${log.spec.log}`, cause));
			} else return true;
			return !creation && log.isWaiting;
		});
		this.#requests = this.#requests.filter((request) => {
			if (failingMs < request.patienceMs) return true;
			request.reject(unwritten("a change", cause));
			return false;
		});
	}

	/** Empties the plan. */
	fail(why: unknown, giveUp: (log: LiveLog) => void): void {
		this.#logs.keep((log) => {
			giveUp(log);
			return false;
		});
		for (const request of this.#requests.splice(0)) request.reject(why);
	}
}

const EARLY_COMMITS_PER_TICK_MAX = 16;

/** One commit at the end of a loop tick, and a few before it when very many logs have something new. */
export class CommitTick {
	readonly #commit: () => void;
	#isScheduled = false;
	#isEarly = false;
	#earlyLeft = EARLY_COMMITS_PER_TICK_MAX;

	constructor(commit: () => void) {
		this.#commit = commit;
	}

	atEnd(): void {
		if (this.#isScheduled) return;
		this.#isScheduled = true;
		setImmediate(() => {
			this.#isScheduled = false;
			this.#earlyLeft = EARLY_COMMITS_PER_TICK_MAX;
			this.#commit();
		});
	}

	/** The first of very many logs must not wait for the last. Bounded, so that input and output get their turn. */
	early(): void {
		if (this.#isEarly || this.#earlyLeft === 0) return;
		this.#isEarly = true;
		this.#earlyLeft--;
		process.nextTick(() => {
			this.#isEarly = false;
			this.#commit();
		});
	}
}

/** A commit that is made, or to be tried again. */
export interface Flight {
	commit: Commit;
	parts: CommitPart[];
}

const NO_WRITES: readonly Write[] = [];
const NO_RECORDS: readonly string[] = [];

/** The fields are always the same ones in the same order, so that all parts have one shape in memory. */
const partOf = (live: LiveLog | undefined, request: WriteRequest | undefined): CommitPart => ({
	writes: request?.writes ?? NO_WRITES,
	log: live && { id: live.id, create: undefined, batch: undefined, cut: undefined, seal: false },
	live,
	request,
	creation: undefined,
	joint: undefined,
	sealing: undefined,
	ownCount: 0,
	ownText: "",
});

/** Moves the waiting records of a log into a commit. A tail of `segmentChars` becomes a segment. */
function partOfLog(live: LiveLog, segmentChars: number): CommitPart {
	live.part ??= partOf(live, undefined);
	const { part, creation } = live;
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
