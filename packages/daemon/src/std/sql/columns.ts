/** Maps objects to rows and back: each field has a column, and a field that is left out is null. */

import { jsonText, type Row, type SqlValue } from "./sql.ts";

export interface Column<T> {
	readonly name: string;
	/** Left out: the value is stored and loaded as it is. */
	readonly store: ((value: T) => SqlValue) | undefined;
	readonly load: ((value: SqlValue) => T) | undefined;
	/** Stored for a field that is left out. */
	readonly absent: SqlValue;
}

/** All columns have one shape, because every write and every row goes through them. */
const column = <T>(
	name: string,
	store?: Column<T>["store"],
	load?: Column<T>["load"],
	absent: SqlValue = null,
): Column<T> => ({ name, store, load, absent });

export const text = <T extends string>(name: string): Column<T> => column(name);

export const number = (name: string, absent?: number): Column<number> => column(name, undefined, Number, absent);

export const flag = (name: string): Column<boolean> => column(name, Number, (value) => value === 1);

/** A field that has one value or is left out. */
export const mark = <T extends boolean>(name: string, value: T, absent?: number): Column<T> =>
	column(
		name,
		() => 1,
		() => value,
		absent,
	);

/** `textOf` makes the JSON text, and null of a value that is not worth storing. */
export const json = <T>(name: string, textOf: (value: T) => string | null = jsonText): Column<T> =>
	column(name, textOf, (value) => JSON.parse(value as string) as T);

/** A list whose being empty is the same as its being left out. */
export const listed = <T extends readonly unknown[]>(name: string): Column<T> =>
	json(name, (list) => (list.length === 0 ? null : jsonText(list)));

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

	/** In the order of `names`, after the values that are given `first`. */
	values(object: Partial<T> = {}, ...first: SqlValue[]): SqlValue[] {
		const [fields, columns] = [this.#fields, this.#columns];
		for (let n = 0; n < fields.length; n++) {
			const value: unknown = object[fields[n]!];
			const { absent, store } = columns[n]!;
			first.push(value === undefined ? absent : store ? store(value) : (value as SqlValue));
		}
		return first;
	}

	/** Only the fields whose columns were selected. */
	readonly of = (row: Row): T => {
		const [fields, columns] = [this.#fields, this.#columns];
		const object: Partial<Record<keyof T, unknown>> = {};
		for (let n = 0; n < fields.length; n++) {
			const { name, absent, load } = columns[n]!;
			const value = row[name] ?? null;
			if (value !== null && value !== absent) object[fields[n]!] = load ? load(value) : value;
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
