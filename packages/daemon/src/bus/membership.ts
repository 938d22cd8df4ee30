/** This daemon's part in the store: who it is there, which log ids it may give, what time it is, and whether it still lives. */

import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { sleep } from "@nexus-stream/protocol/retry";
import { isStoreFull } from "../std/store-failure.ts";
import type { Reading } from "../std/write.ts";
import { type CommitLimits, Silent, unwritten } from "./commit/outcome.ts";
import type { ForeignCommits } from "./foreign-commits.ts";
import type { Directory } from "./logs/directory.ts";
import type { Notifications } from "./notifications.ts";
import type { Joined, Storage } from "./storage.ts";

export interface MembershipLimits {
	/** How often this daemon says that it lives, and looks at every topic in case that a notification was lost. */
	watchMs: number;
	/** A daemon that has not said for so long that it lives may be declared dead. */
	leaseMs: number;
	/** Log ids that are reserved at once. */
	idsPerBlock: number;
}

export interface MembershipParts {
	storage: Storage;
	directory: Directory;
	limits: MembershipLimits & Pick<CommitLimits, "commitRetryMs" | "commitRetryMsMax">;
	clock: Clock;
	log: Log;
	readonly foreign: ForeignCommits;
	readonly notifications: Notifications;
	/** Others have declared this daemon dead: whatever it commits is refused, and the refusal fences. */
	dead(): void;
}

export class Membership {
	readonly #parts: MembershipParts;
	/** Which start of which daemon this is. */
	node = 0;
	/** Resolves once this daemon takes part; undefined when it does already. */
	#joining: Promise<void> | undefined;
	#nextId = 0;
	#endId = 0;
	#reserving: Promise<void> | undefined;
	/** The store's clock minus ours. */
	#aheadMs = 0;
	#cancelPoll: (() => void) | undefined;
	#isShared = false;
	#isFollowing = false;
	readonly #fencing = new AbortController();
	#closed = false;

	/** How many calls the disk refuses at the moment, and when it last refused one for too long. */
	#waiting = 0;
	#gaveUpAt = -Infinity;
	readonly #steady: () => number;

	constructor(parts: MembershipParts) {
		this.#parts = parts;
		this.#steady = elapsing(parts.clock);
	}

	/** Joins the store: alone, or with other daemons. */
	join(name: string, isShared: boolean): void {
		this.#isShared = isShared;
		this.#joined(this.whenRoom("the start", () => this.#parts.storage.join(name, !isShared)));
	}

	/** Joining and taking over wait for room on a full disk, as every commit does. */
	whenRoom<T>(what: string, ask: () => Reading<T>): Reading<T> {
		try {
			const answer = ask();
			if (!(answer instanceof Promise)) return answer;
			return answer.catch((cause: unknown) => this.#afterRefusal(what, ask, cause));
		} catch (cause) {
			return this.#afterRefusal(what, ask, cause);
		}
	}

	#afterRefusal<T>(what: string, ask: () => Reading<T>, cause: unknown): Promise<T> {
		if (!isStoreFull(cause)) throw cause;
		const { limits, log } = this.#parts;
		// A start asks for many things in turn: together they wait no longer than one of them.
		if (this.#steady() - this.#gaveUpAt < limits.commitRetryMsMax) throw unwritten(what, cause);
		log.error({ err: cause, waitMsMax: limits.commitRetryMsMax }, "the disk is full or failing; trying again");
		this.#waiting++;
		return this.#askAgain(what, ask).finally(() => this.#waiting--);
	}

	async #askAgain<T>(what: string, ask: () => Reading<T>): Promise<T> {
		const { clock, limits } = this.#parts;
		for (let waitedMs = 0; ; ) {
			await sleep(clock, limits.commitRetryMs, undefined, "due");
			waitedMs += limits.commitRetryMs;
			try {
				return await ask();
			} catch (cause) {
				const isOver = waitedMs >= limits.commitRetryMsMax || this.#closed;
				if (isOver) this.#gaveUpAt = this.#steady();
				if (isOver || !isStoreFull(cause)) throw unwritten(what, cause);
			}
		}
	}

	/** False while something waits for room. */
	get healthy(): boolean {
		return this.#waiting === 0;
	}

	#joined(answer: Reading<Joined>): void {
		if (answer instanceof Promise) {
			this.#joining = answer.then((joined) => {
				this.#joining = undefined;
				this.#joined(joined);
			});
			// The callers of the Bus get the failure.
			this.#joining.catch(() => {});
			return;
		}
		this.node = answer.node;
		this.setTime(answer.now);
		if (this.#isShared) this.#followOthers();
	}

	get isJoining(): boolean {
		return this.#joining !== undefined;
	}

	/** At once when there is nothing to wait for. Before it, earlier starts do not count as dead. */
	async joined(patienceMs = Infinity): Promise<void> {
		if (this.#joining) await this.#inTime(this.#joining, patienceMs);
	}

	/** Whether `nextId` may be called. */
	get hasIds(): boolean {
		return this.#nextId < this.#endId && !this.#joining;
	}

	/** Gets more ids for a log; others may have taken them all by the time that this resolves. A store that refuses is waited for, as with a commit. */
	async moreIds(log: string, patienceMs: number): Promise<void> {
		const { clock, limits } = this.#parts;
		const { commitRetryMs, commitRetryMsMax } = limits;
		for (let waitedMs = 0; ; waitedMs += commitRetryMs) {
			try {
				return await this.#inTime(this.#askForIds(), patienceMs - waitedMs);
			} catch (cause) {
				const isOver = waitedMs >= Math.min(patienceMs, commitRetryMsMax);
				if (cause instanceof Silent || this.#closed || isOver) throw unwritten(`log ${log}`, cause);
				await sleep(clock, commitRetryMs, undefined, "due");
			}
		}
	}

	/** Reports a store that does not answer in time, but not before it could have answered. */
	async #inTime(answer: Promise<void>, patienceMs: number): Promise<void> {
		if (patienceMs === Infinity) return answer;
		const { clock, limits } = this.#parts;
		const over = Promise.withResolvers<void>();
		const cancel = clock.after(Math.max(patienceMs, limits.commitRetryMs), () => over.reject(new Silent()));
		await Promise.race([answer, over.promise]).finally(cancel);
	}

	async #askForIds(): Promise<void> {
		await this.#joining;
		if (this.hasIds) return;
		this.#reserving ??= this.#reserve().finally(() => {
			this.#reserving = undefined;
		});
		await this.#reserving;
	}

	async #reserve(): Promise<void> {
		const { storage, limits } = this.#parts;
		this.#nextId = await storage.reserve(limits.idsPerBlock);
		this.#endId = this.#nextId + limits.idsPerBlock;
	}

	nextId(): number {
		return this.#nextId++;
	}

	setTime(now: number): void {
		this.#aheadMs = now - this.#parts.clock.now();
	}

	now(): number {
		return this.#parts.clock.now() + this.#aheadMs;
	}

	/** Follows what others write. Says now and then that this one lives, or it is taken for dead. */
	#followOthers(): void {
		if (this.#isFollowing) return;
		this.#isFollowing = true;
		this.#parts.foreign.start(this.node);
		this.#poll();
	}

	get fenced(): AbortSignal {
		return this.#fencing.signal;
	}

	/** Nothing is this daemon's any more: from now on it follows what others write. */
	fence(cause: unknown): void {
		const { directory } = this.#parts;
		this.#fencing.abort(cause);
		for (const log of [...directory.live()]) directory.disown(log);
		this.#followOthers();
	}

	#poll(): void {
		const { clock, directory, limits, notifications } = this.#parts;
		if (this.#closed) return;
		this.#cancelPoll = clock.after(limits.watchMs, () => {
			directory.forgetUnread();
			notifications.wake("all");
			this.#try("this daemon could not renew its membership in the store", () => this.#renew());
			this.#poll();
		});
	}

	/** Asks the store without waiting: a failure is a warning in the log. */
	#try(warning: string, ask: () => Reading<void>): void {
		(async () => ask())().catch((cause: unknown) => this.#parts.log.warn({ err: cause }, warning));
	}

	/** Others go on with what a dead daemon works on: one that has nothing to write has to hear of it, too. */
	async #renew(): Promise<void> {
		const { storage, limits, dead } = this.#parts;
		if (!(await storage.renew(this.node, limits.leaseMs))) dead();
	}

	/** Leaves, so that others need not wait until this daemon has been silent for long. Closing the store awaits the answer. */
	leave(): void {
		const { node } = this;
		if (!this.#isShared || node === 0) return;
		this.#try("this daemon could not leave the store in order", () => this.#parts.storage.leave(node));
	}

	close(): void {
		this.#closed = true;
		this.#cancelPoll?.();
	}
}
