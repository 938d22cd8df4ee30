/** A kind of stored thing that only tests have: texts, each of them once. */

import type { PgQuery } from "../../packages/daemon/src/std/postgres/postgres.ts";
import type { Step } from "../../packages/daemon/src/std/sql/sql.ts";
import { migrate, type SqliteFile } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { type Query, queriesOf, type Tables, type Write, writesOf } from "../../packages/daemon/src/std/write.ts";
import { Refused } from "../../packages/protocol/src/protocol.ts";

interface NoteOps {
	add(text: string): void;
	refuse(why: string): void;
}

export const note = writesOf<NoteOps>("notes", ["add", "refuse"]);

interface NoteQuestions {
	/** Oldest first. */
	all(): string[];
}

export const noted = queriesOf<NoteQuestions>("notes", ["all"]);

const refuse = (_: unknown, why: string): never => {
	throw new Refused("conflict", why);
};

export function keepNotes(file: SqliteFile): () => string[] {
	migrate(file, "notes", ["CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT"]);
	const add = file.db.prepare("INSERT INTO note (text) VALUES (?)");
	const all = file.db.prepare("SELECT text FROM note ORDER BY id");
	file.tables.register<NoteOps>("notes", { refuse, add: (_, text) => void add.run(text) });
	const texts = () => all.all().map((row) => String(row.text));
	file.tables.registerAnswers<NoteQuestions>("notes", { all: texts });
	return texts;
}

/** Nothing is undone here, so what is added before a refusal has to be looked for first. */
export function keepNotesInMemory(tables: Tables): () => string[] {
	const notes: string[] = [];
	tables.register<NoteOps>("notes", {
		refuse(_, why) {
			notes.splice(0, notes.length, ...notes.filter((text) => text !== "half"));
			throw new Refused("conflict", why);
		},
		add(_, text) {
			if (notes.includes(text)) throw new Refused("duplicate", `there is a note ${text} already`);
			notes.push(text);
		},
	});
	const texts = () => [...notes];
	tables.registerAnswers<NoteQuestions>("notes", { all: texts });
	return texts;
}

/** The statements of a note's write in PostgreSQL. */
export function noteSteps({ op, args }: Write): readonly Step[] {
	const text = String(args[0]);
	if (op === "add") return [{ sql: "INSERT INTO note (text) VALUES ($1)", values: [text] }];
	return [{ sql: "SELECT 1", values: [], expect: "none", refusal: () => new Refused("conflict", text) }];
}

/** The one question there is. */
export async function answerNotes<T>(_: Query<T>, read: PgQuery): Promise<T> {
	const rows = await read("SELECT text FROM note ORDER BY id");
	return rows.map(({ text }) => String(text)) as T;
}
