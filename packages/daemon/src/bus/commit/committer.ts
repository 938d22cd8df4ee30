/** The group commit: what all logs appended in one loop tick becomes durable together, and only then visible (I1). One at a time. */

import { NexusError, type Refused } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { sleep } from "@nexus-stream/protocol/retry";
import type { Write } from "../../std/write.ts";
import type { CommitPart, LiveLog } from "../logs/live-log.ts";
import { type Committed, OutcomeUnknown, type Storage, segmentBytesOf } from "../storage.ts";
import {
	type CommitLimits,
	type CommitListener,
	type CommitterParts,
	Silent,
	StoreOutage,
	unwritten,
} from "./outcome.ts";
import { CommitPlan, CommitTick, type Flight, ownCharsOf, patienceMsOf, settle, withdraw } from "./plan.ts";
import { Tidier } from "./tidier.ts";

export class Committer {
	readonly #storage: Storage;
	readonly #limits: CommitLimits;
	readonly #outcome: CommitListener;
	readonly #clock: Clock;
	readonly #log: Log;
	readonly #tidier: Tidier;
	readonly #plan: CommitPlan;
	readonly #outage: StoreOutage;
	readonly #tick = new CommitTick(() => this.commit());
	/** The commit under way: made, or to be tried again. */
	#flight: Flight | undefined;
	/** The store has the commit and has not answered yet. */
	#answer: Promise<void> | undefined;
	#sentAt = 0;
	#cancelWatch: (() => void) | undefined;
	/** The flight may have been applied, so it may not be given up. */
	#unknown = false;
	#fenced: Refused | undefined;
	#stopped = false;
	commits = 0;
	/** Characters of all logs that were appended and are not durable yet, a line feed for each record included. */
	waitingChars = 0;

	constructor({ storage, limits, outcome, clock, log, node }: CommitterParts) {
		this.#storage = storage;
		this.#limits = limits;
		this.#outcome = outcome;
		this.#clock = clock;
		this.#log = log;
		this.#plan = new CommitPlan({ limits, node, liveLogs: () => outcome.liveLogs });
		this.#outage = new StoreOutage({ limits, clock, log, retry: () => this.#tryAgain() });
		const onLagging = (ids: ReadonlySet<number>) => this.#cutAll(ids);
		this.#tidier = new Tidier({ storage, node, tidyMs: limits.tidyMs, clock, log, onLagging });
	}

	get healthy(): boolean {
		const isSilent = this.#answer && this.#outage.now() - this.#sentAt > this.#limits.silentMsMax;
		return !this.#outage.isOn && !this.#fenced && !isSilent;
	}

	/** Why nothing can be written any more. */
	get fenced(): Refused | undefined {
		return this.#fenced;
	}

	/** The log has something to commit: it goes with all others of this loop tick. */
	touch(log: LiveLog): void {
		this.#plan.addLog(log);
		this.#schedule();
		if (this.#plan.logs >= this.#limits.commitLogsMax && !this.#flight) this.#tick.early();
	}

	/** Changes that need no record: one unit of the next commit. */
	write(writes: readonly Write[], patienceMs: number): Promise<void> {
		return new Promise((resolve, reject) => {
			this.#plan.addRequest({ writes, patienceMs, resolve, reject });
			this.#schedule();
		});
	}

	#schedule(): void {
		if (!this.#flight) this.#tick.atEnd();
	}

	/** Commits what waits, unless a commit is under way: then it goes with the next one. */
	commit(): void {
		if (this.#canSend()) this.#send(this.#plan.take());
	}

	#canSend(): boolean {
		return !this.#flight && !this.#fenced && !this.#plan.isEmpty;
	}

	/** Commits all that waits, in the tick of the call if the store answers at once; a commit that failed before is tried again. */
	flush(): void {
		if (this.#answer) return;
		if (this.#flight) this.#tryAgain();
		while (this.#canSend()) this.#send(this.#plan.take());
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
		this.#answer = answer.then(
			(committed) => {
				this.#answer = undefined;
				this.#landed(flight, committed);
			},
			(cause: unknown) => {
				this.#answer = undefined;
				this.#failed(cause);
			},
		);
		this.#sentAt = this.#outage.now();
		this.#watchSilence();
	}

	/** While the store does not answer, impatient callers behind the commit fail in time, too. */
	#watchSilence(): void {
		this.#cancelWatch ??= this.#clock.after(this.#limits.commitRetryMs, () => {
			this.#cancelWatch = undefined;
			if (!this.#answer) return;
			this.#failImpatient(this.#outage.ms(this.#sentAt), new Silent());
			this.#watchSilence();
		});
	}

	#landed({ commit, parts }: Flight, { now, outcomes }: Committed): void {
		this.#flight = undefined;
		this.#unknown = false;
		this.#outage.end();
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
		this.#outcome.landed(commit.n, parts, outcomes);
		this.#tidier.schedule();
		if (!this.#plan.isEmpty) this.#schedule();
	}

	#settle(part: CommitPart, log: LiveLog, now: number, base: number | undefined): void {
		const { cut } = part.log!;
		this.waitingChars -= ownCharsOf(part);
		if (cut) this.#outcome.cut(log, segmentBytesOf(cut));
		if (part.sealing) this.#outcome.gone(log);
		settle(part, log, now, base);
		if (!part.sealing && log.isWaiting) this.#plan.addLog(log);
	}

	/** Nothing of the part was written. */
	#refuse(part: CommitPart, refused: Refused): void {
		const { live: log, request, creation } = part;
		if (part.log) part.log.batch = undefined;
		if (refused.refusal === "fenced" && !this.#fenced) this.#fence(refused);
		if (!log) request!.reject(refused);
		else if (creation || this.#fenced) {
			if (creation) this.#outcome.gone(log);
			log.giveUp(refused, refused);
			this.#countWaiting();
		} else this.#withdraw(part, log, refused);
	}

	#withdraw(part: CommitPart, log: LiveLog, why: Error): void {
		withdraw(part, log, why);
		if (log.isWaiting) this.#plan.addLog(log);
	}

	/** Another daemon has declared this one dead: it drops everything without a terminal, and serves readers only. */
	#fence(refused: Refused): void {
		this.#fenced = refused;
		this.#log.error({}, "another daemon has taken over; this one may write nothing any more");
		for (const log of [...this.#outcome.live()]) log.giveUp(refused, refused);
		this.#plan.fail(refused, () => {});
		this.#outcome.fenced();
	}

	/** A full disk must not lose what was appended: all of it waits and is tried again, up to the limit. */
	#failed(cause: unknown): void {
		if (this.healthy) this.#log.error({ err: cause }, "the store refuses commits; trying again");
		this.#outage.begin(cause);
		this.#unknown ||= cause instanceof OutcomeUnknown;
		this.#failImpatient(this.#outage.ms(), cause);
		if (this.#outage.retryLater(this.#stopped, this.#unknown)) return;
		this.#log.error({ err: cause, logs: this.#plan.logs }, "the store still refuses commits; giving up what waits");
		this.#giveUpAll(cause);
	}

	/** Fails callers that do not wait for so long. A part that may have been applied, or still may be, stays until that is known. */
	#failImpatient(failingMs: number, cause: unknown): void {
		const flight = this.#flight;
		if (flight && !this.#unknown && !this.#answer) {
			const parts = flight.parts.filter((part) => {
				if (failingMs < patienceMsOf(part)) return true;
				if (part.sealing) this.#withdraw(part, part.live!, unwritten(`log ${part.live!.spec.log}`, cause));
				else this.#giveUpPart(part, cause);
				return false;
			});
			this.#flight = parts.length > 0 ? { commit: { ...flight.commit, units: parts }, parts } : undefined;
		}
		this.#plan.failImpatient(failingMs, cause, this.#flight?.parts ?? [], (log) => this.#giveUp(log, cause));
		this.#countWaiting();
	}

	#giveUpAll(cause: unknown): void {
		const parts = this.#flight?.parts ?? [];
		this.#flight = undefined;
		for (const part of parts) this.#giveUpPart(part, cause);
		this.#plan.fail(unwritten("a change", cause), (log) => this.#giveUp(log, cause));
		this.#countWaiting();
	}

	#tryAgain(): void {
		this.#outage.cancelRetry();
		if (this.#answer) return;
		const flight = this.#flight;
		if (flight) this.#send({ commit: { ...flight.commit, again: this.#unknown }, parts: flight.parts });
		else if (!this.#plan.isEmpty) this.#send(this.#plan.take());
		// The store stays unhealthy until a commit succeeds, also when no caller waits for one any more.
		else if (!this.#outage.isDiskFull) this.#send(this.#plan.probe());
		else this.#outage.retryLater(this.#stopped, this.#unknown);
	}

	#giveUpPart({ live, request }: CommitPart, cause: unknown): void {
		if (live) this.#giveUp(live, cause);
		else request!.reject(unwritten("a change", cause));
	}

	/** The log stays as it is in the store: the daemon that reopens it, now or after the next start, ends it truthfully. */
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
		if (this.#answer) await Promise.race([this.#answer, over.promise]);
		this.#stopped = true;
		this.flush();
		// The outcome of the last commit has to be known, as long as there is time to ask for it.
		while (!isOver && (this.#answer || this.#unknown)) {
			await Promise.race([this.#answer ?? sleep(this.#clock, this.#limits.commitRetryMs), over.promise]);
			this.flush();
		}
		cancel();
		this.#outage.cancelRetry();
		this.#cancelWatch?.();
		if (this.#flight || !this.#plan.isEmpty) this.#giveUpAll(new NexusError("unavailable", "the daemon is stopping"));
	}
}
