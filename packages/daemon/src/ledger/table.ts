/** The parts of every kind of stored thing in a SQLite file: its tables, its statements, and the applier of its writes. */

import type { SQLInputValue, SQLOutputValue } from "node:sqlite";
import { idsAfter, Refused } from "@nexus-stream/protocol";
import { migrate, type SqliteFile } from "../std/sqlite.ts";

/** The reads of a thing, by a store that answers at once. */
export type AtOnce<Reads> = {
	[Name in keyof Reads]: Reads[Name] extends (...args: infer Args) => infer Answer
		? (...args: Args) => Exclude<Answer, Promise<unknown>>
		: never;
};

export interface SqliteTable<Reads> {
	/** Its tables in the file's `schema_version`. */
	readonly area: string;
	/** How its tables came to be. A step that was released is never edited: add the next one. */
	readonly steps: readonly string[];
	/** The table and column of ids by which its rows are listed: ids made from now on are greater than the stored ones. */
	readonly listedBy?: { table: string; id: string };
	/** Prepares its reads, and registers who applies its writes. */
	open(file: SqliteFile): Reads;
}

/** Opens all kinds of a list, by their names. One may read the tables of another, so all tables are there before the first is opened. */
export function openTables<All>(
	file: SqliteFile,
	tables: { readonly [Name in keyof All]: SqliteTable<All[Name]> },
): All {
	const named = Object.entries(tables) as [string, SqliteTable<unknown>][];
	for (const [, { area, steps }] of named) migrate(file, area, steps);
	for (const [, { listedBy }] of named) if (listedBy) idsAfter(greatestId(file, listedBy) ?? "");
	return Object.fromEntries(named.map(([name, table]) => [name, table.open(file)])) as All;
}

export type Row = Record<string, SQLOutputValue>;

export interface Statement {
	get(...values: SQLInputValue[]): Row | undefined;
	all(...values: SQLInputValue[]): Row[];
	/** How many rows it changed. */
	run(...values: SQLInputValue[]): number;
	/** Like `run`; tells the number of the new row, or undefined when there is none. */
	insert(...values: SQLInputValue[]): number | undefined;
}

/** A statement whose text values are storable: what was written is found by the same value. */
export function statement({ db }: SqliteFile, sql: string): Statement {
	const prepared = db.prepare(sql);
	return {
		get: (...values) => prepared.get(...storable(values)),
		all: (...values) => prepared.all(...storable(values)),
		run: (...values) => Number(prepared.run(...storable(values)).changes),
		insert(...values) {
			const { changes, lastInsertRowid } = prepared.run(...storable(values));
			return changes === 0 ? undefined : Number(lastInsertRowid);
		},
	};
}

/** Not every store takes U+0000 in text. Changes the list in place: no other code holds it. */
function storable(values: SQLInputValue[]): SQLInputValue[] {
	for (let n = 0; n < values.length; n++) {
		const value = values[n];
		if (typeof value === "string" && value.includes("\0")) values[n] = value.replaceAll("\0", "\uFFFD");
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

/** Refuses unless a statement found what it was to change. */
export function must(changes: number, missing: string): void {
	if (changes === 0) throw new Refused("conflict", missing);
}

function greatestId(file: SqliteFile, { table, id }: { table: string; id: string }): string | undefined {
	const greatest = statement(file, `SELECT max(${id}) AS id FROM ${table}`).get()?.id;
	return typeof greatest === "string" ? greatest : undefined;
}

/** The number of the row that a page ends before, as an expression: also when that row is forgotten since. Newer rows have greater ids. */
export const pageEnd = (table: string, id: string, cursor: string): string =>
	`coalesce((SELECT seq FROM ${table} WHERE ${id} = ${cursor}),
	(SELECT seq + 1 FROM ${table} WHERE ${id} < ${cursor} ORDER BY ${id} DESC LIMIT 1), 0)`;

/** The daemons that use the file, one row per start. The Bus keeps it. */
export const NODE_TABLE = `CREATE TABLE IF NOT EXISTS node (id INTEGER PRIMARY KEY, name TEXT NOT NULL, renewed_at INTEGER NOT NULL, dead INTEGER NOT NULL DEFAULT 0) STRICT`;

/** SQL condition: the row's owner lives. An unknown node counts as dead. */
export const ownerLives = (table: string): string =>
	`EXISTS (SELECT 1 FROM node WHERE node.id = ${table}.node AND node.dead = 0)`;

/** Makes left-behind rows the committing node's. `waits` says which rows still have something to be done; others, and those of a living owner, are refused (ST19). */
export function adoption(file: SqliteFile, table: string, id: string, waits: string) {
	const adopt = statement(
		file,
		`UPDATE ${table} SET node = ?1 WHERE ${id} = ?2 AND ${waits} AND (node = ?1 OR NOT ${ownerLives(table)})`,
	);
	return ({ node }: { readonly node: number }, ids: readonly string[]): void => {
		for (const one of ids) must(adopt.run(node, one), `${one} is not left behind: its owner lives, or it has ended.`);
	};
}
