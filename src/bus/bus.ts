/** The Bus: everything that streams is a durable log; whoever reads is a cursor over it. The door of this folder. */

import { NexusError } from "../protocol/protocol.ts";
import { type Clock, systemClock } from "../std/clock.ts";
import { type Log, silentLog } from "../std/log.ts";
import type { Reading, Write } from "../std/write.ts";
import { Batch } from "./batch.ts";
import { type CommitLimits, Committer, unwritten } from "./committer.ts";
import { ChainCursor, type ChainReading, LogCursor } from "./cursor.ts";
import { Directory } from "./directory.ts";
import { LiveLog, type Wake } from "./live-log.ts";
import { createPages, type Pages } from "./pages.ts";
import type { Bus, Cursor, LogInfo, LogQuery, LogSpec, LogWriter, Retention, Source, Together } from "./port.ts";
import { existsAlready, linkUnsealed, noLiveLog } from "./refusals.ts";
import type { Joined, Storage, StoredLog } from "./storage.ts";

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
	/** Characters of all logs together that may wait for commits; beyond it every writer is `crowded`. */
	waitingCharsMax: number;
	/** How often the logs of other daemons are looked at when no hint comes, and this one says that it lives. */
	watchMs: number;
	/** Log ids that are reserved at once. */
	idsPerBlock: number;
	/** How long the last commit may take when the Bus is closed. */
	closeMsMax: number;
	/** Segments kept decoded for readers behind the tail, all logs together. */
	pagesBytesMax: number;
}

const DEFAULT_LIMITS: BusLimits = {
	segmentCharsMax: 16 * 1024,
	commitLogsMax: 128,
	commitTotalCharsMax: 4 * 1024 * 1024,
	waitingCharsMax: 64 * 1024 * 1024,
	watchMs: 500,
	idsPerBlock: 64,
	closeMsMax: 5000,
	commitRecordsMax: 512,
	commitCharsMax: 64 * 1024,
	pagesBytesMax: 16 * 1024 * 1024,
	commitRetryMsMax: 30_000,
	commitRetryMs: 250,
	tidyMs: 1000,
};

export interface BusOptions {
	storage: Storage;
	/** What this daemon is called in the store. */
	name?: string;
	/** Other daemons use the store too. Without it, every earlier start counts as dead: whoever opens the store holds its lock. */
	shared?: boolean;
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
	readonly #shared: boolean;
	/** Resolves once this daemon takes part in the store; undefined when it does already. */
	#joining: Promise<void> | undefined;
	/** Log ids that are reserved: the next, and where they end. */
	#nextId = 0;
	#endId = 0;
	#reserving: Promise<void> | undefined;
	/** What the store's clock is ahead of ours. */
	#aheadMs = 0;
	#unwatch: () => void = () => {};
	#cancelPoll: (() => void) | undefined;
	#records = 0;
	#bytes = 0;
	#cursors = 0;
	/** Reads that the store has not answered yet. */
	readonly #reads = new Set<Promise<unknown>>();
	#retaining: Promise<number> | undefined;
	readonly #fencing = new AbortController();
	#closed = false;
	#closing: Promise<void> | undefined;

	constructor(options: BusOptions) {
		const storage = options.storage;
		this.#storage = storage;
		this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
		this.#clock = options.clock ?? systemClock;
		this.#log = options.log ?? silentLog;
		this.#shared = options.shared ?? false;
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
		this.#join(storage.join(options.name ?? "nexus", !this.#shared));
	}

	#join(joined: Reading<Joined>): void {
		if (joined instanceof Promise) {
			this.#joining = joined.then((answer) => {
				this.#joining = undefined;
				this.#join(answer);
			});
			// Whoever uses the Bus is told.
			this.#joining.catch(() => {});
			return;
		}
		this.#committer.node = joined.node;
		this.#setTime(joined.now);
		this.#unwatch = this.#storage.watch(({ node }) => {
			if (node !== this.#committer.node) this.#look();
		});
		if (this.#shared) this.#poll();
	}

	#setTime(now: number): void {
		this.#aheadMs = now - this.#clock.now();
	}

	get node(): number {
		return this.#committer.node;
	}

	now(): number {
		return this.#clock.now() + this.#aheadMs;
	}

	/** Another daemon may have committed: its logs are read once for all who follow them here. */
	#look(): void {
		if (this.#closed) return;
		const { logs, chains } = this.#directory.followed();
		const failed = (cause: unknown) => this.#log.warn({ err: cause }, "a log of another daemon cannot be read");
		for (const log of logs) log.refresh(this.#storage, (wakes) => this.#wakeAll(wakes)).catch(failed);
		this.#wakeAll(chains);
	}

	/** Hints may be lost; and whoever does not say that it lives is taken for dead. */
	#poll(): void {
		this.#cancelPoll = this.#clock.after(this.#limits.watchMs, () => {
			this.#look();
			if (!this.fenced.aborted)
				this.#renew().catch((cause: unknown) =>
					this.#log.warn({ err: cause }, "the store cannot be told that we live"),
				);
			if (!this.#closed) this.#poll();
		});
	}

	/** A daemon that has nothing to write has to hear, too, that it is taken for dead: others go on with what it works on. */
	async #renew(): Promise<void> {
		if (!(await this.#storage.renew(this.#committer.node))) await this.write([]);
	}

	get fenced(): AbortSignal {
		return this.#fencing.signal;
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
		const { log: name, chain } = spec;
		if (chain !== undefined && records.length === 0)
			throw new NexusError("invalid", `log ${name}: a link of a chain begins with a record`);
		if (this.#directory.get(name)) throw existsAlready(name);
		if (chain !== undefined && this.#directory.liveLink(chain)) throw linkUnsealed(chain);
		// The name and the chain are taken before anything is awaited; the store has the last word when it commits.
		const log = new LiveLog(this.#nextId, { ...spec, base: 0, createdAt: this.now(), head: 0, bytes: 0 });
		const created = new Promise<void>((resolve, reject) => {
			log.creation = { writes, patienceMs, resolve, reject };
		});
		this.#directory.admit(log);
		try {
			// Others may take the ids of a block while this one is woken.
			while (this.#nextId === this.#endId || this.#joining) await this.#ready();
			this.#refuseWhenClosed();
		} catch (cause) {
			this.#directory.dismiss(log);
			throw cause;
		}
		log.id = this.#nextId++;
		for (const record of records) this.#append(log, record);
		this.#committer.touch(log);
		await created;
		return this.#writer(log);
	}

	/** Takes part in the store, and has ids. */
	async #ready(): Promise<void> {
		await this.#joining;
		if (this.#nextId < this.#endId) return;
		this.#reserving ??= this.#reserve().finally(() => {
			this.#reserving = undefined;
		});
		await this.#reserving;
	}

	async #reserve(): Promise<void> {
		const { idsPerBlock } = this.#limits;
		this.#nextId = await this.#storage.reserve(idsPerBlock);
		this.#endId = this.#nextId + idsPerBlock;
	}

	async write(writes: readonly Write[], patienceMs = Infinity): Promise<void> {
		this.#refuseWhenClosed();
		if (this.#joining) await this.#joining;
		await this.#committer.write(writes, patienceMs);
	}

	async reopen(name: string): Promise<LogWriter> {
		this.#refuseWhenClosed();
		await this.#joining;
		const own = this.#directory.get(name);
		if (own?.creation) throw noLiveLog(name);
		if (own) {
			own.broken = undefined;
			return this.#writer(own);
		}
		const { log, tail } = await this.#storage.adopt(name, this.#committer.node);
		const { id, ...info } = log;
		const adopted = LiveLog.restore(id, info, tail);
		this.#directory.admit(adopted);
		return this.#writer(adopted);
	}

	async bury(silentMs: number): Promise<readonly number[]> {
		this.#refuseWhenClosed();
		return this.#storage.bury(silentMs);
	}

	#writer(log: LiveLog): LogWriter {
		const { commitRecordsMax, commitCharsMax, waitingCharsMax } = this.#limits;
		const committer = this.#committer;
		return {
			log: log.spec.log,
			get offset() {
				return log.assigned;
			},
			append: (record) => this.#append(log, record),
			get crowded() {
				return (
					log.waitingCount >= commitRecordsMax ||
					log.waitingChars >= commitCharsMax ||
					committer.waitingChars >= waitingCharsMax
				);
			},
			room: () => (log.broken ? Promise.reject(this.#refusal(log)) : log.room()),
			flushed: () => (log.broken ? Promise.reject(this.#refusal(log)) : log.flushed()),
			appendWith: (records, writes) => this.#appendWith(log, records, writes),
			seal: (records, writes) => this.#seal(log, records, writes),
		};
	}

	#append(log: LiveLog, record: string): void {
		if (!log.open || this.#closed) throw this.#refusal(log);
		log.append(record);
		this.#committer.waitingChars += record.length + 1;
		this.#committer.touch(log);
	}

	async #appendWith(log: LiveLog, records: readonly string[], writes: readonly Write[]): Promise<number> {
		// One at a time: what was appended behind the one before comes first.
		while (log.joint) await log.joint.settled;
		if (!log.open || this.#closed) throw this.#refusal(log);
		const { promise, resolve, reject } = Promise.withResolvers<void>();
		const last = log.assigned + records.length;
		const settled = promise.catch(() => {});
		log.joint = { records, writes, resolve, reject, settled };
		this.#committer.touch(log);
		await promise;
		return last;
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
				this.#bytes += bytes;
			},
			visible: (log: LiveLog, records: number) => {
				this.#records += records;
				this.#wakeAll(log.wakes);
				const watchers = this.#directory.chainWatchers(log);
				if (watchers) this.#wakeAll(watchers);
			},
			live: () => this.#directory.live(),
			time: (now: number) => this.#setTime(now),
			fenced: () => {
				this.#fencing.abort(this.#committer.fenced);
				for (const log of [...this.#directory.live()]) this.#directory.disown(log);
				// From now on it follows what others write.
				if (!this.#shared) this.#poll();
			},
		};
	}

	#wake(wake: Wake): void {
		try {
			wake();
		} catch (cause) {
			this.#log.error({ err: cause }, "a reader failed when it was woken");
		}
	}

	#wakeAll(wakes: Iterable<Wake>): void {
		for (const wake of wakes) this.#wake(wake);
	}

	async cursor(source: Source, after: number): Promise<Cursor> {
		if (this.#closed) throw new NexusError("unavailable", "the daemon is stopping");
		if (!Number.isSafeInteger(after) || after < 0) throw new NexusError("invalid", "an offset is a whole number ≥ 0");
		this.#cursors++;
		const release = () => {
			this.#cursors--;
		};
		try {
			return "log" in source
				? await this.#logCursor(source.log, after, release)
				: await this.#chainCursor(source.chain, after, release);
		} catch (cause) {
			release();
			throw cause;
		}
	}

	async #logCursor(name: string, after: number, release: () => void): Promise<Cursor> {
		const readable = await this.#directory.readable(name);
		if (!readable) throw new NexusError("not_found", `no log ${name}`);
		if (after > readable.head) throw beyond(name, after, readable.head);
		return new LogCursor(readable, after, this.#reading, release);
	}

	async #chainCursor(chain: string, after: number, release: () => void): Promise<Cursor> {
		const { start, head } = (await this.#directory.chainEnds(chain)) ?? { start: 0, head: 0 };
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
		const page = this.#storage.read(id, offset);
		if (!(page instanceof Promise)) return keep(page);
		const reading = page.then(keep).finally(() => this.#reads.delete(reading));
		this.#reads.add(reading);
		return reading;
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
		// Only then do earlier starts count as dead.
		if (query.left) await this.#joining;
		return this.#directory.list(query);
	}

	async remove(name: string): Promise<void> {
		this.#refuseWhenClosed();
		if (this.#directory.get(name)) throw new NexusError("conflict", `log ${name} is live; a live log is never removed`);
		const stored = await this.#storage.find(name);
		if (!stored) throw new NexusError("not_found", `no log ${name}`);
		if (stored.sealedAt === undefined)
			throw new NexusError("conflict", `log ${name} is live; a live log is never removed`);
		const start = stored.chain === undefined ? 0 : ((await this.#storage.chain(stored.chain))?.start ?? 0);
		if (stored.base > start)
			throw new NexusError("conflict", `log ${name} is not the oldest of ${stored.chain}; remove the older ones first`);
		await this.#removeStored(stored);
	}

	/** In small steps, so that appends go on in between. */
	async #removeStored(stored: StoredLog): Promise<void> {
		let gone = await this.#storage.removeSome(stored.id);
		this.#pages.drop(stored.id);
		while (!gone && !this.#closed) {
			await nextTick();
			if (!this.#closed) gone = await this.#storage.removeSome(stored.id);
		}
		await nextTick();
	}

	retain(rules: Retention): Promise<number> {
		this.#retaining ??= this.#retain(rules).finally(() => {
			this.#retaining = undefined;
		});
		return this.#retaining;
	}

	async #retain({ ageMsMax = Infinity, totalBytesMax = Infinity, kinds = {} }: Retention): Promise<number> {
		let removed = 0;
		for (const [kind, rule] of Object.entries(kinds)) removed += await this.#retainByAge(rule.ageMsMax, kind);
		removed += await this.#retainByAge(ageMsMax);
		if (totalBytesMax === Infinity) return removed;
		let total = await this.#storage.totalBytes();
		while (total > totalBytesMax) {
			const oldest = this.#closed ? undefined : await this.#storage.oldestSealed();
			if (!oldest) break;
			const first = await this.#firstLink(oldest);
			await this.#removeStored(first);
			total -= first.bytes;
			removed++;
		}
		return removed;
	}

	async #retainByAge(ageMsMax: number, kind?: string): Promise<number> {
		for (let removed = 0; ; removed++) {
			const oldest = this.#closed || ageMsMax === Infinity ? undefined : await this.#storage.oldestSealed(kind);
			if (!oldest || this.now() - oldest.sealedAt! <= ageMsMax) return removed;
			await this.#removeStored(await this.#firstLink(oldest));
		}
	}

	/** A chain loses links from its beginning only, whatever the clock said when they were sealed. */
	async #firstLink(stored: StoredLog): Promise<StoredLog> {
		const { chain, base } = stored;
		if (chain === undefined) return stored;
		const start = (await this.#storage.chain(chain))?.start ?? 0;
		const first = await this.#storage.link(chain, start);
		return first && first.base < base ? first : stored;
	}

	flush(): void {
		this.#committer.commit();
	}

	async close(): Promise<void> {
		if (this.#closing) return this.#closing;
		this.#closing = this.#close();
		return this.#closing;
	}

	async #close(): Promise<void> {
		this.#closed = true;
		if (this.#joining) await this.#joining.catch(() => {});
		const stopped = this.#committer.stop(this.#limits.closeMsMax);
		this.#cancelPoll?.();
		this.#unwatch();
		await stopped;
		// Whoever asked for it hears that it failed; the readers hear that it is over.
		await this.#retaining?.catch(() => {});
		this.#wakeAll(this.#directory.allWatchers());
		await Promise.allSettled(this.#reads);
	}

	#refuseWhenClosed(): void {
		if (this.#closed) throw new NexusError("unavailable", "the daemon is stopping");
		if (this.#committer.fenced) throw this.#committer.fenced;
	}
}

const nextTick = () => new Promise<void>((resolve) => setImmediate(resolve));

const beyond = (name: string, after: number, head: number) =>
	new NexusError("invalid", `offset ${after} is beyond the end of ${name}, which is at ${head}`);
