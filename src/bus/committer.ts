/** The group commit: what all logs appended in one loop tick becomes durable together, and only then visible (I1). */

import { NexusError, wordsOf } from "../protocol/protocol.ts";
import { type Clock, elapsing } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import { sqliteFailure } from "../std/sqlite.ts";
import type { Write } from "../std/write.ts";
import type { LiveLog } from "./live-log.ts";
import type { Attempt, LogWrite, Storage } from "./storage.ts";

const EARLY_COMMITS_PER_TICK_MAX = 16;

export interface CommitLimits {
	/** So many logs with something new are committed at once, before the tick has ended. */
	commitLogsMax: number;
	/** A log's tail becomes a segment at this size. */
	segmentCharsMax: number;
	/** How long a failing commit is tried again before what waits is given up, and how often. */
	commitRetryMsMax: number;
	commitRetryMs: number;
	/** How often old journal space is freed. */
	tidyMs: number;
}

/** What the Bus does with the outcome. */
export interface Outcome {
	/** A creation was refused, or the log was sealed: it is not live any more. */
	gone(log: LiveLog): void;
	/** The log has so many bytes more in segments. */
	cut(log: LiveLog, bytes: number): void;
	/** After all logs of the commit are in their new state. */
	visible(log: LiveLog, records: number): void;
	live(): Iterable<LiveLog>;
}

/** What whoever waits is told when the store does not take it. */
export function unwritten(log: string, cause: unknown): NexusError {
	const isFull = sqliteFailure(cause)?.kind === "full";
	const why = isFull ? "the disk is full or failing. Free some space, then try again" : wordsOf(cause);
	return new NexusError("unavailable", `log ${log} could not be written: ${why}`, { cause });
}

/** What a commit will do to one log, decided while it is being made. */
interface Plan {
	log: LiveLog;
	write: LogWrite;
	refused?: { cause: unknown };
}

interface Unit {
	writes: readonly Write[];
	refused: { cause: unknown } | undefined;
	resolve(): void;
	reject(cause: unknown): void;
}

export class Committer {
	readonly #storage: Storage;
	readonly #limits: CommitLimits;
	readonly #outcome: Outcome;
	readonly #clock: Clock;
	/** How long commits have been failing does not depend on what the clock is set to meanwhile. */
	readonly #steady: () => number;
	readonly #log: Log;
	/** Logs with something to commit. */
	readonly #dirty = new Set<LiveLog>();
	readonly #units: Unit[] = [];
	#scheduled = false;
	#early = false;
	#earlyLeft = EARLY_COMMITS_PER_TICK_MAX;
	#failingSince: number | undefined;
	/** Why it fails: the disk. */
	#isFull = false;
	#cancelRetry: (() => void) | undefined;
	#cancelTidy: (() => void) | undefined;
	#stopped = false;
	commits = 0;

	constructor(storage: Storage, limits: CommitLimits, outcome: Outcome, clock: Clock, log: Log) {
		this.#storage = storage;
		this.#limits = limits;
		this.#outcome = outcome;
		this.#clock = clock;
		this.#steady = elapsing(clock);
		this.#log = log;
	}

	get healthy(): boolean {
		return this.#failingSince === undefined;
	}

	/** The log has something to commit: it goes with all others of this loop tick. */
	touch(log: LiveLog): void {
		this.#dirty.add(log);
		this.#schedule();
		if (this.#failingSince === undefined && this.#dirty.size >= this.#limits.commitLogsMax) this.#commitEarly();
	}

	#schedule(): void {
		if (this.#failingSince !== undefined || this.#scheduled) return;
		this.#scheduled = true;
		setImmediate(() => {
			this.#scheduled = false;
			this.#earlyLeft = EARLY_COMMITS_PER_TICK_MAX;
			this.commit();
		});
	}

	/** In a tick with very many logs the first must not wait for the last. Bounded, so that input and output get their turn. */
	#commitEarly(): void {
		if (this.#early || this.#earlyLeft === 0) return;
		this.#early = true;
		this.#earlyLeft--;
		process.nextTick(() => {
			this.#early = false;
			this.commit();
		});
	}

	commit(): void {
		if (this.#dirty.size === 0 && this.#units.length === 0) {
			if (!this.healthy) this.#probe();
			return;
		}
		let plans: Plan[] = [];
		try {
			this.#storage.commit((attempt) => {
				plans = [];
				const writes: LogWrite[] = [];
				for (const unit of this.#units) unit.refused = attempt(unit.writes);
				for (const log of this.#dirty) {
					const plan = this.#plan(log, attempt);
					plans.push(plan);
					if (!(plan.refused && log.creation)) writes.push(plan.write);
				}
				return writes;
			});
		} catch (cause) {
			this.#failed(cause);
			return;
		}
		this.#recovered();
		this.#dirty.clear();
		this.commits++;
		for (const unit of this.#units.splice(0)) {
			if (unit.refused) unit.reject(unit.refused.cause);
			else unit.resolve();
		}
		for (const plan of plans) this.#settle(plan);
		for (const { log, write } of plans) this.#outcome.visible(log, write.batch?.count ?? 0);
		this.#scheduleTidy();
	}

	/** Decides inside the transaction what is written for a log: participants may still refuse a creation or a seal. */
	#plan(log: LiveLog, attempt: Attempt): Plan {
		const { creation, seal } = log;
		const write: LogWrite = { id: log.id };
		const changes = creation?.writes ?? seal?.writes ?? [];
		const refused = changes.length > 0 ? attempt(changes) : undefined;
		const plan: Plan = refused ? { log, write, refused } : { log, write };
		if (creation) write.create = { spec: log.spec, base: log.base, createdAt: log.createdAt };
		const sealed = seal !== undefined && !creation && !refused;
		if (sealed) write.sealedAt = this.#clock.now();
		write.batch = log.waiting(sealed ? seal.records : []);
		const full = log.tail.size + log.pending.length >= this.#limits.segmentCharsMax;
		const all = sealed || full || log.cutSoon ? log.tailWith(write.batch) : undefined;
		if (all) write.cut = { batch: all, bytes: Buffer.byteLength(all.text) + 1 };
		return plan;
	}

	/** Brings a log into the state that is now durable, and tells those who wait for it. */
	#settle({ log, write, refused }: Plan): void {
		const { creation, seal } = log;
		if (creation && refused) {
			write.batch = undefined;
			this.#outcome.gone(log);
			creation.reject(refused.cause);
			return;
		}
		log.clearPending();
		log.publish(write.batch, write.cut !== undefined);
		if (write.cut) this.#outcome.cut(log, write.cut.bytes);
		if (log.flushes.length > 0) for (const waiting of log.flushes.splice(0)) waiting.resolve();
		log.creation = undefined;
		creation?.resolve();
		if (write.sealedAt !== undefined) {
			log.sealedAt = write.sealedAt;
			this.#outcome.gone(log);
			seal!.resolve();
		} else if (refused) {
			log.seal = undefined;
			seal!.reject(refused.cause);
		}
	}

	/** A full disk must not lose what was said: everything waits and is tried again, until the limit. */
	#failed(cause: unknown): void {
		const now = this.#steady();
		if (this.healthy) this.#log.error({ err: cause }, "the store refuses commits; trying again");
		this.#failingSince ??= now;
		this.#isFull = sqliteFailure(cause)?.kind === "full";
		for (const log of this.#dirty) {
			if (!log.creation || now - this.#failingSince < log.creation.patienceMs) continue;
			this.#giveUp(log, cause);
			this.#dirty.delete(log);
		}
		if (this.#tryLater()) return;
		this.#log.error({ err: cause, logs: this.#dirty.size }, "the store still refuses commits; giving up what waits");
		for (const log of this.#dirty) this.#giveUp(log, cause);
		for (const unit of this.#units.splice(0)) unit.reject(unwritten("of changes", cause));
		this.#dirty.clear();
	}

	/** Changes of stored things that need no record. */
	write(writes: readonly Write[]): Promise<void> {
		return new Promise((resolve, reject) => {
			this.#units.push({ writes, resolve, reject, refused: undefined });
			this.#schedule();
		});
	}

	#recovered(): void {
		if (!this.healthy) this.#log.info({}, "the store takes commits again");
		this.#failingSince = undefined;
	}

	/** Nobody waits any more: an empty commit tells whether the store is back. A full disk takes those, so it is not asked. */
	#probe(): void {
		if (!this.#isFull) {
			try {
				this.#storage.commit(() => []);
				this.#recovered();
				return;
			} catch {
				// As before: asked again later.
			}
		}
		this.#tryLater();
	}

	/** Until the limit. A store that has just refused is not healthy, although nobody may be waiting for it any more. */
	#tryLater(): boolean {
		const { commitRetryMs, commitRetryMsMax } = this.#limits;
		if (this.#failingSince === undefined) return false;
		if (this.#steady() - this.#failingSince < commitRetryMsMax && !this.#stopped) {
			this.#cancelRetry?.();
			this.#cancelRetry = this.#clock.after(commitRetryMs, () => this.commit(), "due");
			return true;
		}
		this.#failingSince = undefined;
		return false;
	}

	/** The log stays as it is in the store; whoever reopens it, now or after the next start, ends it truthfully. */
	#giveUp(log: LiveLog, cause: unknown): void {
		log.broken = cause ?? new Error("unknown");
		const error = unwritten(log.spec.log, cause);
		log.clearPending();
		for (const waiting of log.flushes.splice(0)) waiting.reject(error);
		log.seal?.reject(error);
		log.seal = undefined;
		if (log.creation) {
			this.#outcome.gone(log);
			log.creation.reject(error);
		}
	}

	#scheduleTidy(): void {
		if (this.#cancelTidy || this.#stopped) return;
		this.#cancelTidy = this.#clock.after(this.#limits.tidyMs, () => {
			this.#cancelTidy = undefined;
			this.#tidy();
		});
	}

	#tidy(): void {
		try {
			const { lagging, more } = this.#storage.tidy();
			if (more) this.#scheduleTidy();
			if (lagging.size === 0) return;
			for (const log of this.#outcome.live()) {
				if (!lagging.has(log.id)) continue;
				log.cutSoon = true;
				this.touch(log);
			}
		} catch (cause) {
			this.#log.warn({ err: cause }, "old journal space could not be freed; trying again later");
		}
	}

	/** Commits what waits; what the store refuses now is given up. */
	stop(): void {
		this.#stopped = true;
		this.commit();
		this.#cancelRetry?.();
		this.#cancelTidy?.();
	}
}
