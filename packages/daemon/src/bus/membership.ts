/** This daemon's part in the store: who it is there, which log ids it may give, what time it is, and whether it still lives. */

import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { sleep } from "@nexus-stream/protocol/retry";
import { isStoreFull } from "../std/store-failure.ts";
import { type Reading, whenRead } from "../std/write.ts";
import { type CommitLimits, Silent, unwritten } from "./commit/outcome.ts";
import type { ForeignCommits } from "./foreign-commits.ts";
import { NodeLease } from "./lease.ts";
import type { Directory } from "./logs/directory.ts";
import type { Notifications } from "./notifications.ts";
import type { Joined, Storage } from "./storage.ts";

export interface MembershipLimits {
	/** How often this daemon looks at every topic, in case that a notification was lost. */
	watchMs: number;
	/** A daemon that has not renewed its membership for so long may be declared dead. It renews five times as often. */
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
	/** Other daemons use the store, too. */
	readonly isShared: boolean;
	/** Others have declared this daemon dead: whatever it commits is refused, and the refusal fences. */
	dead(): void;
}

/** The topic of nodes that have left or were declared dead: what they owned is to be taken over. */
export const NODES_TOPIC = "nodes";

/** The share of the lease after which a renewal is sent: several may be lost before the lease lapses. */
const RENEWAL_SHARE = 0.2;

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
	#isFollowing = false;
	readonly #fencing = new AbortController();
	readonly lease: NodeLease;
	readonly #renewal: { readonly everyMs: number; sentAt: number };
	#wokenAt: number;
	#closed = false;

	/** How many calls the disk refuses at the moment, and when it last refused one for too long. */
	#waiting = 0;
	#gaveUpAt = -Infinity;
	readonly #steady: () => number;

	constructor(parts: MembershipParts) {
		this.#parts = parts;
		this.#steady = elapsing(parts.clock);
		const { limits, clock, isShared } = parts;
		this.lease = new NodeLease({ leaseMs: limits.leaseMs, clock, now: this.#steady, isShared, fenced: this.fenced });
		this.#renewal = { everyMs: limits.leaseMs * RENEWAL_SHARE, sentAt: this.#steady() };
		this.#wokenAt = this.#steady();
	}

	/** Joins the store: alone, or with other daemons. */
	join(name: string): void {
		const { storage, isShared } = this.#parts;
		const ask = () => {
			this.#renewal.sentAt = this.#steady();
			return storage.join(name, !isShared);
		};
		this.#joined(this.whenRoom("the start", ask));
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
		this.lease.renewed(this.#renewal.sentAt);
		if (this.#parts.isShared) this.#followOthers();
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
		this.#cancelPoll = clock.after(Math.min(limits.watchMs, this.#renewal.everyMs), () => {
			const now = this.#steady();
			if (now - this.#renewal.sentAt >= this.#renewal.everyMs)
				this.#try("this daemon could not renew its membership in the store", () => this.#renew());
			if (now - this.#wokenAt >= limits.watchMs) {
				this.#wokenAt = now;
				directory.forgetUnread();
				notifications.wake("all");
			}
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
		const sentAt = this.#steady();
		this.#renewal.sentAt = sentAt;
		if (await storage.renew(this.node, limits.leaseMs)) this.lease.renewed(sentAt);
		else dead();
	}

	/** Leaves, so that others need not wait until this daemon has been silent for long. Closing the store awaits the answer. */
	leave(): void {
		const { node } = this;
		const { storage, isShared, notifications } = this.#parts;
		if (!isShared || node === 0) return;
		const notify = () => notifications.changed(new Set([NODES_TOPIC]));
		this.#try("this daemon could not leave the store in order", () => whenRead(storage.leave(node), notify));
	}

	close(): void {
		this.#closed = true;
		this.#cancelPoll?.();
		this.lease.close();
	}
}
