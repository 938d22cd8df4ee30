/** Changes of stored things and questions about them, as values, so that the store can be in this process or behind a connection. Knows no Nexus word. */

export interface Write {
	/** The kind of thing, by the name of its folder. */
	readonly table: string;
	readonly op: string;
	readonly args: readonly unknown[];
	/** The listeners of this topic of the Bus are called once the write is durable. */
	readonly topic?: string;
}

/** Facts of a commit for the code that applies its writes. */
export interface CommitFacts {
	/** Which start of which daemon commits: what it writes is its own until that one is dead. */
	readonly node: number;
	/** The store's time, in milliseconds since the epoch. */
	readonly now: number;
}

declare const ANSWER: unique symbol;

/** A question about stored things: the store answers it at the same moment as what it is asked together with it. */
export interface Query<T> {
	readonly table: string;
	readonly op: string;
	readonly args: readonly unknown[];
	/** Never there: it carries the answer's type. */
	readonly [ANSWER]?: T;
}

/** A read that may have to wait for its store. An embedded one answers at once. */
export type Reading<T> = T | Promise<T>;

/** Maps an answer, at once when it is here. */
export const whenRead = <T, U>(answer: Reading<T>, make: (value: T) => Reading<U>): Reading<U> =>
	answer instanceof Promise ? answer.then(make) : make(answer);

/** The same of several answers that are asked together. */
export const whenAllRead = <T extends readonly unknown[], U>(
	answers: { readonly [Nth in keyof T]: Reading<T[Nth]> },
	make: (...values: T) => U,
): Reading<U> =>
	answers.some((answer) => answer instanceof Promise)
		? Promise.all(answers).then((values) => make(...(values as unknown as T)))
		: make(...(answers as unknown as T));

/** The operations of one kind of thing: their names and arguments. */
type Operations<T> = { [Op in keyof T]: (...args: never[]) => void };

/** Makes a write of each operation. */
export type WritesOf<T extends Operations<T>> = { readonly [Op in keyof T]: (...args: Parameters<T[Op]>) => Write };

/** Does each operation, inside the transaction of a commit. Throws to refuse all writes of its unit. */
export type ApplierOf<T extends Operations<T>> = {
	readonly [Op in keyof T]: (facts: CommitFacts, ...args: Parameters<T[Op]>) => void;
};

/** The questions of one kind of thing: their names, arguments and answers. */
type ReadOperations<T> = { [Op in keyof T]: (...args: never[]) => unknown };

/** Makes a query of each question. */
export type QueriesOf<T extends ReadOperations<T>> = {
	readonly [Op in keyof T]: (...args: Parameters<T[Op]>) => Query<Awaited<ReturnType<T[Op]>>>;
};

export const writesOf = <T extends Operations<T>>(table: string, ops: readonly (keyof T & string)[]) =>
	makersOf(table, ops) as WritesOf<T>;

export const queriesOf = <T extends ReadOperations<T>>(table: string, ops: readonly (keyof T & string)[]) =>
	makersOf(table, ops) as QueriesOf<T>;

const makersOf = (table: string, ops: readonly string[]): unknown =>
	Object.fromEntries(ops.map((op) => [op, (...args: unknown[]) => ({ table, op, args })]));

/** The code that applies writes and answers questions, by table. */
export class Tables {
	readonly #answers = new Map<string, Readonly<Record<string, (...args: unknown[]) => unknown>>>();
	readonly #appliers = new Map<string, Readonly<Record<string, (facts: CommitFacts, ...args: unknown[]) => void>>>();

	register<T extends Operations<T>>(table: string, applier: ApplierOf<T>): void {
		this.#appliers.set(table, applier as never);
	}

	apply({ table, op, args }: Write, facts: CommitFacts): void {
		operationOf(this.#appliers, table, op)(facts, ...args);
	}

	registerAnswers<T extends ReadOperations<T>>(table: string, answers: T): void {
		this.#answers.set(table, answers as never);
	}

	/** Answers at once: the caller has a transaction open. */
	answer<T>({ table, op, args }: Query<T>): T {
		return operationOf(this.#answers, table, op)(...args) as T;
	}
}

function operationOf<Operation>(
	known: ReadonlyMap<string, Readonly<Record<string, Operation>>>,
	table: string,
	op: string,
): Operation {
	const operations = known.get(table);
	if (!operations) throw new TypeError(`no store is registered for "${table}"`);
	const operation = Object.hasOwn(operations, op) ? operations[op] : undefined;
	if (!operation) throw new TypeError(`${table} cannot ${op}`);
	return operation;
}
