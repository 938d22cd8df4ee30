/** The Bus: everything that streams is a durable log; whoever reads is a cursor over it. The door of this folder. */

import { NexusError } from "../protocol/protocol.ts";
import { type Clock, systemClock } from "../std/clock.ts";
import { type Log, silentLog } from "../std/log.ts";
import type { Write } from "../std/write.ts";
import { Batch } from "./batch.ts";
import { type CommitLimits, Committer, unwritten } from "./committer.ts";
import { ChainCursor, type ChainReading, LogCursor } from "./cursor.ts";
import { Directory } from "./directory.ts";
import { LiveLog, type Wake } from "./live-log.ts";
import { createPages, type Pages } from "./pages.ts";
import type { Bus, Cursor, LogInfo, LogQuery, LogSpec, LogWriter, Retention, Source, Together } from "./port.ts";
import type { Storage, StoredLog } from "./storage.ts";

export { Batch } from "./batch.ts";
export { follow } from "./follow.ts";
export { damagedJournalRows, storedLogs } from "./inspect.ts";
export { memoryStorage } from "./memory.ts";
export * from "./port.ts";
export { sqliteStorage } from "./sqlite.ts";

export interface BusLimits extends CommitLimits {
	/** Records or characters of one log that one commit should hold at most; beyond it the writer is `crowded`. */
	commitRecordsMax: number;
	commitCharsMax: number;
	/** Segments kept decoded for readers behind the tail, all logs together. */
	pagesBytesMax: number;
}

const DEFAULT_LIMITS: BusLimits = {
	segmentCharsMax: 16 * 1024,
	commitLogsMax: 128,
	commitRecordsMax: 512,
	commitCharsMax: 64 * 1024,
	pagesBytesMax: 16 * 1024 * 1024,
	commitRetryMsMax: 30_000,
	commitRetryMs: 250,
	tidyMs: 1000,
};

export interface BusOptions {
	storage: Storage;
	limits?: Partial<BusLimits>;
	clock?: Clock;
	log?: Log;
}

export const createBus = (options: BusOptions): Bus => new LogBus(options);

class LogBus implements Bus {
	readonly #storage: Storage;
	readonly #limits: BusLimits;
	readonly #clock: Clock;
	readonly #log: Log;
	readonly #directory: Directory;
	readonly #committer: Committer;
	readonly #pages: Pages;
	readonly #reading: ChainReading;
	readonly #rebased = new WeakMap<Batch, Batch>();
	#lastId: number;
	#totalBytes: number;
	#records = 0;
	#bytes = 0;
	#cursors = 0;
	#retaining: Promise<number> | undefined;
	#closed = false;

	constructor(options: BusOptions) {
		const storage = options.storage;
		this.#storage = storage;
		this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
		this.#clock = options.clock ?? systemClock;
		this.#log = options.log ?? silentLog;
		this.#pages = createPages(this.#limits.pagesBytesMax);
		this.#directory = new Directory(storage);
		this.#committer = new Committer(storage, this.#limits, this.#outcome(), this.#clock, this.#log);
		this.#reading = {
			page: (id, offset) => this.#page(id, offset),
			closed: () => this.#closed,
			link: (chain, after) => this.#directory.link(chain, after),
			rebase: (batch, base) => this.#rebase(batch, base),
			watchChain: (chain, wake) => this.#directory.watchChain(chain, wake),
		};
		const { lastId, totalBytes, live } = storage.open();
		this.#lastId = lastId;
		this.#totalBytes = totalBytes;
		for (const { log, tail } of live) this.#directory.admit(LiveLog.restore(log.id, log, tail));
	}

	get healthy(): boolean {
		return this.#committer.healthy;
	}

	get stats() {
		const { commits } = this.#committer;
		const liveLogs = this.#directory.size;
		return { records: this.#records, bytes: this.#bytes, commits, cursors: this.#cursors, liveLogs };
	}

	async create(
		spec: LogSpec,
		records: readonly string[],
		{ with: writes = [], patienceMs = Infinity }: Together = {},
	): Promise<LogWriter> {
		this.#refuseWhenClosed();
		if (this.#directory.exists(spec.log)) throw new NexusError("conflict", `log ${spec.log} exists already`);
		if (spec.chain !== undefined && this.#directory.liveLink(spec.chain)) {
			throw new NexusError(
				"conflict",
				`the last log of ${spec.chain} is not sealed yet; a restart recovers one that nobody writes`,
			);
		}
		const base = spec.chain === undefined ? 0 : (this.#storage.chain(spec.chain)?.head ?? 0);
		const log = new LiveLog(++this.#lastId, { ...spec, base, createdAt: this.#clock.now(), head: 0, bytes: 0 });
		this.#directory.admit(log);
		const created = new Promise<void>((resolve, reject) => {
			log.creation = { writes, patienceMs, resolve, reject };
		});
		for (const record of records) this.#append(log, record);
		this.#committer.touch(log);
		await created;
		return this.#writer(log);
	}

	async write(writes: readonly Write[]): Promise<void> {
		this.#refuseWhenClosed();
		await this.#committer.write(writes);
	}

	async reopen(name: string): Promise<LogWriter> {
		this.#refuseWhenClosed();
		const log = this.#directory.get(name);
		if (!log) throw new NexusError("not_found", `no live log ${name}`);
		log.broken = undefined;
		return this.#writer(log);
	}

	#writer(log: LiveLog): LogWriter {
		const { commitRecordsMax, commitCharsMax } = this.#limits;
		return {
			log: log.spec.log,
			get offset() {
				return log.assigned;
			},
			append: (record) => this.#append(log, record),
			get crowded() {
				return log.pendingCount >= commitRecordsMax || log.pending.length >= commitCharsMax;
			},
			room: () => this.#flushed(log),
			flushed: () => this.#flushed(log),
			appendWith: () => Promise.reject(new Error("not yet")),
			seal: (records, writes) => this.#seal(log, records, writes),
		};
	}

	#append(log: LiveLog, record: string): void {
		if (!log.open || this.#closed) throw this.#refusal(log);
		log.append(record);
		this.#committer.touch(log);
	}

	#flushed(log: LiveLog): Promise<void> {
		if (log.broken) return Promise.reject(this.#refusal(log));
		if (log.pendingCount === 0) return Promise.resolve();
		return new Promise((resolve, reject) => log.flushes.push({ resolve, reject }));
	}

	#seal(log: LiveLog, records: readonly string[], writes: readonly Write[] = []): Promise<void> {
		if (!log.open || this.#closed) return Promise.reject(this.#refusal(log));
		return new Promise((resolve, reject) => {
			log.seal = { records, writes, resolve, reject };
			this.#committer.touch(log);
		});
	}

	#refusal(log: LiveLog): NexusError {
		const name = log.spec.log;
		if (log.broken) return unwritten(name, log.broken);
		return this.#closed
			? new NexusError("unavailable", "the daemon is stopping")
			: new NexusError("conflict", `log ${name} is sealed`);
	}

	/** What a commit changes beyond the log itself. */
	#outcome() {
		return {
			gone: (log: LiveLog) => this.#directory.dismiss(log),
			cut: (log: LiveLog, bytes: number) => {
				log.bytes += bytes;
				this.#totalBytes += bytes;
				this.#bytes += bytes;
			},
			visible: (log: LiveLog, records: number) => {
				this.#records += records;
				for (const wake of log.wakes) this.#wake(wake);
				for (const wake of this.#directory.chainWatchers(log) ?? []) this.#wake(wake);
			},
			live: () => this.#directory.live(),
		};
	}

	#wake(wake: Wake): void {
		try {
			wake();
		} catch (cause) {
			this.#log.error({ err: cause }, "a reader failed when it was woken");
		}
	}

	async cursor(source: Source, after: number): Promise<Cursor> {
		this.#refuseWhenClosed();
		if (!Number.isSafeInteger(after) || after < 0) throw new NexusError("invalid", "an offset is a whole number ≥ 0");
		this.#cursors++;
		const release = () => {
			this.#cursors--;
		};
		try {
			return "log" in source
				? this.#logCursor(source.log, after, release)
				: this.#chainCursor(source.chain, after, release);
		} catch (cause) {
			release();
			throw cause;
		}
	}

	#logCursor(name: string, after: number, release: () => void): Cursor {
		const readable = this.#directory.readable(name);
		if (!readable) throw new NexusError("not_found", `no log ${name}`);
		if (after > readable.head) throw beyond(name, after, readable.head);
		return new LogCursor(readable, after, this.#reading, release);
	}

	#chainCursor(chain: string, after: number, release: () => void): Cursor {
		const { start, head } = this.#directory.chainEnds(chain) ?? { start: 0, head: 0 };
		if (after > head) throw beyond(chain, after, head);
		if (after < start) {
			throw new NexusError(
				"expired",
				`${chain}: records up to ${start} were removed by retention; read after ${start}`,
			);
		}
		return new ChainCursor(chain, after, this.#reading, release);
	}

	#page(id: number, offset: number): Batch | undefined | Promise<Batch | undefined> {
		const known = this.#pages.get(id, offset);
		if (known) return known;
		const keep = (page: Batch | undefined) => {
			if (page) this.#pages.put(id, page);
			return page;
		};
		const page = this.#storage.segment(id, offset);
		return page instanceof Promise ? page.then(keep) : keep(page);
	}

	#rebase(batch: Batch, base: number): Batch {
		if (base === 0) return batch;
		let moved = this.#rebased.get(batch);
		if (!moved) {
			moved = new Batch(base + batch.first, batch.count, batch.text);
			this.#rebased.set(batch, moved);
		}
		return moved;
	}

	async describe(name: string): Promise<LogInfo | undefined> {
		return this.#directory.describe(name);
	}

	async describeChain(chain: string): Promise<{ start: number; head: number } | undefined> {
		return this.#directory.chainEnds(chain);
	}

	async list(query: LogQuery = {}): Promise<LogInfo[]> {
		return this.#directory.list(query);
	}

	async remove(name: string): Promise<void> {
		this.#refuseWhenClosed();
		if (this.#directory.get(name)) throw new NexusError("conflict", `log ${name} is live; a live log is never removed`);
		const stored = this.#storage.find(name);
		if (!stored) throw new NexusError("not_found", `no log ${name}`);
		if (stored.chain !== undefined && stored.base > (this.#storage.chain(stored.chain)?.start ?? 0)) {
			throw new NexusError("conflict", `log ${name} is not the oldest of ${stored.chain}; remove the older ones first`);
		}
		await this.#removeStored(stored);
	}

	/** In small steps, so that appends go on in between. */
	async #removeStored(stored: StoredLog): Promise<void> {
		let gone = this.#storage.removeSome(stored.id);
		// Only now: a store that refuses keeps the log, and it still counts.
		this.#totalBytes -= stored.bytes;
		this.#pages.drop(stored.id);
		while (!gone && !this.#closed) {
			await nextTick();
			if (!this.#closed) gone = this.#storage.removeSome(stored.id);
		}
		await nextTick();
	}

	retain(rules: Retention): Promise<number> {
		this.#retaining ??= this.#retain(rules).finally(() => {
			this.#retaining = undefined;
		});
		return this.#retaining;
	}

	async #retain({ ageMsMax = Infinity, totalBytesMax = Infinity }: Retention): Promise<number> {
		for (let removed = 0; ; removed++) {
			const oldest = this.#closed ? undefined : this.#storage.oldestSealed();
			if (!oldest) return removed;
			const old = this.#clock.now() - oldest.sealedAt! > ageMsMax;
			if (!old && this.#totalBytes <= totalBytesMax) return removed;
			await this.#removeStored(this.#firstLink(oldest));
		}
	}

	/** A chain loses links from its beginning only, whatever the clock said when they were sealed. */
	#firstLink(stored: StoredLog): StoredLog {
		const { chain, base } = stored;
		const first = chain === undefined ? undefined : this.#storage.link(chain, this.#storage.chain(chain)?.start ?? 0);
		return first && first.base < base ? first : stored;
	}

	flush(): void {
		this.#committer.commit();
	}

	async close(): Promise<void> {
		if (this.#closed) return;
		this.#committer.stop();
		this.#closed = true;
		// Whoever asked for it hears that it failed; the readers hear that it is over.
		await this.#retaining?.catch(() => {});
		for (const wake of this.#directory.allWatchers()) this.#wake(wake);
	}

	#refuseWhenClosed(): void {
		if (this.#closed) throw new NexusError("unavailable", "the daemon is stopping");
	}
}

const nextTick = () => new Promise<void>((resolve) => setImmediate(resolve));

const beyond = (name: string, after: number, head: number) =>
	new NexusError("invalid", `offset ${after} is beyond the end of ${name}, which is at ${head}`);
