/** A commit in PostgreSQL: one batch, which is one round trip and one transaction. Nothing that two daemons share is locked in it. */

import { Refused, wordsOf } from "@nexus-stream/protocol";
import type { PgAnswer, PgStatement } from "../../std/postgres/postgres.ts";
import {
	BatchFailure,
	type Postgres,
	postgresFailure,
	type RunBatch,
	stateOf,
	UNMET,
} from "../../std/postgres/postgres.ts";
import { allFenced, type Refusal, refusalsIn, UnitFault } from "../sqlite/faults.ts";
import type { JournalNeeds } from "../sqlite/journal.ts";
import { type Commit, type Committed, OutcomeUnknown, type Unit, type UnitOutcome } from "../storage.ts";
import { JournalRow, type PlanFacts, type PlannedStatement, type StepsOfWrite, statementsOf } from "./plan.ts";
import { COMMIT } from "./schema.ts";

/** Daemons that lock each other out try again at once, so many times. */
const ATTEMPTS_MAX = 3;

export interface PostgresCommitsParts {
	readonly postgres: Pick<Postgres, "commits">;
	readonly stepsOf: StepsOfWrite;
	/** The journal rows of the logs that are written through this store. */
	readonly needs: JournalNeeds;
	/** `process`: what holds records alone is not flushed. */
	readonly durability: "process" | "power";
}

export class PostgresCommits {
	readonly #parts: PostgresCommitsParts;
	readonly #row = new JournalRow();
	/** The last commit that is known to be applied. A store without it went back behind it. */
	last = 0;

	constructor(parts: PostgresCommitsParts) {
		this.#parts = parts;
	}

	/** Units get a savepoint and a round trip each only when one of them was refused, which hardly ever happens. */
	async apply(commit: Commit): Promise<Committed> {
		let isApart = false;
		for (let attempt = 1; ; attempt++) {
			try {
				const committed = await (isApart ? this.#apart(commit) : this.#whole(commit));
				this.#remember(commit, committed);
				return committed;
			} catch (cause) {
				const isLocked = postgresFailure(cause)?.kind === "locked" && attempt < ATTEMPTS_MAX;
				if (cause instanceof UnitFault) isApart = true;
				else if (!isLocked) throw cause;
			}
		}
	}

	#factsOf({ node, n }: Commit): PlanFacts {
		return { node, n, stepsOf: this.#parts.stepsOf };
	}

	#journalOf({ node, n, units }: Commit, isEmpty: boolean): PgStatement {
		const isFlushed = this.#parts.durability === "power" || units.some(needsFlush);
		const row = this.#row.valuesOf(isEmpty ? [] : units, () => false);
		return { text: COMMIT.journal, values: [node, n, this.last, ...row, isFlushed ? "on" : "off"] };
	}

	async #whole(commit: Commit): Promise<Committed> {
		const planned: PlannedStatement[] = [];
		const facts = this.#factsOf(commit);
		commit.units.forEach((unit, place) => {
			try {
				planned.push(...statementsOf(unit, place, facts));
			} catch (cause) {
				throw new UnitFault(cause);
			}
		});
		const { commits } = this.#parts.postgres;
		let answers: PgAnswer[];
		try {
			answers = await commits.run([this.#journalOf(commit, false), ...planned]);
		} catch (cause) {
			if (!(cause instanceof BatchFailure)) throw cause;
			if (cause.isUnknown) throw new OutcomeUnknown(cause);
			if (cause.place === 0) return this.#unnamed(commit, cause);
			throw planned[cause.place - 1]?.refusalOf(cause) ? new UnitFault(cause) : cause;
		}
		const outcomes = new Map<number, UnitOutcome>();
		planned.forEach(({ unit, isCreation }, at) => {
			if (isCreation) outcomes.set(unit, { base: baseIn(answers[at + 1]!) });
		});
		return { now: Number(answers[0]!.rows[0]![1]), outcomes };
	}

	/** The journal did not take the row: the commit was applied before, the node is dead, or the store went back behind its last commit. */
	async #unnamed(commit: Commit, cause: BatchFailure): Promise<Committed> {
		const failure = postgresFailure(cause);
		const isThere = failure?.constraint === "journal_pkey";
		if (!isThere && stateOf(cause) !== UNMET) throw cause;
		const ids = commit.units.flatMap(({ log }) => (log?.create ? [log.id] : []));
		const { node, n } = commit;
		const [made, bases, time] = await this.#parts.postgres.commits.run([
			{ text: COMMIT.made, values: [node, n] },
			{ text: COMMIT.bases, values: [ids] },
			{ text: COMMIT.time },
		]);
		const row = made!.rows[0];
		if (!row || !(isThere || commit.again)) return allFenced(commit, Number(time!.rows[0]![0]));
		const outcomes = refusalsIn(row[1]!);
		const baseOf = new Map(bases!.rows.map(([id, base]) => [Number(id), Number(base)]));
		commit.units.forEach(({ log }, place) => {
			const base = log?.create && !outcomes.has(place) ? baseOf.get(log.id) : undefined;
			if (base !== undefined) outcomes.set(place, { base });
		});
		return { now: Number(row[0]), outcomes };
	}

	#apart(commit: Commit): Promise<Committed> {
		return this.#parts.postgres.commits.transaction(async (run) => {
			try {
				return await this.#oneByOne(commit, run);
			} catch (cause) {
				if (!(cause instanceof OutcomeUnknown)) await run([{ text: COMMIT.rollback }]).catch(() => {});
				throw cause;
			}
		});
	}

	async #oneByOne(commit: Commit, run: RunBatch): Promise<Committed> {
		const { node, n, units } = commit;
		const outcomes = new Map<number, UnitOutcome>();
		const [, journal] = await run([{ text: COMMIT.begin }, this.#journalOf(commit, true)]);
		for (let place = 0; place < units.length; place++) {
			const outcome = await this.#attempt(units[place]!, place, this.#factsOf(commit), run);
			if (outcome) outcomes.set(place, outcome);
		}
		const row = this.#row.valuesOf(units, (place) => refusedIn(outcomes, place) !== undefined);
		const rewrite = { text: COMMIT.rewrite, values: [node, n, ...row, refusalsOf(outcomes)] };
		try {
			await run([rewrite, { text: COMMIT.commit }]);
		} catch (cause) {
			throw cause instanceof BatchFailure && cause.isUnknown ? new OutcomeUnknown(cause) : cause;
		}
		return { now: Number(journal!.rows[0]![1]), outcomes };
	}

	/** A unit that is refused leaves nothing behind. */
	async #attempt(unit: Unit, place: number, facts: PlanFacts, run: RunBatch): Promise<UnitOutcome | undefined> {
		let planned: PlannedStatement[];
		try {
			planned = [...statementsOf(unit, place, facts)];
		} catch (cause) {
			return { refused: cause instanceof Refused ? cause : new Refused("conflict", wordsOf(cause), { cause }) };
		}
		if (planned.length === 0) return undefined;
		try {
			const [, ...answers] = await run([{ text: COMMIT.savepoint }, ...planned, { text: COMMIT.release }]);
			const at = planned.findIndex(({ isCreation }) => isCreation);
			return at < 0 ? undefined : { base: baseIn(answers[at]!) };
		} catch (cause) {
			const refused = cause instanceof BatchFailure ? planned[cause.place - 1]?.refusalOf(cause) : undefined;
			if (!refused) throw cause;
			await run([{ text: COMMIT.undo }, { text: COMMIT.release }]);
			return { refused };
		}
	}

	/** Which journal row each log still needs. */
	#remember({ n, units }: Commit, { outcomes }: Committed): void {
		for (let place = 0; place < units.length; place++) {
			const refused = refusedIn(outcomes, place);
			if (refused?.refusal === "fenced") return;
			const { log } = units[place]!;
			if (log && !refused) this.#parts.needs.written(log, n);
		}
		this.last = n;
	}
}

const needsFlush = ({ writes, log }: Unit): boolean =>
	writes.length > 0 || log?.create !== undefined || log?.seal === true;

const baseIn = ({ rows }: PgAnswer): number => Number(rows[0]![0]);

function refusedIn(outcomes: Committed["outcomes"], place: number): Refused | undefined {
	const outcome = outcomes.get(place);
	return outcome && "refused" in outcome ? outcome.refused : undefined;
}

function refusalsOf(outcomes: Committed["outcomes"]): string | null {
	const refusals: Refusal[] = [];
	for (const place of outcomes.keys()) {
		const refused = refusedIn(outcomes, place);
		if (refused) refusals.push([place, refused.refusal, refused.message]);
	}
	return refusals.length > 0 ? JSON.stringify(refusals) : null;
}
