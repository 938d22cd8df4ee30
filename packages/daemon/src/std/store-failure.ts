/** A failure of the store by its kind, whichever store it is. */

import { type PostgresFailure, postgresFailure } from "./postgres/failure.ts";
import { type SqliteFailure, sqliteFailure } from "./sqlite/sqlite.ts";

export interface StoreFailure {
	/** `full`: it may succeed once there is room. `unreachable`: the store runs elsewhere and does not answer. */
	kind: SqliteFailure["kind"] | PostgresFailure["kind"];
	message: string;
}

/** Each recognises the errors of one store. */
const READERS: readonly ((cause: unknown) => StoreFailure | undefined)[] = [sqliteFailure, postgresFailure];

/** Undefined when the error does not come from a store. */
export function storeFailure(cause: unknown): StoreFailure | undefined {
	for (const read of READERS) {
		const failure = read(cause);
		if (failure) return failure;
	}
	return undefined;
}

/** The server of the store does not answer, or cannot take anyone at the moment. */
export const isStoreAway = (cause: unknown): boolean => storeFailure(cause)?.kind === "unreachable";

/** The store takes nothing at the moment, because its disk is full or failing. */
export const isStoreFull = (cause: unknown): boolean => storeFailure(cause)?.kind === "full";
