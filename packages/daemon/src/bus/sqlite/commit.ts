/** A commit in a SQLite file: one journal row for many logs, because a row per log and tick would cost more than its tokens. A tail that is big enough becomes a segment. */

import { crc32 } from "node:zlib";
import { Refused } from "@nexus-stream/protocol";
import type { SqliteFile } from "../../std/sqlite/sqlite.ts";
import { isStoreFull, storeFailure } from "../../std/store-failure.ts";
import type { LogSpec } from "../port.ts";
import {
	type Commit,
	type Committed,
	existsAlready,
	type LogWrite,
	linkUnsealed,
	segmentBytesOf,
	type Unit,
	type UnitOutcome,
} from "../storage.ts";
import { allFenced, type Refusal, refusalOf, refusalsIn, segmentCrc, UnitFault } from "./faults.ts";
import { type RowChanges, textOfChanges } from "./following.ts";
import { type JournalNeeds, JournalText, type Tails } from "./journal.ts";
import type { Statements } from "./schema.ts";

interface CommitsParts {
	file: SqliteFile;
	/** The store's time. */
	now(): number;
	sql: Statements;
	tails: Tails;
	/** The journal rows of the logs that are written through this store. */
	needs: JournalNeeds;
}

export class Commits {
	readonly #file: SqliteFile;
	readonly #now: () => number;
	readonly #sql: Statements;
	readonly #tails: Tails;
	readonly #needs: JournalNeeds;
	readonly #journal = new JournalText();
	/** Other daemons may follow the commits. */
	isShared = false;

	constructor({ file, now, sql, tails, needs }: CommitsParts) {
		this.#file = file;
		this.#now = now;
		this.#sql = sql;
		this.#tails = tails;
		this.#needs = needs;
	}

	/** A savepoint keeps every page that its unit changes, and hardly any unit is refused: units get one only when one of them was. */
	apply(commit: Commit): Committed {
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
			return this.#applyAll(commit, row, apart);
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

	#applyAll({ node, n, units }: Commit, row: number, apart: boolean): Committed {
		const now = this.#now();
		const outcomes = new Map<number, UnitOutcome>();
		const refusals: Refusal[] = [];
		const journal = this.#journal;
		const changes: RowChanges | undefined = this.isShared ? { created: 0, sealed: [] } : undefined;
		journal.begin();
		for (let place = 0; place < units.length; place++) {
			const unit = units[place]!;
			const { log } = unit;
			if (log && !log.create && unit.writes.length === 0) {
				this.write(log, row, now);
			} else {
				const outcome = this.#attempt(unit, node, row, now, apart);
				if (outcome) outcomes.set(place, outcome);
				if (outcome && "refused" in outcome) {
					refusals.push([place, outcome.refused.refusal, outcome.refused.message]);
					continue;
				}
			}
			if (log && ((!log.cut && !log.seal) || this.isShared)) journal.add(log);
			if (log && changes) noteChanges(changes, log);
		}
		const refused = refusals.length > 0 ? JSON.stringify(refusals) : null;
		const entries = journal.bytes;
		if (changes) this.#sql.addShared.run(row, entries, crc32(entries), node, n, now, refused, textOfChanges(changes));
		else this.#sql.addJournal.run(row, entries, crc32(entries), node, n, now, refused);
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
			if (log) this.write(log, row, now);
			if (apart) sql.release.run();
			return base === undefined ? undefined : { base };
		} catch (cause) {
			// A full disk refuses everything, and has undone all of it on some occasions: then the commit itself has to fail. So it does when
			// a log cannot be written: that is nothing a unit could be refused for.
			const isOwnFault = cause instanceof Refused || (isApplying && !isStoreFull(cause));
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
			throw storeFailure(cause)?.kind === "duplicate" ? existsAlready(log) : cause;
		}
		return base;
	}

	#nextBase(chain: string): number {
		const last = this.#sql.chainEnd.get(chain);
		if (!last) return Number(this.#sql.removedUpTo.get(chain)?.up_to ?? 0);
		if (last.sealed_at === null) throw linkUnsealed(chain);
		return Math.max(Number(last.up_to ?? 0), Number(last.base) + Number(last.head));
	}

	/** Moves the tail into a segment, or only seals the log. */
	write({ id, cut, seal }: LogWrite, row: number, now: number): void {
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
}

function noteChanges(changes: RowChanges, { id, create, cut, seal }: LogWrite): void {
	if (create) changes.created++;
	if (seal) changes.sealed.push([id, cut ? cut.first + cut.count - 1 : 0]);
}
