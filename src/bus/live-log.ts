/** A log that is still written: its tail in memory, what waits for the next commit, and who follows it. */

import type { Write } from "../std/write.ts";
import { Batch } from "./batch.ts";
import type { LogInfo, LogSpec } from "./port.ts";
import { Tail } from "./tail.ts";

/** Told when something became visible, or the log ended. */
export type Wake = () => void;

interface Waiting {
	resolve(): void;
	reject(cause: unknown): void;
}

export interface Seal extends Waiting {
	records: readonly string[];
	writes: readonly Write[];
}

export interface Creation extends Waiting {
	writes: readonly Write[];
	/** For how long a failing store is waited for. */
	patienceMs: number;
}

export class LiveLog {
	readonly id: number;
	readonly spec: LogSpec;
	readonly base: number;
	readonly createdAt: number;
	/** Durable and visible up to here. */
	head: number;
	/** Bytes in segments. */
	bytes: number;
	sealedAt: number | undefined;
	/** Why no record can be added any more although the log is not sealed. */
	broken: unknown;
	/** Why records at its end are missing. */
	readonly damaged: string | undefined;

	/** Durable records since the last cut. */
	readonly tail = new Tail();
	/** Cut at the next commit even if small. */
	cutSoon = false;

	/** What the next commit takes: records joined by line feeds. */
	pending = "";
	pendingCount = 0;
	creation: Creation | undefined;
	seal: Seal | undefined;
	flushes: Waiting[] = [];

	readonly wakes = new Set<Wake>();
	/** What the last commit brought: readers that keep up all ask for it, and share what is made of it. */
	#newest: Batch | undefined;

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
		return this.head + this.pendingCount;
	}

	append(record: string): void {
		this.pending = this.pendingCount === 0 ? record : `${this.pending}\n${record}`;
		this.pendingCount++;
	}

	/** Everything that waits, and the last records of all behind it. */
	waiting(last: readonly string[]): Batch | undefined {
		if (this.pendingCount + last.length === 0) return undefined;
		const text =
			last.length === 0 ? this.pending : [...(this.pendingCount > 0 ? [this.pending] : []), ...last].join("\n");
		return new Batch(this.head + 1, this.pendingCount + last.length, text);
	}

	/** Everything that waits was committed, or given up. */
	clearPending(): void {
		this.pending = "";
		this.pendingCount = 0;
	}

	/** More can be appended. */
	get open(): boolean {
		return !this.seal && !this.broken && this.sealedAt === undefined;
	}

	/** What became visible last, when that is exactly what comes after the offset. */
	newest(after: number): Batch | undefined {
		return this.#newest?.first === after + 1 ? this.#newest : undefined;
	}

	/** The tail together with records that follow it. */
	tailWith(batch: Batch | undefined): Batch | undefined {
		const tail = this.tail.batch();
		if (!tail || !batch) return tail ?? batch;
		return new Batch(tail.first, tail.count + batch.count, `${tail.text}\n${batch.text}`);
	}

	/** Makes committed records visible; with a cut, the tail begins anew. */
	publish(batch: Batch | undefined, cut: boolean): void {
		if (cut) {
			this.tail.clear();
			this.cutSoon = false;
		} else if (batch) this.tail.push(batch);
		if (!batch) return;
		this.#newest = batch;
		this.head = batch.last;
	}

	/** A stored log that was live when the last process ended. */
	static restore(id: number, info: Omit<LogInfo, "sealedAt">, tail: Batch | undefined): LiveLog {
		const log = new LiveLog(id, info);
		log.publish(tail, false);
		return log;
	}

	info(): LogInfo {
		const { spec, base, createdAt, head, sealedAt, damaged } = this;
		const info: LogInfo = { ...spec, base, createdAt, head, bytes: this.bytes + this.tail.size };
		if (damaged !== undefined) info.damaged = damaged;
		return sealedAt === undefined ? info : { ...info, sealedAt };
	}
}
