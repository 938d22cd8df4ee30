/** SQL for every database: an operation is a list of statements with expectations, a read answers at once or later, and one text serves all dialects. Knows no Nexus word. */

import { type RefusalKind, Refused } from "@nexus-stream/protocol";
import type { CommitFacts, Reading } from "../write.ts";

export type SqlValue = string | number | null;

export type Row = Readonly<Record<string, SqlValue>>;

/** One statement of an operation, as a value: a store executes it at once, or sends all of a commit together. */
export interface Step {
	/** One of the statements that its table lists. */
	readonly sql: string;
	readonly values: readonly SqlValue[];
	/** Its unit is refused unless it changes or finds a row; or, with `none`, if it does. */
	readonly expect?: "row" | "none";
	readonly refusal?: () => Refused;
}

/** The store's time is not among them: a store may know it only once all statements are sent. */
export type StepFacts = Pick<CommitFacts, "node">;

/** Each operation as a pure function. It reads nothing: everything that decides is in its statements. */
export type StepsOf<Ops> = {
	readonly [Op in keyof Ops]: Ops[Op] extends (...args: infer Args) => void
		? (facts: StepFacts, ...args: Args) => readonly Step[]
		: never;
};

export const step = (sql: string, ...values: SqlValue[]): Step => ({ sql, values });

/** Refuses unless a row is changed or found. */
export const must = (sql: string, values: readonly SqlValue[], missing: string, kind?: RefusalKind): Step => ({
	sql,
	values,
	expect: "row",
	refusal: () => new Refused(kind ?? "conflict", missing),
});

/** Refuses if a row is found. */
export const mustNot = (sql: string, values: readonly SqlValue[], found: string, kind?: RefusalKind): Step => ({
	...must(sql, values, found, kind),
	expect: "none",
});

/** Prepares reads: each becomes a function of its values. */
export interface SqlReader {
	get<T>(sql: string, of: (row: Row) => T): (...values: SqlValue[]) => Reading<T | undefined>;
	/** For a query that always has one row. */
	one<T>(sql: string, of: (row: Row) => T): (...values: SqlValue[]) => Reading<T>;
	all<T>(sql: string, of: (row: Row) => T): (...values: SqlValue[]) => Reading<T[]>;
	has(sql: string): (...values: SqlValue[]) => Reading<boolean>;
	/** Hands over rows as lists of columns until `take` returns false. */
	each(sql: string): (values: SqlValue[], take: (row: readonly SqlValue[]) => boolean) => Reading<void>;
}

/** A step of a schema: one text that `ddl.ts` translates, or a text for each dialect. */
export type SchemaStep = string | Readonly<Record<Dialect["name"], string>>;

export interface SqlTable<Reads> {
	/** Its name in `schema_version` and in writes. */
	readonly name: string;
	/** How its tables came to be. A step that was released is never edited: add the next one. */
	readonly schema: readonly SchemaStep[];
	/** The table and column of ids by which its rows are listed: ids made from now on are greater than the stored ones. */
	readonly listedBy?: { table: string; id: string };
	/** The statements of its operations. A store prepares all of them before the first commit. */
	readonly sql?: Readonly<Record<string, string>>;
	readonly ops?: Readonly<Record<string, (facts: StepFacts, ...args: never[]) => readonly Step[]>>;
	reads(db: SqlReader): Reads;
}

/** The words in which databases differ. The common text has `greatest(a, b)`, `least(a, b)` of values that are not null, and `listOf(?1)`: the texts of a JSON list. */
export interface Dialect {
	readonly name: "sqlite" | "postgres";
	readonly greatest: string;
	readonly least: string;
	listOf(json: string): string;
	/** The n-th parameter, from 1. */
	parameter(n: number): string;
}

export const SQLITE: Dialect = {
	name: "sqlite",
	greatest: "max",
	least: "min",
	listOf: (json) => `(SELECT value FROM json_each(${json}))`,
	parameter: (n) => `?${n}`,
};

export const POSTGRES: Dialect = {
	name: "postgres",
	greatest: "greatest",
	least: "least",
	listOf: (json) => `(SELECT json_array_elements_text(CAST(${json} AS json)))`,
	parameter: (n) => `$${n}`,
};

/** A quoted text, a parameter, or a word that is translated. */
const TRANSLATED = /'(?:[^']|'')*'|\?(\d*)|\b(greatest|least|listOf)\(/g;

/** The common text in a dialect. A parameter without a number is the one after the greatest so far, as in SQLite. */
export function textFor(dialect: Dialect, sql: string): string {
	let greatest = 0;
	const numbered = sql.replace(TRANSLATED, (all, digits?: string, word?: "greatest" | "least" | "listOf") => {
		if (word !== undefined) return word === "listOf" ? all : `${dialect[word]}(`;
		if (digits === undefined) return all;
		const n = digits === "" ? greatest + 1 : Number(digits);
		greatest = Math.max(greatest, n);
		return dialect.parameter(n);
	});
	return numbered.replace(/\blistOf\(([^()]+)\)/g, (_, json: string) => dialect.listOf(json));
}

/** Not every database takes U+0000 in text. */
export function storable(values: readonly SqlValue[]): readonly SqlValue[] {
	for (const value of values) {
		if (typeof value === "string" && value.includes("\0"))
			return values.map((each) => (typeof each === "string" ? each.replaceAll("\0", "\uFFFD") : each));
	}
	return values;
}

/** JSON text with storable strings, keys included. */
export function jsonText(value: unknown): string {
	const json = JSON.stringify(value);
	// An escaped backslash before "u0000" makes it plain text.
	return json.includes("\\u0000") ? json.replace(/\\(?:\\|u0000)/g, (it) => (it === "\\\\" ? it : "\uFFFD")) : json;
}

export const jsonOrNull = (value: unknown): string | null => (value === undefined ? null : jsonText(value));

/** The number of the row that a page ends before, as an expression: also when that row is forgotten since. Newer rows have greater ids. */
export const pageEnd = (table: string, id: string, cursor: string): string =>
	`coalesce((SELECT seq FROM ${table} WHERE ${id} = ${cursor}),
	(SELECT seq + 1 FROM ${table} WHERE ${id} < ${cursor} ORDER BY ${id} DESC LIMIT 1), 0)`;
