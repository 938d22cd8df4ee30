/** Maps objects to rows and back: each field has a column, and a field that is left out is null. */

import { jsonText, type Row, type SqlValue } from "./sql.ts";

export interface Column<T> {
	readonly name: string;
	store(value: T): SqlValue;
	load(value: SqlValue): T;
	/** Stored for a field that is left out. Default: null. */
	readonly absent?: SqlValue;
}

const same = (value: unknown) => value as never;

export const text = <T extends string>(name: string): Column<T> => ({ name, store: same, load: same });

export const number = (name: string, absent?: number): Column<number> => ({ name, store: same, load: Number, absent });

export const flag = (name: string): Column<boolean> => ({ name, store: Number, load: (value) => value === 1 });

/** A field that is true or left out. */
export const mark = (name: string, absent?: number): Column<true> => ({
	name,
	store: Number,
	load: () => true,
	absent,
});

export const json = <T>(name: string): Column<T> => ({
	name,
	store: jsonText,
	load: (value) => JSON.parse(value as string) as T,
});

type ColumnsOf<T> = { readonly [Field in keyof T]-?: Column<Exclude<T[Field], undefined>> };

export class Columns<T extends object> {
	readonly names: readonly string[];
	readonly #fields: readonly (keyof T)[];
	readonly #columns: readonly Column<unknown>[];

	constructor(columns: ColumnsOf<T>) {
		this.#fields = Object.keys(columns) as (keyof T)[];
		this.#columns = Object.values(columns);
		this.names = this.#columns.map(({ name }) => name);
	}

	/** In the order of `names`. */
	values(object: Partial<T> = {}): SqlValue[] {
		const values: SqlValue[] = [];
		for (let n = 0; n < this.#fields.length; n++) {
			const value: unknown = object[this.#fields[n]!];
			const { absent = null } = this.#columns[n]!;
			values.push(value === undefined ? absent : this.#columns[n]!.store(value));
		}
		return values;
	}

	/** Only the fields whose columns were selected. */
	readonly of = (row: Row): T => {
		const object: Partial<Record<keyof T, unknown>> = {};
		for (let n = 0; n < this.#fields.length; n++) {
			const column = this.#columns[n]!;
			const value = row[column.name] ?? null;
			if (value !== null && value !== column.absent) object[this.#fields[n]!] = column.load(value);
		}
		return object as T;
	};
}

type Named = { readonly names: readonly string[] };

const namesOf = (columns: readonly Named[]): string[] => columns.flatMap(({ names }) => names);

/** The values are those of the columns, in order. */
export function insertInto(table: string, ...columns: Named[]): string {
	const names = namesOf(columns);
	return `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map((_, n) => `?${n + 1}`).join(", ")})`;
}

/** Replaces the row that has the same keys. */
export function upsertInto(table: string, keys: readonly string[], ...columns: Named[]): string {
	const changed = namesOf(columns).filter((name) => !keys.includes(name));
	const changes = changed.map((name) => `${name} = excluded.${name}`);
	return `${insertInto(table, ...columns)} ON CONFLICT (${keys.join(", ")}) DO UPDATE SET ${changes.join(", ")}`;
}
