/** The parts that tables of rows with an owner share: a row belongs to the daemon that committed it, until that one is dead (ST19). */

import { must, type Step, type StepFacts } from "../std/sql/sql.ts";

/** The daemons that use the store, one row per start. The Bus keeps it. */
export const NODE_TABLE = `CREATE TABLE IF NOT EXISTS node (id INTEGER PRIMARY KEY, name TEXT NOT NULL, renewed_at INTEGER NOT NULL, dead INTEGER NOT NULL DEFAULT 0) STRICT`;

/** SQL condition: the row's owner lives. An unknown node counts as dead. */
export const ownerLives = (table: string): string =>
	`EXISTS (SELECT 1 FROM node WHERE node.id = ${table}.node AND NOT node.dead)`;

/** Makes a left-behind row the committing node's. `waits` says which rows still have something to be done; others, and those of a living owner, are refused. */
export const adoption = (table: string, id: string, waits: string): string =>
	`UPDATE ${table} SET node = ?1 WHERE ${id} = ?2 AND ${waits} AND (node = ?1 OR NOT ${ownerLives(table)})`;

export const adopted = (sql: string, { node }: StepFacts, ids: readonly string[]): Step[] =>
	ids.map((id) => must(sql, [node, id], `${id} is not left behind: its owner lives, or it has ended.`));
