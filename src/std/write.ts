/**
 * Changes of stored things as values. Whoever wants one says what is to be done; the store does it inside the transaction of a commit, so
 * that it can be anywhere: in this process or behind a connection. Knows no Nexus word.
 */

export interface Write {
	/** The kind of thing, by the name of its folder. */
	readonly thing: string;
	readonly op: string;
	readonly args: readonly unknown[];
}

/** What a commit tells those who apply its writes. */
export interface CommitFacts {
	/** Which start of which daemon commits: what it writes is its own until that one is dead. */
	readonly node: number;
	/** The store's time, in milliseconds since the epoch. */
	readonly now: number;
}

/** A read that may have to wait for its store. An embedded one answers at once. */
export type Reading<T> = T | Promise<T>;

/** The operations of one kind of thing: their names and arguments. */
type Operations<T> = { [Op in keyof T]: (...args: never[]) => void };

/** Makes a write of each operation. */
export type WritesOf<T extends Operations<T>> = { readonly [Op in keyof T]: (...args: Parameters<T[Op]>) => Write };

/** Does each operation, inside the transaction of a commit. Throws to refuse all writes of its unit. */
export type ApplierOf<T extends Operations<T>> = {
	readonly [Op in keyof T]: (facts: CommitFacts, ...args: Parameters<T[Op]>) => void;
};

export function writesOf<T extends Operations<T>>(thing: string, ops: readonly (keyof T & string)[]): WritesOf<T> {
	const make = (op: string) => [op, (...args: unknown[]): Write => ({ thing, op, args })];
	return Object.fromEntries(ops.map(make)) as WritesOf<T>;
}

/** Who applies the writes of which thing. */
export class Things {
	readonly #appliers = new Map<string, Readonly<Record<string, (facts: CommitFacts, ...args: unknown[]) => void>>>();

	register<T extends Operations<T>>(thing: string, applier: ApplierOf<T>): void {
		this.#appliers.set(thing, applier as never);
	}

	apply({ thing, op, args }: Write, facts: CommitFacts): void {
		const applier = this.#appliers.get(thing);
		if (!applier) throw new TypeError(`nobody keeps ${thing} here`);
		const operation = Object.hasOwn(applier, op) ? applier[op] : undefined;
		if (!operation) throw new TypeError(`${thing} cannot ${op}`);
		operation(facts, ...args);
	}
}
