/**
 * The durable store of the Bus. A commit of many logs is one journal row, because a row per log and tick would cost more than the
 * tokens it holds; a log's tail becomes a segment row when it is big enough or the log is sealed, and the journal rows go.
 */

import { crc32 } from "node:zlib";
import { Refused } from "@nexus-stream/protocol";
import { migrate, readTogether, type SqliteFile, sqliteFailure } from "../../std/sqlite.ts";
import type { Query, Reading } from "../../std/write.ts";
import type { LogQuery, LogSpec } from "../port.ts";
import { Batch } from "../reading/batch.ts";
import { existsAlready, fenced, linkUnsealed, noLiveLog, ownedByAnother } from "../refusals.ts";
import {
	type Adopted,
	type ChainWith,
	type Commit,
	type Committed,
	type Hint,
	type Joined,
	type Kinds,
	type LogWrite,
	OutcomeUnknown,
	type Storage,
	type StoredLog,
	segmentBytesOf,
	type Unit,
	type UnitOutcome,
} from "../storage.ts";
import { isWholeSegment, segmentCrc } from "./checksum.ts";
import { allFenced, damaged, type Refusal, refusalOf, refusalsIn, UnitFault, unlessCorrupt } from "./faults.ts";
import { JournalNeeds, lastIdUsed } from "./journal.ts";
import { JournalText } from "./journal-text.ts";
import { BUS_AREA, BUS_STEPS, kindColumns, prepared, type Statements } from "./schema.ts";
import { type LogRow, type Owned, ownedOf, storedOf, Tails } from "./tails.ts";

/** A log that is not cut is cut once this many journal rows came after its first uncut record. */
const JOURNAL_ROWS_BEHIND_MAX = 4096;
const JOURNAL_ROWS_PER_TIDY = 2048;
const SEGMENTS_PER_REMOVAL = 16;

/** `now` is the store's time. */
export function sqliteStorage(file: SqliteFile, now: () => number = Date.now): Storage {
	// A step of the schema calls it.
	file.db.function("journal_crc", { deterministic: true }, (entries) => crc32(entries as string));
	migrate(file, BUS_AREA, BUS_STEPS);
	return new SqliteStorage(file, now);
}

/** Other users of the same connection, which are called at every commit. */
const watchers = new WeakMap<SqliteFile, Set<Hint>>();

class SqliteStorage implements Storage {
	readonly #file: SqliteFile;
	readonly #now: () => number;
	readonly #sql: Statements;
	readonly #hints: Set<Hint>;
	/** The logs that are written through this store. */
	readonly #needs = new JournalNeeds();
	#journalFirst = 1;
	readonly #tails: Tails;
	readonly #journal = new JournalText();
	/** Logs of dead owners, as they were listed. */
	readonly #left = new Map<number, Adopted & Owned>();

	constructor(file: SqliteFile, now: () => number) {
		this.#file = file;
		this.#now = now;
		this.#sql = prepared(file.db);
		this.#tails = new Tails(this.#sql.journalAfter);
		this.#hints = watchers.get(file) ?? new Set();
		watchers.set(file, this.#hints);
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
			this.#journalFirst = Number(sql.firstRow.get()!.id);
			if (!sql.reserved.get()) sql.reserve.get(lastIdUsed(sql) + 1);
			return { node: Number(lastInsertRowid), now };
		});
	}

	renew(node: number): boolean {
		return this.#file.transaction(() => this.#sql.renew.run(this.#now(), node).changes) !== 0;
	}

	bury(silentMs: number): number[] {
		const rows = this.#file.transaction(() => this.#sql.bury.all(this.#now() - silentMs));
		return rows.map(({ id }) => Number(id));
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
		const committed = this.#applied(commit);
		const announced = () => {
			for (const hint of this.#hints) hint(commit);
			return committed;
		};
		// Until it is synced, a power cut may take the transaction that is in the file: tried again, it is found there and synced.
		const refused = (cause: unknown) => Promise.reject(new OutcomeUnknown(cause));
		return this.#file.sync?.().then(announced, refused) ?? announced();
	}

	/** A savepoint keeps every page that its unit changes, and hardly any unit is refused: units get one only when one of them was. */
	#applied(commit: Commit): Committed {
		try {
			return this.#commit(commit, false);
		} catch (cause) {
			if (!(cause instanceof UnitFault)) throw cause;
			return this.#commit(commit, true);
		}
	}

	#commit(commit: Commit, apart: boolean): Committed {
		let row = 0;
		const committed = this.#file.transaction(() => {
			const known = commit.again ? this.#made(commit) : undefined;
			if (known) return known;
			const { id, is_alive } = this.#sql.standing.get(commit.node)!;
			if (!is_alive) {
				this.#tails.forget();
				return allFenced(commit, this.#now());
			}
			row = Number(id) + 1;
			return this.#apply(commit, row, apart);
		});
		if (row > 0) this.#remember(commit, committed, row);
		return committed;
	}

	/** The outcome of a commit that was tried before. */
	#made({ node, n, units }: Commit): Committed | undefined {
		const row = this.#sql.made.get(node, n);
		if (!row) return undefined;
		const outcomes = refusalsIn(row.refused as string | null);
		units.forEach(({ log }, place) => {
			if (!log?.create || outcomes.has(place)) return;
			const created = this.#sql.find.get(log.create.log);
			if (created) outcomes.set(place, { base: Number(created.base) });
		});
		return { now: Number(row.at), outcomes };
	}

	#apply({ node, n, units }: Commit, row: number, apart: boolean): Committed {
		const now = this.#now();
		const outcomes = new Map<number, UnitOutcome>();
		const refusals: Refusal[] = [];
		const journal = this.#journal;
		journal.begin();
		for (let place = 0; place < units.length; place++) {
			const unit = units[place]!;
			const { log } = unit;
			if (log && !log.create && unit.writes.length === 0) {
				this.#write(log, row, now);
			} else {
				const outcome = this.#attempt(unit, node, row, now, apart);
				if (outcome) outcomes.set(place, outcome);
				if (outcome && "refused" in outcome) {
					refusals.push([place, outcome.refused.refusal, outcome.refused.message]);
					continue;
				}
			}
			if (log && !log.cut && !log.seal) journal.add(log);
		}
		const refused = refusals.length > 0 ? JSON.stringify(refusals) : null;
		const entries = journal.bytes;
		this.#sql.addJournal.run(row, entries, crc32(entries), node, n, now, refused);
		return { now, outcomes };
	}

	/** A unit that may be refused: then nothing of it stays, and nothing of the commit unless units are kept `apart`. */
	#attempt({ writes, log }: Unit, node: number, row: number, now: number, apart: boolean): UnitOutcome | undefined {
		const sql = this.#sql;
		let isApplying = false;
		if (apart) sql.savepoint.run();
		try {
			const base = log?.create && this.#create(log.id, log.create, node, row, now);
			isApplying = true;
			for (const write of writes) this.#file.tables.apply(write, { node, now });
			isApplying = false;
			if (log) this.#write(log, row, now);
			if (apart) sql.release.run();
			return base === undefined ? undefined : { base };
		} catch (cause) {
			// A full disk refuses everything, and has undone all of it on some occasions: then the commit itself has to fail. So it does when
			// a log cannot be written: that is nothing a unit could be refused for.
			const isOwnFault = cause instanceof Refused || (isApplying && sqliteFailure(cause)?.kind !== "full");
			if (!this.#file.db.isTransaction || !isOwnFault) throw cause;
			if (!apart) throw new UnitFault(cause);
			sql.undo.run();
			sql.release.run();
			return { refused: refusalOf(cause) };
		}
	}

	/** Decides the name and the place in the chain, which two daemons could both want. */
	#create(id: number, spec: LogSpec, node: number, row: number, now: number): number {
		const { log, kind, chain, meta, countedFor = null } = spec;
		const base = chain === undefined ? 0 : this.#nextBase(chain);
		const metaText = meta === undefined ? null : JSON.stringify(meta);
		try {
			this.#sql.createLog.run(id, log, kind, chain ?? null, base, metaText, now, node, row, countedFor);
		} catch (cause) {
			throw sqliteFailure(cause)?.kind === "duplicate" ? existsAlready(log) : cause;
		}
		return base;
	}

	#nextBase(chain: string): number {
		const last = this.#sql.chainEnd.get(chain);
		if (!last) return Number(this.#sql.removedUpTo.get(chain)?.up_to ?? 0);
		if (last.sealed_at === null) throw linkUnsealed(chain);
		return Math.max(Number(last.up_to ?? 0), Number(last.base) + Number(last.head));
	}

	#write({ id, cut, seal }: LogWrite, row: number, now: number): void {
		const sealedAt = seal ? now : null;
		if (cut) {
			const { first, count, bytes } = cut;
			this.#sql.addSegment.run(id, first, count, bytes, segmentCrc(id, first, count, bytes));
			this.#sql.cutLog.run(first + count - 1, segmentBytesOf(cut), sealedAt, row, id);
		} else if (seal) this.#sql.cutLog.run(0, 0, sealedAt, row, id);
	}

	/** After the commit: which journal row each log still needs. */
	#remember({ units }: Commit, { outcomes }: Committed, row: number): void {
		for (let place = 0; place < units.length; place++) {
			const { log } = units[place]!;
			const outcome = outcomes.size > 0 ? outcomes.get(place) : undefined;
			if (!log || (outcome && "refused" in outcome)) continue;
			if (log.seal) this.#tails.heads.delete(log.id);
			else if (log.batch || log.create) this.#tails.heads.set(log.id, log.batch?.last ?? 0);
			this.#needs.written(log, row);
		}
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
		const needed = Math.min(this.#needs.first(last), others === null ? last : Number(others) + 1);
		const lagging = this.#needs.before(last - JOURNAL_ROWS_BEHIND_MAX);
		const upTo = Math.min(needed, this.#journalFirst + JOURNAL_ROWS_PER_TIDY);
		if (upTo > this.#journalFirst) {
			this.#file.transaction(() => this.#sql.removeJournal.run(upTo));
			this.#journalFirst = upTo;
		}
		const left = this.#sql.leftBehind.all(last - JOURNAL_ROWS_BEHIND_MAX);
		for (const row of left) this.#cutLeft(row, last);
		for (const row of this.#sql.halfRemoved.all()) this.removeSome(Number(row.id));
		return { more: upTo < needed || left.length > 0, lagging };
	}

	call(topic: string): void {
		for (const hint of this.#hints) hint({ topic });
	}

	/** A dead owner's log may never be adopted, so the journal does not wait for it. */
	#cutLeft(row: LogRow, last: number): void {
		this.#tails.heads.delete(Number(row.id));
		const { log, tail } = this.#tails.whole(row);
		// A damaged log stays as it is: its records are looked for where they were.
		if (log.damaged !== undefined) return;
		this.#file.transaction(() => {
			const cut = tail && { first: tail.first, count: tail.count, bytes: Buffer.from(tail.text) };
			if (cut) this.#write({ id: log.id, cut }, last, 0);
			else this.#sql.cutLog.run(0, 0, null, last, log.id);
		});
		this.#left.delete(log.id);
	}

	watch(hint: Hint): () => void {
		this.#hints.add(hint);
		return () => this.#hints.delete(hint);
	}
}
