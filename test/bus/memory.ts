/** A store that lives as long as its object: for tests, and for daemons that need no history. */

import type { LogQuery, LogSpec } from "../../packages/daemon/src/bus/port.ts";
import { Batch } from "../../packages/daemon/src/bus/reading/batch.ts";
import {
	type Adopted,
	type ChainWith,
	type Commit,
	type Committed,
	existsAlready,
	type Follower,
	type Following,
	fenced,
	type Joined,
	type Kinds,
	type LogChanges,
	type LogWrite,
	linkUnsealed,
	noLiveLog,
	ownedByAnother,
	type Storage,
	type StoredLog,
	type StoreNotification,
	segmentBytesOf,
	type Unit,
	type UnitOutcome,
} from "../../packages/daemon/src/bus/storage.ts";
import { type Query, Tables } from "../../packages/daemon/src/std/write.ts";
import { Refused, toNexusError } from "../../packages/protocol/src/protocol.ts";

interface MemoryLog {
	log: StoredLog;
	node: number;
	segments: Batch[];
	/** Records since the last cut. */
	tail: string[];
}

interface MemoryNode {
	renewedAt: number;
	/** Since when it has renewed without a gap. */
	since: number;
	dead: boolean;
	/** Its last commit, and what came of it. */
	last: { n: number; committed: Committed } | undefined;
}

/** A commit as followers read it. */
interface MemoryCommit extends LogChanges {
	at: number;
}

interface MemoryFollowing {
	node: number;
	follower: Follower;
	/** The place of the next commit to read, counted from the first one of all. */
	next: number;
}

/** A commit can be read by followers for at least this long. */
const COMMITS_KEPT_MS = 5000;

/** `tables` must undo by themselves what they did for writes that are refused. */
export const memoryStorage = (tables = new Tables(), now: () => number = Date.now): Storage =>
	new MemoryStorage(tables, now);

class MemoryStorage implements Storage {
	readonly #things: Tables;
	readonly #now: () => number;
	readonly #logs = new Map<number, MemoryLog>();
	readonly #byName = new Map<string, MemoryLog>();
	readonly #removedUpTo = new Map<string, number>();
	readonly #nodes = new Map<number, MemoryNode>();
	readonly #followings = new Set<MemoryFollowing>();
	/** The newest commits, and how many were before them. */
	#commits: MemoryCommit[] = [];
	#forgotten = 0;
	#nextId = 1;

	constructor(tables: Tables, now: () => number) {
		this.#things = tables;
		this.#now = now;
	}

	join(_name: string, alone: boolean): Joined {
		if (alone) for (const node of this.#nodes.values()) node.dead = true;
		const node = this.#nodes.size + 1;
		this.#nodes.set(node, { renewedAt: this.#now(), since: this.#now(), dead: false, last: undefined });
		return { node, now: this.#now() };
	}

	renew(node: number, leaseMs: number): boolean {
		const found = this.#nodes.get(node);
		if (!found || found.dead) return false;
		if (found.renewedAt < this.#now() - leaseMs / 2) found.since = this.#now();
		found.renewedAt = this.#now();
		return true;
	}

	expire(asking: number, leaseMs: number): number[] {
		const before = this.#now() - leaseMs;
		if (!this.renew(asking, leaseMs) || this.#nodes.get(asking)!.since > before) return [];
		const silent = [...this.#nodes].filter(([id, node]) => id !== asking && !node.dead && node.renewedAt <= before);
		for (const [, node] of silent) node.dead = true;
		return silent.map(([id]) => id);
	}

	leave(node: number): void {
		this.#nodes.get(node)!.dead = true;
	}

	reserve(count: number): number {
		const first = this.#nextId;
		this.#nextId += count;
		return first;
	}

	commit({ node, n, again, units }: Commit): Committed {
		const owner = this.#nodes.get(node);
		if (again && owner?.last?.n === n) return owner.last.committed;
		const now = this.#now();
		const outcomes = new Map<number, UnitOutcome>();
		const isFenced = !owner || owner.dead;
		units.forEach((unit, place) => {
			const outcome = isFenced ? { refused: fenced() } : this.#apply(unit, node, now);
			if (outcome) outcomes.set(place, outcome);
		});
		const committed = { now, outcomes };
		if (owner) owner.last = { n, committed };
		if (!isFenced) this.#remember({ node, n, units, at: now, outcomes });
		return committed;
	}

	#remember({ node, n, units, at, outcomes }: Omit<Commit, "again"> & { at: number } & Pick<Committed, "outcomes">) {
		const logs = units.flatMap(({ log }, place) => {
			const outcome = outcomes.get(place);
			return log && !(outcome && "refused" in outcome) ? [log] : [];
		});
		this.#commits.push({
			node,
			n,
			at,
			missed: false,
			created: logs.flatMap(({ id, create }) => (create ? [{ ...this.#logs.get(id)!.log }] : [])),
			grown: logs.flatMap(({ id, batch }) => (batch ? [{ id, batch }] : [])),
			sealed: logs.flatMap(({ id, seal }) => (seal ? [{ id, head: this.#logs.get(id)!.log.head, at }] : [])),
		});
	}

	#apply({ writes, log }: Unit, node: number, now: number): UnitOutcome | undefined {
		try {
			const base = log?.create ? this.#base(log.create) : undefined;
			for (const write of writes) this.#things.apply(write, { node, now });
			if (log) this.#write(log, base ?? 0, node, now);
			return base === undefined ? undefined : { base };
		} catch (cause) {
			const refused =
				cause instanceof Refused ? cause : new Refused("conflict", toNexusError(cause).message, { cause });
			return { refused };
		}
	}

	/** Where a new log begins in its chain. */
	#base({ log: name, chain }: LogSpec): number {
		if (this.#byName.has(name)) throw existsAlready(name);
		if (chain === undefined) return 0;
		const last = this.#linksOf(chain).at(-1)?.log;
		if (last && last.sealedAt === undefined) throw linkUnsealed(chain);
		return Math.max(this.#removedUpTo.get(chain) ?? 0, last ? last.base + last.head : 0);
	}

	#write(write: LogWrite, base: number, node: number, now: number): void {
		if (write.create) {
			const log = { ...write.create, id: write.id, base, createdAt: now, head: 0, bytes: 0 };
			const entry = { log, node, segments: [], tail: [] };
			this.#logs.set(write.id, entry);
			this.#byName.set(log.log, entry);
		}
		const entry = this.#logs.get(write.id)!;
		if (write.cut) {
			const { first, count, bytes } = write.cut;
			const segment = new Batch(first, count, Buffer.from(bytes).toString());
			entry.segments.push(segment);
			entry.tail = [];
			entry.log.bytes += segmentBytesOf(write.cut);
			entry.log.head = segment.last;
		} else if (write.batch) {
			entry.tail.push(...write.batch.records);
			entry.log.head = write.batch.last;
		}
		if (write.seal) entry.log.sealedAt = now;
	}

	#linksOf(chain: string): MemoryLog[] {
		return [...this.#logs.values()]
			.filter((entry) => entry.log.chain === chain)
			.sort((a, b) => a.log.base - b.log.base);
	}

	find(name: string): StoredLog | undefined {
		return copy(this.#byName.get(name));
	}

	read(id: number, offset: number): Batch | undefined {
		const entry = this.#logs.get(id);
		const segment = entry?.segments.findLast(({ first, last }) => first <= offset && last >= offset);
		return segment ?? (entry && tailOf(entry));
	}

	link(chain: string, after: number): StoredLog | undefined {
		return copy(this.#linksOf(chain).find(({ log }) => log.sealedAt === undefined || log.base + log.head > after));
	}

	chain(chain: string): { start: number; head: number } | undefined {
		const removed = this.#removedUpTo.get(chain);
		const start = removed ?? 0;
		const last = this.#linksOf(chain).at(-1)?.log;
		if (!last) return removed === undefined ? undefined : { start, head: start };
		return { start, head: Math.max(start, last.base + last.head) };
	}

	chainWith<T>(chain: string, query: Query<T>): ChainWith<T> {
		const newest = copy(this.#linksOf(chain).at(-1));
		const ends = this.chain(chain) ?? { start: 0, head: 0 };
		return { ...ends, newest, answer: this.#things.answer(query) };
	}

	list(query: LogQuery): StoredLog[] {
		// In the order of commits: ids are reserved in blocks, and say nothing about it.
		const all = [...this.#logs.values()];
		const before = query.before === undefined ? all.length : all.findIndex(({ log }) => log.log === query.before);
		return all
			.slice(0, Math.max(0, before))
			.reverse()
			.filter((entry) => !query.orphaned || (entry.log.sealedAt === undefined && this.#isDead(entry.node)))
			.map((entry) => entry.log)
			.filter((log) => query.kind === undefined || log.kind === query.kind)
			.filter((log) => query.chain === undefined || log.chain === query.chain)
			.filter((log) => query.live === undefined || (log.sealedAt === undefined) === query.live)
			.slice(0, query.limit ?? Infinity)
			.map((log) => ({ ...log }));
	}

	#isDead(node: number): boolean {
		return this.#nodes.get(node)?.dead ?? true;
	}

	adopt(name: string, node: number): Adopted {
		const entry = this.#byName.get(name);
		if (!entry || entry.log.sealedAt !== undefined) throw noLiveLog(name);
		if (entry.node !== node && !this.#isDead(entry.node)) throw ownedByAnother(name);
		if (this.#isDead(node)) throw fenced();
		entry.node = node;
		return { log: { ...entry.log }, tail: tailOf(entry) };
	}

	oldestSealed(kinds: Kinds): StoredLog | undefined {
		const sealed = [...this.#logs.values()].filter(({ log }) => log.sealedAt !== undefined && isOf(kinds, log));
		return copy(sealed.sort((a, b) => a.log.sealedAt! - b.log.sealedAt! || a.log.id - b.log.id)[0]);
	}

	totalBytes(countedFor?: string): number {
		let bytes = 0;
		for (const { log } of this.#logs.values())
			if (countedFor === undefined || log.countedFor === countedFor) bytes += log.bytes;
		return bytes;
	}

	removeSome(id: number): boolean {
		const entry = this.#logs.get(id);
		if (!entry) return true;
		const { chain, base, head } = entry.log;
		if (chain !== undefined) this.#removedUpTo.set(chain, Math.max(this.#removedUpTo.get(chain) ?? 0, base + head));
		this.#byName.delete(entry.log.log);
		this.#logs.delete(id);
		return true;
	}

	tidy(): { more: boolean; lagging: ReadonlySet<number> } {
		const kept = this.#commits.filter(({ at }) => this.#now() - at < COMMITS_KEPT_MS);
		this.#forgotten += this.#commits.length - kept.length;
		this.#commits = kept;
		return { more: kept.length > 0, lagging: new Set() };
	}

	notify({ node, topics }: StoreNotification): void {
		for (const following of this.#followings) {
			if (following.node === node) continue;
			this.#tell(following);
			if (topics.size > 0) following.follower.onNotify(topics);
		}
	}

	follow(node: number, follower: Follower): Following {
		const following = { node, follower, next: this.#forgotten + this.#commits.length };
		this.#followings.add(following);
		return { look: () => this.#tell(following), stop: () => void this.#followings.delete(following) };
	}

	#tell(following: MemoryFollowing): void {
		const { node, follower } = following;
		let missed = following.next < this.#forgotten;
		const commits = this.#commits.slice(Math.max(0, following.next - this.#forgotten));
		following.next = this.#forgotten + this.#commits.length;
		for (const { at: _, ...commit } of commits) {
			if (commit.node === node) continue;
			follower.onChange({ ...commit, missed, grown: commit.grown.filter(({ id }) => follower.wanted.has(id)) });
			missed = false;
		}
		if (missed) follower.onChange({ node, n: 0, missed, created: [], grown: [], sealed: [] });
	}
}

function isOf(kinds: Kinds, { kind, countedFor }: StoredLog): boolean {
	if ("countedFor" in kinds) return countedFor === kinds.countedFor;
	return "only" in kinds ? kinds.only === kind : !kinds.except.includes(kind);
}

const copy = (entry: MemoryLog | undefined): StoredLog | undefined => entry && { ...entry.log };

const tailOf = ({ log, tail }: MemoryLog): Batch | undefined =>
	tail.length > 0 ? Batch.of(log.head - tail.length + 1, tail) : undefined;
