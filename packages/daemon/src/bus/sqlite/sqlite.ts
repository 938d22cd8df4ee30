/** The durable store of the Bus in a SQLite file: its nodes, what it finds and reads, and what it removes. `commit.ts` writes. */

import { crc32 } from "node:zlib";
import { migrate, readTogether, type SqliteFile } from "../../std/sqlite/sqlite.ts";
import type { Query, Reading } from "../../std/write.ts";
import type { LogQuery } from "../port.ts";
import { Batch } from "../reading/batch.ts";
import {
	type Adopted,
	type ChainWith,
	type Commit,
	type Committed,
	type Follower,
	type Following,
	fenced,
	type Joined,
	type Kinds,
	noLiveLog,
	OutcomeUnknown,
	ownedByAnother,
	type Storage,
	type StoredLog,
	type StoreNotification,
} from "../storage.ts";
import { Commits } from "./commit.ts";
import { damaged, isWholeSegment, unlessCorrupt } from "./faults.ts";
import { followFile, notifyFollowers } from "./following.ts";
import { JournalNeeds, type LogRow, lastIdUsed, type Owned, ownedOf, storedOf, Tails } from "./journal.ts";
import { BUS_AREA, BUS_STEPS, kindColumns, prepared, type Statements } from "./schema.ts";

/** A log that is not cut is cut once this many journal rows came after its first uncut record. */
const JOURNAL_ROWS_BEHIND_MAX = 4096;
const JOURNAL_ROWS_PER_TIDY = 2048;
const SEGMENTS_PER_REMOVAL = 16;
/** A row of the journal can be read by other daemons for at least this long. */
const JOURNAL_KEPT_MS = 5000;

/** `now` is the store's time. */
export function sqliteStorage(file: SqliteFile, now: () => number = Date.now): Storage {
	// A step of the schema calls it.
	file.db.function("journal_crc", { deterministic: true }, (entries) => crc32(entries as string));
	migrate(file, BUS_AREA, BUS_STEPS);
	return new SqliteStorage(file, now);
}

class SqliteStorage implements Storage {
	readonly #file: SqliteFile;
	readonly #now: () => number;
	readonly #sql: Statements;
	readonly #commits: Commits;
	readonly #needs = new JournalNeeds();
	#journalFirst = 1;
	/** The last row of the journal at some moments, the oldest first. */
	readonly #marks: { row: number; at: number }[] = [];
	readonly #tails: Tails;
	/** Logs of dead owners, as they were listed. */
	readonly #left = new Map<number, Adopted & Owned>();

	constructor(file: SqliteFile, now: () => number) {
		this.#file = file;
		this.#now = now;
		this.#sql = prepared(file.db);
		this.#tails = new Tails(this.#sql.journalAfter);
		this.#commits = new Commits({ file, now, sql: this.#sql, tails: this.#tails, needs: this.#needs });
	}

	join(name: string, alone: boolean): Joined {
		return this.#file.transaction(() => {
			const sql = this.#sql;
			const now = this.#now();
			if (alone) {
				sql.killAll.run();
				sql.forgetDead.run();
			}
			const { lastInsertRowid } = sql.addNode.run(name, now);
			this.#tails.node = Number(lastInsertRowid);
			this.#commits.isShared = !alone;
			this.#journalFirst = Number(sql.firstRow.get()!.id);
			if (!sql.reserved.get()) sql.reserve.get(lastIdUsed(sql) + 1);
			return { node: Number(lastInsertRowid), now };
		});
	}

	renew(node: number, leaseMs: number): boolean {
		return this.#file.transaction(() => this.#sql.renew.run(this.#now(), leaseMs, node).changes) !== 0;
	}

	expire(node: number, leaseMs: number): number[] {
		return this.#file.transaction(() => {
			this.renew(node, leaseMs);
			return this.#sql.expire.all(node, this.#now() - leaseMs).map(({ id }) => Number(id));
		});
	}

	leave(node: number): void {
		this.#file.transaction(() => this.#sql.leave.run(node));
	}

	reserve(count: number): number {
		return this.#file.transaction(() => {
			const first = Number(this.#sql.reserved.get()!.next);
			this.#sql.reserve.get(first + count);
			return first;
		});
	}

	commit(commit: Commit): Reading<Committed> {
		const committed = this.#commits.apply(commit);
		// Until it is synced, a power cut may take the transaction that is in the file: tried again, it is found there and synced.
		const refused = (cause: unknown) => Promise.reject(new OutcomeUnknown(cause));
		return this.#file.sync?.().then(() => committed, refused) ?? committed;
	}

	find(log: string): StoredLog | undefined {
		const row = this.#sql.find.get(log);
		return row && this.#tails.whole(row).log;
	}

	read(id: number, offset: number): Batch | undefined {
		const row = unlessCorrupt(() => this.#sql.segment.get(id, offset));
		if (row && Number(row.first) + Number(row.count) > offset && isWholeSegment(id, row))
			return new Batch(Number(row.first), Number(row.count), row.records as string);
		// Records that retention removed are gone with their log; a log that is still listed has lost them, or has them in its tail.
		const log = this.#sql.byId.get(id);
		if (!log) return undefined;
		if (Number(log.head) >= offset) throw damaged(log.name as string, offset);
		const { tail } = this.#tails.whole(log);
		return tail && tail.first <= offset && tail.last >= offset ? tail : undefined;
	}

	link(chain: string, after: number): StoredLog | undefined {
		const row = this.#sql.link.get(chain, after);
		return row && this.#tails.whole(row).log;
	}

	chain(chain: string): { start: number; head: number } | undefined {
		return this.#ends(chain, this.#lastLink(chain));
	}

	#lastLink(chain: string): StoredLog | undefined {
		const row = this.#sql.lastLink.get(chain);
		return row && this.#tails.whole(row).log;
	}

	#ends(chain: string, newest: StoredLog | undefined): { start: number; head: number } | undefined {
		const removed = this.#sql.removedUpTo.get(chain);
		const start = removed ? Number(removed.up_to) : 0;
		if (!newest) return removed && { start, head: start };
		return { start, head: Math.max(start, newest.base + newest.head) };
	}

	chainWith<T>(chain: string, query: Query<T>): ChainWith<T> {
		return readTogether(this.#file, () => {
			const newest = this.#lastLink(chain);
			const ends = this.#ends(chain, newest) ?? { start: 0, head: 0 };
			return { ...ends, newest, answer: this.#file.tables.answer(query) };
		});
	}

	list(query: LogQuery): StoredLog[] {
		const { kind = null, chain = null, before = null, limit = -1, orphaned: left = false, live } = query;
		const rows =
			left || live
				? this.#sql.listLive.all(kind, chain, Number(left), before, limit)
				: this.#sql.list.all(kind, chain, live === undefined ? null : 0, before, limit);
		const found = this.#tails.wholes(rows);
		// A dead owner's log does not grow, so it does not have to be read again when it is adopted.
		if (left) {
			this.#left.clear();
			for (const [n, adopted] of found.entries()) this.#left.set(adopted.log.id, { ...adopted, ...ownedOf(rows[n]!) });
		}
		return found.map(({ log }) => log);
	}

	adopt(name: string, node: number): Adopted {
		return this.#file.transaction(() => {
			const row = this.#sql.owned.get(name);
			if (!row) throw noLiveLog(name);
			if (!this.#sql.isAlive.get(node)) throw fenced();
			if (Number(row.node) !== node && !row.is_left) throw ownedByAnother(name);
			const id = Number(row.id);
			const left = this.#left.get(id);
			const { node: owner, cutAt } = ownedOf(row);
			const adopted = left?.node === owner && left.cutAt === cutAt ? left : this.#tails.whole(row);
			this.#sql.adopt.run(node, id);
			this.#left.delete(id);
			if (adopted.tail) this.#needs.set(id, cutAt + 1);
			this.#tails.heads.set(id, adopted.log.head);
			return { log: adopted.log, tail: adopted.tail };
		});
	}

	oldestSealed(kinds: Kinds): StoredLog | undefined {
		const { countedSealed, oldestSealed } = this.#sql;
		const row = "countedFor" in kinds ? countedSealed.get(kinds.countedFor) : oldestSealed.get(...kindColumns(kinds));
		return row && storedOf(row);
	}

	totalBytes(countedFor?: string): number {
		const { totalBytes, countedBytes } = this.#sql;
		return Number((countedFor === undefined ? totalBytes.get() : countedBytes.get(countedFor))!.bytes);
	}

	removeSome(id: number): boolean {
		return this.#file.transaction(() => {
			const sql = this.#sql;
			sql.rememberRemoval.run(id);
			sql.markRemoved.run(id);
			const { changes } = sql.removeSegments.run(id, SEGMENTS_PER_REMOVAL);
			if (Number(changes) === SEGMENTS_PER_REMOVAL) return false;
			sql.removeLog.run(id);
			return true;
		});
	}

	tidy(node: number): { more: boolean; lagging: ReadonlySet<number> } {
		// A node that was declared dead has nothing to tidy: others know what is still needed.
		if (!this.#sql.isAlive.get(node)) return { more: false, lagging: new Set() };
		// The last row stays: it numbers the next one, and tells what became of the last commit.
		const last = Number(this.#sql.lastRow.get()!.id);
		const others = this.#sql.othersFrom.get(node)!.cut_at;
		const unread = this.#unread(last);
		const needed = Math.min(this.#needs.first(last), others === null ? last : Number(others) + 1, unread);
		const lagging = this.#needs.before(last - JOURNAL_ROWS_BEHIND_MAX);
		const upTo = Math.min(needed, this.#journalFirst + JOURNAL_ROWS_PER_TIDY);
		if (upTo > this.#journalFirst) {
			this.#file.transaction(() => this.#sql.removeJournal.run(upTo));
			this.#journalFirst = upTo;
		}
		const left = this.#sql.leftBehind.all(last - JOURNAL_ROWS_BEHIND_MAX);
		for (const row of left) this.#cutLeft(row, last);
		for (const row of this.#sql.halfRemoved.all()) this.removeSome(Number(row.id));
		return { more: upTo < needed || left.length > 0 || unread < last, lagging };
	}

	/** The first row that other daemons may not have read yet: in a shared file, rows stay for a while. */
	#unread(last: number): number {
		if (!this.#commits.isShared) return last;
		const now = this.#now();
		const marks = this.#marks;
		if (marks.at(-1)?.row !== last) marks.push({ row: last, at: now });
		while (marks.length > 1 && now - marks[1]!.at >= JOURNAL_KEPT_MS) marks.shift();
		return now - marks[0]!.at >= JOURNAL_KEPT_MS ? marks[0]!.row : 0;
	}

	notify(notification: StoreNotification): void {
		notifyFollowers(this.#file, notification);
	}

	follow(node: number, follower: Follower): Following {
		return followFile(this.#file, this.#sql, node, follower);
	}

	/** A dead owner's log may never be adopted, so the journal does not wait for it. */
	#cutLeft(row: LogRow, last: number): void {
		this.#tails.heads.delete(Number(row.id));
		const { log, tail } = this.#tails.whole(row);
		// A damaged log stays as it is: its records are looked for where they were.
		if (log.damaged !== undefined) return;
		this.#file.transaction(() => {
			const cut = tail && { first: tail.first, count: tail.count, bytes: Buffer.from(tail.text) };
			if (cut) this.#commits.write({ id: log.id, cut }, last, 0);
			else this.#sql.cutLog.run(0, 0, null, last, log.id);
		});
		this.#left.delete(log.id);
	}
}
