/** The statements of a commit, unit by unit, and what a failure of each of them means. */

import { crc32 } from "node:zlib";
import { Refused, wordsOf } from "@nexus-stream/protocol";
import { type PgStatement, type PgValue, postgresFailure, stateOf, UNMET } from "../../std/postgres/postgres.ts";
import type { Step, StepFacts } from "../../std/sql/sql.ts";
import type { Write } from "../../std/write.ts";
import type { LogSpec } from "../port.ts";
import { segmentCrc } from "../sqlite/faults.ts";
import { JournalText } from "../sqlite/journal.ts";
import { existsAlready, type LogWrite, linkUnsealed, segmentBytesOf, type Unit } from "../storage.ts";
import { COMMIT } from "./schema.ts";

/** The statements of a write, as values: nothing is decided between them. Throws to refuse the unit. */
export type StepsOfWrite = (write: Write, facts: StepFacts) => readonly Step[];

/** A statement that may refuse its unit. */
export interface PlannedStatement extends PgStatement {
	readonly unit: number;
	/** The refusal that a failure of the statement stands for; undefined when it is a failure of the store. */
	refusalOf(cause: unknown): Refused | undefined;
	/** It returns where a new log begins. */
	readonly isCreation?: boolean;
}

const guarded = new Map<string, string>();

/** The statement, failing its batch when what it expects does not hold. */
function expecting({ sql, expect }: Step): string {
	if (!expect) return sql;
	const key = `${expect} ${sql}`;
	const known = guarded.get(key);
	if (known !== undefined) return known;
	const found = /^\s*SELECT\b/i.test(sql) ? `(${sql})` : undefined;
	const text =
		expect === "none"
			? `SELECT must(1 - least(count(*), 1)) FROM ${found} AS found`
			: found
				? `SELECT must(count(*)) FROM ${found} AS found`
				: `WITH changed AS (${sql} RETURNING 1) SELECT must(count(*)) FROM changed`;
	guarded.set(key, text);
	return text;
}

/** Values that cannot be stored and conditions that do not hold refuse a unit; anything else is a failure of the store. */
function refusedBy(cause: unknown): Refused | undefined {
	const kind = postgresFailure(cause)?.kind;
	if (kind === "duplicate") return new Refused("duplicate", wordsOf(cause), { cause });
	return kind === "refused" ? new Refused("conflict", wordsOf(cause), { cause }) : undefined;
}

const isUnmet = (cause: unknown): boolean => stateOf(cause) === UNMET;
const neverRefused = (): undefined => undefined;

export interface PlanFacts {
	readonly node: number;
	readonly n: number;
	readonly stepsOf: StepsOfWrite;
}

export function* statementsOf({ writes, log }: Unit, unit: number, facts: PlanFacts): Generator<PlannedStatement> {
	if (log?.create) yield creationOf(log.id, log.create, unit, facts);
	for (const write of writes)
		for (const step of facts.stepsOf(write, facts))
			yield {
				unit,
				text: expecting(step),
				values: step.values,
				refusalOf: (cause) => (isUnmet(cause) && step.refusal?.()) || refusedBy(cause),
			};
	if (log?.cut) yield cutOf(log.id, log.cut, unit, facts.n);
	if (log?.seal) yield { unit, text: COMMIT.seal, values: [facts.node, facts.n, log.id], refusalOf: neverRefused };
}

function creationOf(id: number, spec: LogSpec, unit: number, { node, n }: PlanFacts): PlannedStatement {
	const { log, kind, chain, meta, countedFor = null } = spec;
	const metaText = meta === undefined ? null : JSON.stringify(meta);
	const values = [node, n, id, log, kind, metaText, countedFor];
	return {
		unit,
		isCreation: true,
		text: chain === undefined ? COMMIT.create : COMMIT.createLink,
		values: chain === undefined ? values : [...values, chain],
		refusalOf(cause) {
			if (isUnmet(cause)) return linkUnsealed(chain!);
			return postgresFailure(cause)?.constraint === "log_name" ? existsAlready(log) : undefined;
		},
	};
}

function cutOf(id: number, cut: NonNullable<LogWrite["cut"]>, unit: number, n: number): PlannedStatement {
	const { first, count, bytes } = cut;
	const crc = segmentCrc(id, first, count, bytes);
	const values = [n, id, first, count, bytes, crc, segmentBytesOf(cut)];
	return { unit, text: COMMIT.cut, values, refusalOf: neverRefused };
}

/** The row of a commit in the journal: the new records of all its logs, and what followers have to know of it. */
export class JournalRow {
	readonly #text = new JournalText();

	/** The values from `logs` to `crc`. Good until the next row is made. */
	valuesOf(units: readonly Unit[], isRefused: (place: number) => boolean): PgValue[] {
		const logs: number[] = [];
		const heads: number[] = [];
		const created: number[] = [];
		const sealed: [id: number, head: number][] = [];
		this.#text.begin();
		for (let place = 0; place < units.length; place++) {
			const { log } = units[place]!;
			if (!log || isRefused(place)) continue;
			const head = headOf(log);
			if (log.batch || log.seal) {
				logs.push(log.id);
				heads.push(head);
			}
			if (log.create) created.push(log.id);
			if (log.seal) sealed.push([log.id, head]);
			// Also the records of a log that is cut: followers get them from here.
			this.#text.add(log);
		}
		const entries = this.#text.bytes;
		return [logs, heads, created, sealed.length > 0 ? JSON.stringify(sealed) : null, entries, crc32(entries)];
	}
}

const headOf = ({ batch, cut }: LogWrite): number => batch?.last ?? (cut ? cut.first + cut.count - 1 : 0);
