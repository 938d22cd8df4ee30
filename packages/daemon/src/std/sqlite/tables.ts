/** Tables in a SQLite file: every statement is prepared once, and the steps of an operation are executed one after another in the open transaction. */

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { idsAfter, Refused } from "@nexus-stream/protocol";
import { ddlFor } from "../sql/ddl.ts";
import {
	type Row,
	SQLITE,
	type SqlReader,
	type SqlTable,
	type SqlValue,
	type Step,
	storable,
	textFor,
} from "../sql/sql.ts";
import type { CommitFacts } from "../write.ts";
import { migrate, type SqliteFile } from "./sqlite.ts";

/** Opens all tables of a list, by their names. One may read the rows of another, so all of them are there before the first is opened. */
export function openTables<All>(file: SqliteFile, tables: { readonly [Name in keyof All]: SqlTable<All[Name]> }): All {
	const listed = Object.entries(tables) as [string, SqlTable<unknown>][];
	for (const [, { name, schema }] of listed)
		migrate(
			file,
			name,
			schema.map((each) => ddlFor(SQLITE, each)),
		);
	const reader = readerOf(file.db);
	const execute = executorOf(
		file.db,
		listed.flatMap(([, { sql }]) => Object.values(sql ?? {})),
	);
	for (const [, { name, ops, listedBy }] of listed) {
		if (listedBy) idsAfter(greatestId(reader, listedBy) ?? "");
		if (ops) file.tables.register(name, appliersOf(ops, execute));
	}
	return Object.fromEntries(listed.map(([name, table]) => [name, table.reads(reader)])) as All;
}

function greatestId(reader: SqlReader, { table, id }: { table: string; id: string }): string | undefined {
	const greatest = reader.one(`SELECT max(${id}) AS id FROM ${table}`, (row) => row.id)();
	return typeof greatest === "string" ? greatest : undefined;
}

function appliersOf(ops: NonNullable<SqlTable<unknown>["ops"]>, execute: (step: Step) => void) {
	const applierOf =
		(stepsOf: (facts: CommitFacts, ...args: never[]) => readonly Step[]) =>
		(facts: CommitFacts, ...args: never[]): void => {
			for (const step of stepsOf(facts, ...args)) execute(step);
		};
	return Object.fromEntries(Object.entries(ops).map(([op, stepsOf]) => [op, applierOf(stepsOf)]));
}

const prepare = (db: DatabaseSync, sql: string): StatementSync => db.prepare(textFor(SQLITE, sql));

/** Throws the refusal of a step whose expectation is not met. */
function executorOf(db: DatabaseSync, statements: readonly string[]): (step: Step) => void {
	const prepared = new Map(
		statements.map((sql) => {
			const statement = prepare(db, sql);
			const isQuery = /^\s*SELECT\b/.test(sql);
			const affects = (values: readonly SqlValue[]) =>
				isQuery ? statement.get(...values) !== undefined : statement.run(...values).changes > 0;
			return [sql, affects] as const;
		}),
	);
	return ({ sql, values, expect, refusal }) => {
		const affects = prepared.get(sql);
		if (!affects) throw new TypeError(`no table lists the statement ${sql}`);
		const found = affects(storable(values));
		if (expect === undefined || found === (expect === "row")) return;
		throw refusal?.() ?? new Refused("conflict", "a precondition does not hold");
	};
}

function readerOf(db: DatabaseSync): SqlReader {
	const first = (sql: string) => {
		const statement = prepare(db, sql);
		return (values: SqlValue[]) => statement.get(...storable(values)) as Row | undefined;
	};
	return {
		get(sql, of) {
			const find = first(sql);
			return (...values) => {
				const row = find(values);
				return row && of(row);
			};
		},
		one(sql, of) {
			const find = first(sql);
			return (...values) => of(find(values)!);
		},
		all(sql, of) {
			const statement = prepare(db, sql);
			return (...values) => (statement.all(...storable(values)) as Row[]).map(of);
		},
		has(sql) {
			const find = first(sql);
			return (...values) => find(values) !== undefined;
		},
		each(sql) {
			const statement = prepare(db, sql);
			statement.setReturnArrays(true);
			return (values, take) => {
				for (const row of statement.iterate(...storable(values))) if (!take(row as unknown as SqlValue[])) return;
			};
		},
	};
}
