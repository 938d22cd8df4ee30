/** The Bus: everything that streams is a durable log, and every reader a cursor over it. The door of this folder. */

import { NexusError } from "@nexus-stream/protocol";
import { type Clock, elapsing, within } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Log } from "@nexus-stream/protocol/log";
import type { Write } from "../std/write.ts";
import { Committer } from "./commit/committer.ts";
import { topicsOf } from "./commit/plan.ts";
import { ForeignCommits } from "./foreign-commits.ts";
import { Directory } from "./logs/directory.ts";
import { LiveLog } from "./logs/live-log.ts";
import { Writers } from "./logs/writers.ts";
import { Membership, NODES_TOPIC } from "./membership.ts";
import { Notifications } from "./notifications.ts";
import { type TrackedStorage, trackRequests } from "./open-requests.ts";
import { BUS_LIMITS, type BusLimits, type BusOptions, type Tell, withTellWrites } from "./options.ts";
import type { Bus, Grown, Lease, LogInfo, LogQuery, LogSpec, LogWriter, Together, Wake } from "./port.ts";
import { Reader } from "./reading/reader.ts";
import { Retainer } from "./retention.ts";
import { type ChangedTopics, existsAlready, linkUnsealed, noLiveLog, type Storage } from "./storage.ts";

export type { BusOptions, Changes, Tell } from "./options.ts";
export { ADMIT_MS_MAX, storeClock } from "./options.ts";
export { orphans } from "./orphans.ts";
export type { Bus, Cursor, Grown, LogInfo, LogSpec, LogWriter, Retention, Wake } from "./port.ts";
export { Batch } from "./reading/batch.ts";
export { follow } from "./reading/cursor.ts";
export { damagedJournalRows, storedLogs } from "./sqlite/faults.ts";
export { sqliteStorage } from "./sqlite/sqlite.ts";
export type { Storage } from "./storage.ts";

/** The store in PostgreSQL; loaded when asked for. */
export const postgresBus = () => import("./postgres/postgres.ts");

export const createBus = (options: BusOptions): Bus => new LogBus(options);

class LogBus implements Bus {
	readonly #storage: Storage;
	readonly #asked: TrackedStorage;
	readonly #limits: BusLimits;
	readonly #clock: Clock;
	readonly #log: Log;
	readonly #tell: Tell | undefined;
	readonly #directory: Directory;
	readonly #committer: Committer;
	readonly #reader: Reader;
	readonly #writers: Writers;
	readonly #membership: Membership;
	readonly #notifications: Notifications;
	readonly #foreign: ForeignCommits;
	readonly fenced: AbortSignal;
	readonly lease: Lease;
	readonly isShared: boolean;
	readonly #retainer: Retainer;
	#records = 0;
	#bytes = 0;
	readonly #adopting = new Map<string, Promise<LiveLog>>();
	#closed = false;
	#closing: Promise<void> | undefined;

	constructor(options: BusOptions) {
		this.#limits = withDefaults(BUS_LIMITS, options.limits);
		this.#clock = options.clock;
		this.#asked = trackRequests(options.storage, this.#clock);
		const { storage } = this.#asked;
		this.#storage = storage;
		this.#log = options.log;
		this.#tell = options.tell;
		const directory = new Directory(storage, (log) => this.#foreign.refresh(log));
		this.#directory = directory;
		const shared = { storage, limits: this.#limits, clock: this.#clock, log: this.#log };
		const wake = (wakes: Iterable<Wake>, log?: Grown) => this.#wakeAll(wakes, log);
		const dead = () => void this.write([]).catch(() => {});
		const { shared: isShared = false } = options;
		this.isShared = isShared;
		this.#notifications = new Notifications({ ...shared, wake, isShared, node: () => this.node });
		const onNotify = (topics: ChangedTopics) => this.#notifications.wake(topics);
		this.#foreign = new ForeignCommits({ ...shared, directory, wake, onNotify });
		const following = { foreign: this.#foreign, notifications: this.#notifications };
		this.#membership = new Membership({ ...shared, ...following, isShared, directory, dead });
		this.lease = this.#membership.lease;
		this.fenced = this.#membership.fenced;
		this.#committer = new Committer({ ...shared, outcome: this.#outcome(), node: () => this.#membership.node });
		const closed = () => this.#closed;
		const removed = (id: number) => this.#reader.drop(id);
		this.#retainer = new Retainer({ storage, now: () => this.now(), closed, removed });
		const { pagesBytesMax } = this.#limits;
		this.#reader = new Reader({ storage, directory, pagesBytesMax, closed });
		this.#writers = new Writers({ committer: this.#committer, limits: this.#limits, tell: this.#tell, closed });
		this.#membership.join(options.name ?? "nexus");
	}

	get node(): number {
		return this.#membership.node;
	}

	now(): number {
		return this.#membership.now();
	}

	get healthy(): boolean {
		return this.#committer.healthy && this.#membership.healthy;
	}

	get stats() {
		const { commits } = this.#committer;
		const liveLogs = this.#directory.size;
		return { records: this.#records, bytes: this.#bytes, commits, cursors: this.#reader.cursors, liveLogs };
	}

	async create(
		spec: LogSpec,
		records: readonly string[],
		{ with: withWrites = [], patienceMs = Infinity }: Together = {},
	): Promise<LogWriter> {
		this.#refuseWhenClosed();
		const { log: name, chain } = spec;
		if (chain !== undefined && records.length === 0)
			throw new NexusError("invalid", `log ${name}: a link of a chain begins with a record`);
		if (this.#directory.get(name)) throw existsAlready(name);
		if (chain !== undefined && this.#directory.liveLink(chain)) throw linkUnsealed(chain);
		// The name and the chain are taken before anything is awaited; the store has the last word when it commits.
		const log = new LiveLog(0, { ...spec, base: 0, createdAt: this.now(), head: 0, bytes: 0 });
		const writes = withTellWrites(this.#tell, { writes: withWrites, log: spec, isNew: true });
		const created = new Promise<void>((resolve, reject) => {
			log.creation = { writes, patienceMs, resolve, reject };
		});
		// The caller of `create` gets the failure below; a fence may come while ids are awaited.
		created.catch(() => {});
		this.#directory.admit(log);
		try {
			// Others may take the ids of a block while this one is woken.
			while (!this.#membership.hasIds) await this.#membership.moreIds(name, patienceMs);
			this.#refuseWhenClosed();
		} catch (cause) {
			this.#directory.dismiss(log);
			throw cause;
		}
		log.id = this.#membership.nextId();
		for (const record of records) this.#writers.append(log, record);
		this.#committer.touch(log);
		await created;
		return this.#writers.of(log);
	}

	async write(writes: readonly Write[], patienceMs = Infinity): Promise<void> {
		this.#refuseWhenClosed();
		if (this.#membership.isJoining) await this.#membership.joined(patienceMs);
		await this.#committer.write(withTellWrites(this.#tell, { writes }), patienceMs);
	}

	async reopen(name: string): Promise<LogWriter> {
		this.#refuseWhenClosed();
		await this.#membership.joined();
		const own = this.#directory.get(name);
		if (own?.creation) throw noLiveLog(name);
		if (own) {
			own.broken = undefined;
			return this.#writers.of(own);
		}
		let adopting = this.#adopting.get(name);
		if (!adopting) {
			adopting = this.#adopt(name).finally(() => this.#adopting.delete(name));
			this.#adopting.set(name, adopting);
		}
		return this.#writers.of(await adopting);
	}

	async #adopt(name: string): Promise<LiveLog> {
		const adopt = () => this.#storage.adopt(name, this.node);
		const stored = await this.#membership.whenRoom(`log ${name}`, adopt);
		this.#refuseWhenClosed();
		const adopted = LiveLog.restore(stored);
		this.#directory.admit(adopted);
		// A chain with a link of this daemon is not looked up again, so its waiting readers have to be woken for the link.
		this.#wakeAll(this.#directory.chainWatchers(adopted.spec.chain), adopted);
		return adopted;
	}

	readonly call: Bus["call"] = async (topic) => {
		this.#asked.refuseWhenOver();
		this.#notifications.changed(new Set([topic]));
	};
	readonly listen: Bus["listen"] = (topic, listener) => this.#notifications.listen(topic, listener);

	async expire(leaseMs: number): Promise<readonly number[]> {
		this.#refuseWhenClosed();
		await this.#membership.joined();
		const expired = await this.#storage.expire(this.node, leaseMs);
		if (expired.length > 0) this.#notifications.changed(new Set([NODES_TOPIC]));
		return expired;
	}

	/** Applies the outcome of a commit beyond the log itself. */
	#outcome() {
		const directory = this.#directory;
		return {
			gone: (log: LiveLog) => directory.dismiss(log),
			cut: (log: LiveLog, bytes: number) => {
				log.bytes += bytes;
				this.#bytes += bytes;
			},
			visible: (log: LiveLog, records: number, isNew: boolean) => {
				this.#records += records;
				this.#wakeAll(log.wakes, log);
				// Readers of the chain follow its link by themselves, once it is there.
				if (isNew) this.#wakeAll(directory.chainWatchers(log.spec.chain), log);
			},
			landed: (n: number, ...all: Parameters<typeof topicsOf>) => this.#notifications.committed(n, topicsOf(...all)),
			live: () => directory.live(),
			get liveLogs() {
				return directory.size;
			},
			time: (now: number) => this.#membership.setTime(now),
			fenced: () => this.#membership.fence(this.#committer.fenced),
		};
	}

	#wakeAll(wakes: Iterable<Wake>, log?: Grown): void {
		for (const wake of wakes) {
			try {
				wake(log);
			} catch (cause) {
				this.#log.error({ err: cause }, "a reader failed when it was woken");
			}
		}
	}

	readonly cursor: Bus["cursor"] = (source, after) => this.#reader.cursor(source, after);
	readonly describe: Bus["describe"] = async (name) => this.#directory.describe(name);
	readonly describeChain: Bus["describeChain"] = async (chain) => this.#directory.chainEnds(chain);
	readonly describeChainWith: Bus["describeChainWith"] = async (chain, query) =>
		this.#directory.chainWith(chain, query);

	async list(query: LogQuery = {}): Promise<LogInfo[]> {
		if (query.orphaned) await this.#membership.joined();
		return this.#directory.list(query);
	}

	readonly bytesOf: Bus["bytesOf"] = async (countedFor) => this.#storage.totalBytes(countedFor);
	readonly removeOf: Bus["removeOf"] = (countedFor) => this.#retainer.removeOf(countedFor);
	readonly retain: Bus["retain"] = (rules) => this.#retainer.retain(rules);
	readonly flush = (): void => this.#committer.flush();

	close(): Promise<void> {
		this.#closing ??= this.#close();
		return this.#closing;
	}

	async #close(): Promise<void> {
		this.#closed = true;
		const now = elapsing(this.#clock);
		const end = now() + this.#limits.closeMsMax;
		const left = () => Math.max(0, end - now());
		if (this.#membership.isJoining) await this.#membership.joined(left()).catch(() => {});
		const stopped = this.#committer.stop(left());
		this.#membership.close();
		this.#foreign.close();
		await stopped;
		await within(this.#clock, left(), this.#retainer.settled());
		this.#wakeAll(this.#directory.allWatchers());
		this.#membership.leave();
		await this.#asked.end(left());
	}

	#refuseWhenClosed(): void {
		if (this.#closed) throw new NexusError("unavailable", "the daemon is stopping");
		if (this.#committer.fenced) throw this.#committer.fenced;
	}
}
