/** Tables in a PostgreSQL database: reads go to its pool, and the steps of an operation into the batch of a commit. */

import { idsAfter } from "@nexus-stream/protocol";
import { ddlFor } from "../sql/ddl.ts";
import {
	POSTGRES,
	type Row,
	type SqlReader,
	type SqlTable,
	type SqlValue,
	type Step,
	type StepFacts,
	storable,
	textFor,
} from "../sql/sql.ts";
import type { Write } from "../write.ts";
import { migratePostgres, type PgQuery, type Postgres } from "./postgres.ts";

type TablesOf<All> = { readonly [Name in keyof All]: SqlTable<All[Name]> };

const listOf = (tables: object): SqlTable<unknown>[] => Object.values(tables) as SqlTable<unknown>[];

/** The database parses one statement at a time. */
const statementsIn = (ddl: string): string[] =>
	ddl
		.replace(/--.*$/gm, "")
		.split(";")
		.map((text) => text.trim())
		.filter(Boolean);

/** One may refer to another, so they are made in the order of the list. */
export async function migrateTables(postgres: Pick<Postgres, "side">, tables: object): Promise<void> {
	for (const { name, schema } of listOf(tables))
		await migratePostgres(
			postgres,
			name,
			schema.map((step) => statementsIn(ddlFor(POSTGRES, step))),
		);
}

/** Reads the tables of a list, by their names, through one way to ask. */
export function readsOn<All>(query: PgQuery, tables: TablesOf<All>): All {
	const reader = readerOn(query);
	const entries = Object.entries(tables) as [string, SqlTable<unknown>][];
	return Object.fromEntries(entries.map(([name, table]) => [name, table.reads(reader)])) as All;
}

/** Reads from the pool. New ids are greater than those that are stored. */
export async function openPostgresTables<All>({ reads }: Postgres, tables: TablesOf<All>): Promise<All> {
	const query: PgQuery = (text, values) => reads.all(text, values);
	for (const { listedBy } of listOf(tables)) {
		if (!listedBy) continue;
		const [row] = await query(`SELECT max(${listedBy.id}) AS id FROM ${listedBy.table}`);
		if (typeof row?.id === "string") idsAfter(row.id);
	}
	return readsOn(query, tables);
}

/** Makes the statements of a write, by the tables of a list. */
export function stepsIn(tables: object): (write: Write, facts: StepFacts) => readonly Step[] {
	const byName = new Map(listOf(tables).map(({ name, ops = {} }) => [name, ops]));
	return ({ table, op, args }, facts) => {
		const ops = byName.get(table);
		if (!ops || !Object.hasOwn(ops, op)) throw new TypeError(`no table "${table}" can ${op}`);
		const steps = ops[op]!(facts, ...(args as never[]));
		return steps.map((step) => ({ ...step, sql: postgresText(step.sql), values: storable(step.values.map(checked)) }));
	};
}

/** A value of another kind would fail the whole batch, not its unit alone. */
function checked(value: SqlValue): SqlValue {
	if (value === null || typeof value === "string" || typeof value === "number") return value;
	throw new TypeError(`a value of type ${typeof value} cannot be stored`);
}

const texts = new Map<string, string>();

/** Statements are few, and each is used many times. */
function postgresText(sql: string): string {
	let text = texts.get(sql);
	if (text === undefined) {
		text = textFor(POSTGRES, sql);
		texts.set(sql, text);
	}
	return text;
}

function readerOn(query: PgQuery): SqlReader {
	const asking = (sql: string) => {
		const text = postgresText(sql);
		return async (values: readonly SqlValue[]) => (await query(text, storable(values))) as Row[];
	};
	return {
		get(sql, of) {
			const ask = asking(sql);
			return async (...values) => {
				const [row] = await ask(values);
				return row && of(row);
			};
		},
		one(sql, of) {
			const ask = asking(sql);
			return async (...values) => of((await ask(values))[0]!);
		},
		all(sql, of) {
			const ask = asking(sql);
			return async (...values) => (await ask(values)).map(of);
		},
		has(sql) {
			const ask = asking(sql);
			return async (...values) => (await ask(values)).length > 0;
		},
		each(sql) {
			const ask = asking(sql);
			return async (values, take) => {
				for (const row of await ask(values)) if (!take(Object.values(row))) return;
			};
		},
	};
}
