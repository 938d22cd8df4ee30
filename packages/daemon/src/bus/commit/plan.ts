/** The plan of the next commit: the logs and the changes that wait for it, and when it is made. */

import type { LiveLog, Seal, WriteRequest } from "../logs/live-log.ts";
import { type CommitLimits, segmentCharsOf, unwritten } from "./outcome.ts";
import { type Flight, partOfLog, partOfRequest } from "./part.ts";

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

export interface PlanParts {
	limits: CommitLimits;
	node(): number;
	liveLogs(): number;
}

/** Ends a log whose writer has run out of patience. */
export interface GivingUp {
	giveUp(log: LiveLog): void;
	/** The seal is in the commit under way: only the outcome of that can end it. */
	isUnderWay(seal: Seal): boolean;
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
		const parts = this.#requests.map(partOfRequest);
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

	/** Fails the callers that do not wait for a store that has been failing for so long. */
	failImpatient(failingMs: number, cause: unknown, { giveUp, isUnderWay }: GivingUp): void {
		this.#logs.keep((log) => {
			const { creation, seal } = log;
			if (creation && failingMs >= creation.patienceMs) giveUp(log);
			else if (seal && failingMs >= seal.patienceMs && !isUnderWay(seal)) {
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
