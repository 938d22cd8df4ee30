/** The group commit: what all logs appended in one loop tick becomes durable together, and only then visible (I1). One at a time. */

import { NexusError, type Refused } from "@nexus-stream/protocol";
import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { sqliteFailure } from "../../std/sqlite.ts";
import type { Write } from "../../std/write.ts";
import type { CommitPart, LiveLog, WriteRequest } from "../logs/live-log.ts";
import { type Committed, OutcomeUnknown, type Storage, segmentBytesOf } from "../storage.ts";
import {
	type CommitLimits,
	type CommitListener,
	type CommitterParts,
	Silent,
	segmentCharsOf,
	unwritten,
} from "./outcome.ts";
import type { Flight } from "./part.ts";
import { isUnderWay, ownCharsOf, partOfLog, partOfRequest, patienceMsOf, patientOf, withdraw } from "./part.ts";
import { CommitQueue } from "./queue.ts";
import { Tidier } from "./tidier.ts";

const EARLY_COMMITS_PER_TICK_MAX = 16;

export class Committer {
	readonly #storage: Storage;
	readonly #limits: CommitLimits;
	readonly #outcome: CommitListener;
	readonly #clock: Clock;
	/** How long commits have been failing does not depend on what the clock is set to meanwhile. */
	readonly #steady: () => number;
	readonly #log: Log;
	readonly #node: () => number;
	readonly #tidier: Tidier;
	readonly #dirty = new CommitQueue();
	#requests: WriteRequest[] = [];
	/** The commit under way: made, or to be tried again. */
	#flight: Flight | undefined;
	/** The store has been asked, and has not answered yet. */
	#lookup: Promise<void> | undefined;
	#lookupAt = 0;
	#cancelLook: (() => void) | undefined;
	/** Nobody can tell whether the flight was applied: it may not be given up. */
	#unknown = false;
	#fenced: Refused | undefined;
	#last = 0;
	#scheduled = false;
	#early = false;
	#earlyLeft = EARLY_COMMITS_PER_TICK_MAX;
	#failingSince: number | undefined;
	/** Why it fails: the disk. */
	#isFull = false;
	#cancelRetry: (() => void) | undefined;
	#stopped = false;
	commits = 0;
	/** Characters of all logs that were appended and are not durable yet, a line feed for each record included. */
	waitingChars = 0;

	constructor({ storage, limits, outcome, clock, log, node }: CommitterParts) {
		this.#storage = storage;
		this.#limits = limits;
		this.#outcome = outcome;
		this.#clock = clock;
		this.#steady = elapsing(clock);
		this.#log = log;
		this.#node = node;
		const onLagging = (ids: ReadonlySet<number>) => this.#cutAll(ids);
		this.#tidier = new Tidier({ storage, node, tidyMs: limits.tidyMs, clock, log, onLagging });
	}

	get healthy(): boolean {
		const isSilent = this.#lookup && this.#steady() - this.#lookupAt > this.#limits.silentMsMax;
		return this.#failingSince === undefined && !this.#fenced && !isSilent;
	}

	/** Why nothing can be written any more. */
	get fenced(): Refused | undefined {
		return this.#fenced;
	}

	/** The log has something to commit: it goes with all others of this loop tick. */
	touch(log: LiveLog): void {
		this.#dirty.add(log);
		this.#schedule();
		if (this.#dirty.size >= this.#limits.commitLogsMax) this.#commitEarly();
	}

	/** Changes that need no record: one unit of the next commit. */
	write(writes: readonly Write[], patienceMs: number): Promise<void> {
		return new Promise((resolve, reject) => {
			this.#requests.push({ writes, patienceMs, resolve, reject });
			this.#schedule();
		});
	}

	#schedule(): void {
		if (this.#scheduled || this.#flight) return;
		this.#scheduled = true;
		setImmediate(() => {
			this.#scheduled = false;
			this.#earlyLeft = EARLY_COMMITS_PER_TICK_MAX;
			this.commit();
		});
	}

	/** In a tick with very many logs the first must not wait for the last. Bounded, so that input and output get their turn. */
	#commitEarly(): void {
		if (this.#early || this.#earlyLeft === 0 || this.#flight) return;
		this.#early = true;
		this.#earlyLeft--;
		process.nextTick(() => {
			this.#early = false;
			this.commit();
		});
	}

	/** Commits what waits, unless a commit is under way: then it goes with the next one. */
	commit(): void {
		if (this.#canSend()) this.#send(this.#plan());
	}

	#canSend(): boolean {
		return !this.#flight && !this.#fenced && this.#hasWaiting();
	}

	/** Commits all that waits, in the tick of the call if the store answers at once; what it refused before is tried again. */
	flush(): void {
		if (this.#lookup) return;
		if (this.#flight) this.#tryAgain();
		while (this.#canSend()) this.#send(this.#plan());
	}

	#plan(): Flight {
		const parts = this.#requests.map(partOfRequest);
		this.#requests = [];
		let chars = 0;
		const segmentChars = segmentCharsOf(this.#limits, this.#outcome.liveLogs);
		const take = (log: LiveLog) => {
			parts.push(partOfLog(log, segmentChars));
			chars += log.inFlightChars;
		};
		this.#dirty.take(() => chars <= this.#limits.commitTotalCharsMax, take);
		return { commit: { node: this.#node(), n: ++this.#last, again: false, units: parts }, parts };
	}

	/** An embedded store answers at once, and all of it happens in this tick. */
	#send(flight: Flight): void {
		this.#flight = flight;
		let answer: Committed | Promise<Committed>;
		try {
			answer = this.#storage.commit(flight.commit);
		} catch (cause) {
			this.#failed(cause);
			return;
		}
		if (!(answer instanceof Promise)) {
			this.#landed(flight, answer);
			return;
		}
		const lookup = answer.then(
			(committed) => {
				this.#lookup = undefined;
				this.#landed(flight, committed);
			},
			(cause: unknown) => {
				this.#lookup = undefined;
				this.#failed(cause);
			},
		);
		this.#lookup = lookup;
		this.#lookupAt = this.#steady();
		this.#lookLater();
	}

	/** While the store is silent, too, those who would rather be told soon are told: as long as they wait behind the commit. */
	#lookLater(): void {
		this.#cancelLook ??= this.#clock.after(this.#limits.commitRetryMs, () => {
			this.#cancelLook = undefined;
			if (!this.#lookup) return;
			this.#giveUpImpatient(this.#steady() - (this.#failingSince ?? this.#lookupAt), new Silent());
			this.#lookLater();
		});
	}

	#landed({ parts }: Flight, { now, outcomes }: Committed): void {
		this.#flight = undefined;
		this.#unknown = false;
		this.#recovered();
		this.#outcome.time(now);
		this.commits++;
		for (let place = 0; place < parts.length; place++) {
			const part = parts[place]!;
			const outcome = outcomes.size > 0 ? outcomes.get(place) : undefined;
			if (outcome && "refused" in outcome) this.#refuse(part, outcome.refused);
			else if (part.live) this.#settle(part, part.live, now, outcome?.base);
			else part.request!.resolve();
		}
		for (const { live, log, creation } of parts) {
			if (!live) continue;
			this.#outcome.visible(live, log!.batch?.count ?? 0, creation !== undefined);
			live.woken();
			log!.cut = undefined;
		}
		this.#outcome.landed(parts, outcomes);
		this.#tidier.schedule();
		if (this.#hasWaiting()) this.#schedule();
	}

	/** Brings a log into the state that is now durable, and tells those who wait for it. */
	#settle(part: CommitPart, log: LiveLog, now: number, base: number | undefined): void {
		const { creation, joint, sealing } = part;
		const { batch, cut } = part.log!;
		if (creation) {
			log.base = base ?? 0;
			log.createdAt = now;
			log.creation = undefined;
		}
		this.waitingChars -= ownCharsOf(part);
		log.landed();
		log.publish(batch, cut);
		if (cut) this.#outcome.cut(log, segmentBytesOf(cut));
		log.settleWaiting();
		creation?.resolve();
		if (sealing) {
			log.sealedAt = now;
			this.#outcome.gone(log);
			sealing.resolve();
			return;
		}
		if (joint) {
			log.disjoin();
			joint.resolve();
		}
		if (log.isWaiting) this.#dirty.add(log);
	}

	/** Nothing of the part was written. */
	#refuse(part: CommitPart, refused: Refused): void {
		const { live: log, request, creation } = part;
		if (part.log) part.log.batch = undefined;
		if (refused.refusal === "fenced" && !this.#fenced) this.#fence(refused);
		if (!log) {
			request!.reject(refused);
			return;
		}
		if (creation || this.#fenced) {
			if (creation) this.#outcome.gone(log);
			log.giveUp(refused, refused);
			this.#countWaiting();
			return;
		}
		this.#withdraw(part, log, refused);
	}

	#withdraw(part: CommitPart, log: LiveLog, why: Error): void {
		withdraw(part, log, why);
		if (log.isWaiting) this.#dirty.add(log);
	}

	/** Another daemon has declared this one dead: it drops everything without a terminal, and serves readers only. */
	#fence(refused: Refused): void {
		this.#fenced = refused;
		this.#log.error({}, "another daemon has taken over; this one may write nothing any more");
		for (const log of [...this.#outcome.live()]) log.giveUp(refused, refused);
		this.#dirty.keep(() => false);
		for (const request of this.#requests.splice(0)) request.reject(refused);
		this.#outcome.fenced();
	}

	/** A full disk must not lose what was said: everything waits and is tried again, until the limit. */
	#failed(cause: unknown): void {
		const now = this.#steady();
		if (this.healthy) this.#log.error({ err: cause }, "the store refuses commits; trying again");
		this.#failingSince ??= now;
		this.#isFull = sqliteFailure(cause)?.kind === "full";
		this.#unknown ||= cause instanceof OutcomeUnknown;
		this.#giveUpImpatient(now - this.#failingSince, cause);
		if (this.#tryLater() || this.#unknown) return;
		this.#log.error({ err: cause, logs: this.#dirty.size }, "the store still refuses commits; giving up what waits");
		this.#giveUpAll(cause);
	}

	/** Some would rather be told soon than wait. What may have been applied, or may still be, is kept until that is known. */
	#giveUpImpatient(failingMs: number, cause: unknown): void {
		const flight = this.#flight;
		if (flight && !this.#unknown && !this.#lookup) {
			const parts = flight.parts.filter((part) => {
				if (failingMs < patienceMsOf(part)) return true;
				if (part.sealing) this.#withdraw(part, part.live!, unwritten(`log ${part.live!.spec.log}`, cause));
				else this.#giveUpPart(part, cause);
				return false;
			});
			this.#flight = parts.length > 0 ? { commit: { ...flight.commit, units: parts }, parts } : undefined;
		}
		this.#dirty.keep((log) => {
			const { creation, seal } = log;
			if (creation && failingMs >= creation.patienceMs) this.#giveUp(log, cause);
			else if (seal && failingMs >= seal.patienceMs && !isUnderWay(seal, this.#flight)) {
				log.seal = undefined;
				seal.reject(unwritten(`log ${log.spec.log}`, cause));
			} else return true;
			return !creation && log.isWaiting;
		});
		this.#requests = patientOf(this.#requests, failingMs, cause);
		this.#countWaiting();
	}

	#giveUpAll(cause: unknown): void {
		const parts = this.#flight?.parts ?? [];
		this.#flight = undefined;
		for (const part of parts) this.#giveUpPart(part, cause);
		this.#dirty.keep((log) => {
			this.#giveUp(log, cause);
			return false;
		});
		for (const request of this.#requests.splice(0)) request.reject(unwritten("a change", cause));
		this.#countWaiting();
	}

	#recovered(): void {
		if (this.#failingSince === undefined) return;
		this.#log.info({}, "the store takes commits again");
		this.#failingSince = undefined;
	}

	/** Until the limit. A store that has just refused is not healthy, although nobody may be waiting for it any more. */
	#tryLater(): boolean {
		const { commitRetryMs, commitRetryMsMax } = this.#limits;
		if (this.#failingSince === undefined) return false;
		const isOver = this.#steady() - this.#failingSince >= commitRetryMsMax || this.#stopped;
		if (!isOver || this.#unknown) {
			this.#cancelRetry?.();
			this.#cancelRetry = this.#clock.after(commitRetryMs, () => this.#tryAgain(), "due");
			return true;
		}
		this.#failingSince = undefined;
		return false;
	}

	#tryAgain(): void {
		this.#cancelRetry?.();
		this.#cancelRetry = undefined;
		if (this.#lookup) return;
		const flight = this.#flight;
		if (flight) this.#send({ commit: { ...flight.commit, again: this.#unknown }, parts: flight.parts });
		else if (this.#hasWaiting()) this.#send(this.#plan());
		// Nobody waits: an empty commit tells whether the store is back. A full disk takes those, so it is not asked.
		else if (!this.#isFull)
			this.#send({ commit: { node: this.#node(), n: ++this.#last, again: false, units: [] }, parts: [] });
		else this.#tryLater();
	}

	#giveUpPart({ live, request }: CommitPart, cause: unknown): void {
		if (live) this.#giveUp(live, cause);
		else request!.reject(unwritten("a change", cause));
	}

	/** The log stays as it is in the store; whoever reopens it, now or after the next start, ends it truthfully. */
	#giveUp(log: LiveLog, cause: unknown): void {
		if (log.creation) this.#outcome.gone(log);
		log.giveUp(cause, unwritten(`log ${log.spec.log}`, cause));
	}

	#countWaiting(): void {
		this.waitingChars = 0;
		for (const log of this.#outcome.live()) this.waitingChars += log.appendedChars;
		for (const part of this.#flight?.parts ?? []) this.waitingChars += ownCharsOf(part);
	}

	#cutAll(ids: ReadonlySet<number>): void {
		for (const log of this.#outcome.live()) {
			if (!ids.has(log.id) || log.tail.size === 0) continue;
			log.cutSoon = true;
			this.touch(log);
		}
	}

	/** Awaits the commit under way, makes one last one within the deadline, and gives up the rest. */
	async stop(deadlineMs: number): Promise<void> {
		this.#tidier.stop();
		let isOver = false;
		const over = Promise.withResolvers<void>();
		const cancel = this.#clock.after(deadlineMs, () => {
			isOver = true;
			over.resolve();
		});
		if (this.#lookup) await Promise.race([this.#lookup, over.promise]);
		this.#stopped = true;
		this.flush();
		// Whether it was applied has to be known, as long as there is time to ask.
		while (!isOver && (this.#lookup || this.#unknown)) {
			const next =
				this.#lookup ?? new Promise<void>((resolve) => this.#clock.after(this.#limits.commitRetryMs, resolve));
			await Promise.race([next, over.promise]);
			this.flush();
		}
		cancel();
		this.#cancelRetry?.();
		this.#cancelLook?.();
		if (this.#flight || this.#hasWaiting()) this.#giveUpAll(new NexusError("unavailable", "the daemon is stopping"));
	}

	#hasWaiting(): boolean {
		return this.#dirty.size > 0 || this.#requests.length > 0;
	}
}
