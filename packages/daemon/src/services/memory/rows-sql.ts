/** The memory in SQL. How its text is searched differs between databases (`MemorySearch`). */

import { Columns, insertInto, number, text } from "../../std/sql/columns.ts";
import { must, type Row, type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import type { MemoryChange, MemoryItem, MemoryOps, MemoryProvenance, MemoryRows } from "./rows.ts";

/** Full-text search in a database. Its index changes in the transaction of the row. */
export interface MemorySearch {
	/** Makes the index of the table `memory`; the tables of the step are translated. */
	readonly index: string;
	/** Finds rows of `memory` that match ?2 and are in the banks of ?1, best first, at most ?3. */
	readonly find: (inBanks: string) => string;
	/** Where the database cannot make what is searched of the text alone: it is kept with the row of the id ?1, as ?2. */
	readonly kept?: { readonly sql: string; keptOf(text: string): string };
	/** The query for these words; undefined without a word. */
	matchOf(words: string): string | undefined;
}

const PROVENANCE_COLUMNS = `at INTEGER NOT NULL, run_id TEXT, agent TEXT, channel TEXT, account TEXT, sender TEXT`;

const schemaWith = ({ index }: MemorySearch): readonly SchemaStep[] => [
	`
	CREATE TABLE memory (
		seq INTEGER PRIMARY KEY,
		id TEXT NOT NULL UNIQUE,
		bank TEXT NOT NULL,
		text TEXT NOT NULL,
		${PROVENANCE_COLUMNS}
	) STRICT;
	CREATE INDEX memory_bank ON memory (bank, id);
	${index}
	CREATE TABLE memory_change (
		seq INTEGER PRIMARY KEY AUTOINCREMENT,
		id TEXT NOT NULL,
		bank TEXT NOT NULL,
		change TEXT NOT NULL,
		${PROVENANCE_COLUMNS}
	) STRICT;
	`,
];

const ITEM = new Columns<Omit<MemoryItem, "provenance">>({ id: text("id"), bank: text("bank"), text: text("text") });

const CHANGE = new Columns<Omit<MemoryChange, "provenance" | "seq">>({
	id: text("id"),
	bank: text("bank"),
	change: text("change"),
});

const PROVENANCE = new Columns<MemoryProvenance>({
	at: number("at"),
	runId: text("run_id"),
	agent: text("agent"),
	channel: text("channel"),
	account: text("account"),
	sender: text("sender"),
});

/** Older changes are dropped. */
const CHANGES_MAX = 10_000;

/** The list of banks as one JSON parameter; null = all. */
const IN_BANKS = "(CAST(?1 AS TEXT) IS NULL OR memory.bank IN listOf(?1))";

const SQL = {
	roomInBank: "SELECT 1 WHERE (SELECT count(*) FROM memory WHERE bank = ?) < ?",
	room: "SELECT 1 WHERE (SELECT count(*) FROM memory) < ?",
	add: insertInto("memory", ITEM, PROVENANCE),
	remove: "DELETE FROM memory WHERE id = ? AND bank = ?",
	note: insertInto("memory_change", CHANGE, PROVENANCE),
	trim: "DELETE FROM memory_change WHERE seq <= (SELECT max(seq) FROM memory_change) - ?",
};

const noted = (id: string, bank: string, change: MemoryChange["change"], provenance: MemoryProvenance) => [
	step(SQL.note, ...CHANGE.values({ id, bank, change }), ...PROVENANCE.values(provenance)),
	step(SQL.trim, CHANGES_MAX),
];

const opsWith = ({ kept }: MemorySearch): StepsOf<MemoryOps> => ({
	add: (_, item, { itemsMax, itemsTotalMax }) => [
		must(
			SQL.roomInBank,
			[item.bank, itemsMax],
			`This memory bank is full (${itemsMax} items): forget some of them first.`,
		),
		must(SQL.room, [itemsTotalMax], `The memory is full (${itemsTotalMax} items): the operator has to make room.`),
		step(SQL.add, ...ITEM.values(item), ...PROVENANCE.values(item.provenance)),
		...(kept ? [step(kept.sql, item.id, kept.keptOf(item.text))] : []),
		...noted(item.id, item.bank, "added", item.provenance),
	],
	forget: (_, { id, bank }, provenance) => [
		must(SQL.remove, [id, bank], `There is no memory ${id}.`),
		...noted(id, bank, "forgotten", provenance),
	],
});

export const memoryTable = (search: MemorySearch): SqlTable<MemoryRows> => ({
	name: "memory",
	schema: schemaWith(search),
	listedBy: { table: "memory", id: "id" },
	sql: { ...SQL, ...(search.kept && { keep: search.kept.sql }) },
	ops: opsWith(search),
	reads(db) {
		const list = db.all(
			`SELECT * FROM memory WHERE ${IN_BANKS} AND (CAST(?2 AS TEXT) IS NULL OR id < ?2) ORDER BY id DESC LIMIT ?3`,
			itemOf,
		);
		const found = db.all(search.find(IN_BANKS), itemOf);
		const changes = db.all(
			"SELECT * FROM memory_change WHERE CAST(?1 AS BIGINT) IS NULL OR seq < ?1 ORDER BY seq DESC LIMIT ?2",
			(row) => ({ seq: Number(row.seq), ...CHANGE.of(row), provenance: PROVENANCE.of(row) }),
		);
		return {
			get: db.get("SELECT * FROM memory WHERE id = ?", itemOf),
			same: db.get("SELECT * FROM memory WHERE bank = ? AND text = ? ORDER BY id LIMIT 1", itemOf),
			list: ({ banks, limit, before = null }) => list(listOrNull(banks), before, limit),
			search(words, { banks, limit }) {
				const match = search.matchOf(words);
				return match === undefined ? [] : found(listOrNull(banks), match, limit);
			},
			changes: ({ limit, before = null }) => changes(before, limit),
		};
	},
});

const listOrNull = (banks: readonly string[] | undefined): string | null =>
	banks === undefined ? null : JSON.stringify(banks);

const itemOf = (row: Row): MemoryItem => ({ ...ITEM.of(row), provenance: PROVENANCE.of(row) });
