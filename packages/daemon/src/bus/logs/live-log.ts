/** A log that this daemon writes: its tail in memory, what waits for the next commit, what is in the one under way, and who follows it. */

import type { Write } from "../../std/write.ts";
import type { Grown, LogInfo, LogSpec, Wake } from "../port.ts";
import { Batch } from "../reading/batch.ts";
import { afterInCut, Tail } from "../reading/tail.ts";
import type { Adopted, LogWrite, NewSegment, Unit } from "../storage.ts";

export interface Waiter {
	resolve(): void;
	reject(cause: unknown): void;
}

/** Changes of stored things that wait for a commit: alone, or as the creation of a log. */
export interface WriteRequest extends Waiter {
	writes: readonly Write[];
	/** For how long a failing store is waited for. */
	patienceMs: number;
}

/** The last records, with what commits together with them. */
export interface Seal extends WriteRequest {
	records: readonly string[];
}

/** Records in the middle of a log that commit together with writes: what is appended behind them waits for their outcome. */
export interface Joint extends Waiter {
	records: readonly string[];
	writes: readonly Write[];
	/** Offset of its last record, if it is taken. */
	last: number;
	/** It has its outcome, whichever. */
	settled: Promise<void>;
}

/** One unit of a commit, with whom it is for. What the outcome does is read from here: the log takes new records meanwhile. */
export interface CommitPart extends Unit {
	writes: readonly Write[];
	readonly log: LogWrite | undefined;
	readonly live: LiveLog | undefined;
	readonly request: WriteRequest | undefined;
	/** The change that the part makes to its log, besides new records. */
	creation: WriteRequest | undefined;
	joint: Joint | undefined;
	sealing: Seal | undefined;
	/** The records of the batch that were appended without writes: they stay when the writes are refused. */
	ownCount: number;
	ownText: string;
}

/** A log that grows, as a cursor follows it: written here or by another daemon. */
export interface Growing extends Grown {
	readonly id: number;
	readonly wakes: Set<Wake>;
	/** Cursors that are open on it. They count for the successor once there is one. */
	readers: number;
	/** The records strictly after an offset, when they are at hand without asking the store. */
	recent(after: number): Batch | undefined;
	/** The log continues here: this daemon has taken it over. */
	successor: Growing | undefined;
}

export class LiveLog implements Growing {
	id: number;
	readonly spec: LogSpec;
	/** Both are the store's to say; known once the log is created. */
	base: number;
	createdAt: number;
	/** Durable and visible up to here. */
	head: number;
	/** Bytes in segments. */
	bytes: number;
	sealedAt: number | undefined;
	/** Why no record can be added any more although the log is not sealed. */
	broken: unknown;
	/** Why records at its end are missing. */
	readonly damaged: string | undefined;
	successor: Growing | undefined;

	/** Durable records since the last cut. */
	readonly tail = new Tail();
	/** Cut at the next commit even if small. */
	cutSoon = false;
	/** Waits for the next commit. */
	queued = false;
	/** The part of this log in the commit under way: one object, because the log is in one commit at a time. */
	part: CommitPart | undefined;

	/** Records for the next commit, joined by line feeds. */
	pending = "";
	pendingCount = 0;
	/** In the commit under way. */
	inFlightCount = 0;
	inFlightChars = 0;
	creation: WriteRequest | undefined;
	seal: Seal | undefined;
	joint: Joint | undefined;
	/** Appended while a joint waits for its outcome. */
	#behind: string[] = [];
	#flushes: (Waiter & { upTo: number })[] = [];
	#rooms: Waiter[] = [];

	readonly wakes = new Set<Wake>();
	readers = 0;
	/** The batch of the last commit: all readers that keep up ask for it, and share what is encoded from it. */
	#newest: Batch | undefined;
	/** The same for readers that are a little behind, and ask together. */
	#asked: Batch | undefined;
	/** The last cut of the tail, until the readers were woken: those who waited for a flush share it, instead of a page each. */
	#cut: NewSegment | undefined;

	constructor(id: number, info: Omit<LogInfo, "sealedAt">) {
		const { base, createdAt, head, bytes, damaged, ...spec } = info;
		this.damaged = damaged;
		this.id = id;
		this.spec = spec;
		this.base = base;
		this.createdAt = createdAt;
		this.head = head;
		this.bytes = bytes;
	}

	/** Offset of the last appended record, visible or not. */
	get assigned(): number {
		return this.head + this.inFlightCount + this.pendingCount + (this.joint?.records.length ?? 0) + this.#behind.length;
	}

	/** Characters that wait for a commit, a line feed for each record included. */
	get appendedChars(): number {
		const behind = this.#behind.reduce((sum, record) => sum + record.length + 1, 0);
		return (this.pendingCount > 0 ? this.pending.length + 1 : 0) + behind;
	}

	/** Characters and records that are not durable yet. */
	get waitingChars(): number {
		return this.inFlightChars + this.pending.length;
	}

	get waitingCount(): number {
		return this.inFlightCount + this.pendingCount + this.#behind.length;
	}

	append(record: string): void {
		if (this.joint) {
			this.#behind.push(record);
			return;
		}
		this.pending = this.pendingCount === 0 ? record : `${this.pending}\n${record}`;
		this.pendingCount++;
	}

	/** Moves everything that waits into the commit under way, with the last records of all behind it. */
	take(last: readonly string[]): Batch | undefined {
		const count = this.pendingCount + last.length;
		if (count === 0) return undefined;
		const text =
			last.length === 0 ? this.pending : [...(this.pendingCount > 0 ? [this.pending] : []), ...last].join("\n");
		this.inFlightCount = this.pendingCount;
		this.inFlightChars = text.length;
		this.pending = "";
		this.pendingCount = 0;
		return new Batch(this.head + 1, count, text);
	}

	/** The commit refused what went with these records: they wait again, before what came since. */
	putBack(text: string, count: number): void {
		this.landed();
		if (count === 0) return;
		this.pending = this.pendingCount === 0 ? text : `${text}\n${this.pending}`;
		this.pendingCount += count;
	}

	/** Nothing of this log is in a commit any more. */
	landed(): void {
		this.inFlightCount = 0;
		this.inFlightChars = 0;
	}

	/** The joint has its outcome: what was appended behind it follows, without a gap if it was `refused`. */
	disjoin(refused?: Joint): void {
		this.joint = undefined;
		for (const record of this.#behind.splice(0)) this.append(record);
		if (!refused) return;
		for (const waiting of this.#flushes) if (waiting.upTo >= refused.last) waiting.upTo -= refused.records.length;
		this.settleWaiting();
	}

	/** More can be appended. */
	get open(): boolean {
		return !this.seal && !this.broken && this.sealedAt === undefined;
	}

	get isWaiting(): boolean {
		return this.pendingCount > 0 || !!(this.creation || this.seal || this.joint) || this.cutSoon;
	}

	flushed(): Promise<void> {
		const upTo = this.assigned;
		if (upTo <= this.head) return Promise.resolve();
		return new Promise((resolve, reject) => this.#flushes.push({ upTo, resolve, reject }));
	}

	room(): Promise<void> {
		// It is crowded by others, whose commit needs a turn of the loop: a promise that is kept already would never give it one.
		if (this.waitingCount === 0) return new Promise((resolve) => setImmediate(resolve));
		return new Promise((resolve, reject) => this.#rooms.push({ resolve, reject }));
	}

	/** Tells those who wait that a commit of this log has landed. */
	settleWaiting(): void {
		if (this.#rooms.length > 0) for (const waiting of this.#rooms.splice(0)) waiting.resolve();
		while (this.#flushes.length > 0 && this.#flushes[0]!.upTo <= this.head) this.#flushes.shift()!.resolve();
	}

	/** Everything that waits is given up. */
	giveUp(cause: unknown, error: Error): void {
		this.broken = cause ?? new Error("unknown");
		this.landed();
		this.pending = "";
		this.pendingCount = 0;
		this.#behind = [];
		const waiting = [...this.#flushes.splice(0), ...this.#rooms.splice(0)];
		for (const one of [...waiting, this.seal, this.joint, this.creation]) one?.reject(error);
		this.seal = undefined;
		this.joint = undefined;
	}

	get newest(): Batch | undefined {
		return this.#cut ? undefined : this.#newest;
	}

	recent(after: number): Batch | undefined {
		if (this.#newest?.first === after + 1) return this.#newest;
		if (this.#asked?.first !== after + 1)
			this.#asked = this.#cut ? afterInCut(this.#cut, after) : this.tail.after(after);
		return this.#asked;
	}

	/** Makes committed records visible; with a cut, the tail starts empty. */
	publish(batch: Batch | undefined, cut: NewSegment | undefined): void {
		this.#cut = cut;
		if (cut) this.tail.clear();
		else if (batch) this.tail.push(batch);
		if (!batch) return;
		this.#newest = batch;
		this.#asked = undefined;
		this.head = batch.last;
	}

	/** Its readers were woken. */
	woken(): void {
		this.#cut = undefined;
	}

	/** A stored log that this daemon takes over. */
	static restore({ log: { id, ...info }, tail }: Adopted): LiveLog {
		const log = new LiveLog(id, { ...info, head: tail ? tail.first - 1 : info.head });
		log.publish(tail, undefined);
		return log;
	}

	info(): LogInfo {
		const { spec, base, createdAt, head, sealedAt, damaged } = this;
		const info: LogInfo = { ...spec, base, createdAt, head, bytes: this.bytes + this.tail.size };
		if (damaged !== undefined) info.damaged = damaged;
		return sealedAt === undefined ? info : { ...info, sealedAt };
	}
}
