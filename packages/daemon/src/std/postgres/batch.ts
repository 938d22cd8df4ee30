/** Statements that are sent together with one Sync: one round trip and one implicit transaction, in which no lock waits for this process. */

import type { Connection, Submittable } from "pg";
import { BatchFailure } from "./failure.ts";

/** A parameter. Text may be given as its UTF-8 bytes; an array is one of PostgreSQL. */
export type PgValue = string | number | boolean | null | Uint8Array | readonly (string | number | null)[];

export interface PgStatement {
	readonly text: string;
	readonly values?: readonly PgValue[];
}

/** The answer to one statement: rows as text, and how many it returned or changed. */
export interface PgAnswer {
	readonly rows: (readonly (string | null)[])[];
	count: number;
}

const escaped = (text: string): string => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

const elementOf = (value: string | number | null): string =>
	typeof value === "string" ? escaped(value) : value === null ? "NULL" : String(value);

/** As the protocol carries it: text, or bytes as they are. */
export function encoded(value: PgValue): string | Buffer | null {
	if (value === null || typeof value === "string") return value;
	if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.length);
	if (typeof value === "object") return `{${value.map(elementOf).join(",")}}`;
	return String(value);
}

/** The methods that pg's client calls on the query under way. */
interface Handlers {
	handleError(cause: unknown): void;
	handleReadyForQuery(): void;
	handleDataRow(message: { fields: (string | null)[] }): void;
	handleCommandComplete(message: { text: string }): void;
	handleRowDescription(): void;
	handleEmptyQuery(): void;
	handlePortalSuspended(): void;
}

/** Sends several messages of the protocol and one Sync, in one write to the socket. */
abstract class Pipelined implements Submittable, Handlers {
	readonly #done = Promise.withResolvers<PgAnswer[]>();
	readonly #answers: PgAnswer[] = [];
	/** Statements that the server has completed. */
	#place = 0;
	#isSent = false;
	#current: PgAnswer = { rows: [], count: 0 };

	get done(): Promise<PgAnswer[]> {
		return this.#done.promise;
	}

	protected abstract send(connection: Connection): void;

	submit(connection: Connection): void {
		this.#isSent = true;
		connection.stream.cork();
		try {
			this.send(connection);
		} finally {
			connection.sync();
			connection.stream.uncork();
		}
	}

	handleDataRow({ fields }: { fields: (string | null)[] }): void {
		this.#current.rows.push(fields);
	}

	handleCommandComplete({ text }: { text: string }): void {
		this.#current.count = Number(/\d+$/.exec(text)?.[0] ?? 0);
		this.#answers.push(this.#current);
		this.#current = { rows: [], count: 0 };
		this.#place++;
	}

	handleError(cause: unknown): void {
		this.#done.reject(new BatchFailure(cause, this.#place, this.#isSent));
	}

	/** The transaction has ended: only now is it certain that it was committed. */
	handleReadyForQuery(): void {
		this.#done.resolve(this.#answers);
	}

	handleRowDescription(): void {}
	handleEmptyQuery(): void {}
	handlePortalSuspended(): void {}
}

/** Statements that are parsed under their names already: a Parse that stood in a batch would stay when the batch fails. */
export class StatementBatch extends Pipelined {
	readonly #bound: { statement: string; values: (string | Buffer | null)[] }[];

	constructor(statements: readonly PgStatement[], nameOf: (text: string) => string) {
		super();
		this.#bound = statements.map(({ text, values = [] }) => ({ statement: nameOf(text), values: values.map(encoded) }));
	}

	protected send(connection: Connection): void {
		for (const bound of this.#bound) {
			connection.bind(bound, true);
			connection.execute(null, true);
		}
	}
}

/** Parses statements under names. */
export class Preparation extends Pipelined {
	readonly #texts: ReadonlyMap<string, string>;

	/** Names by text. */
	constructor(texts: ReadonlyMap<string, string>) {
		super();
		this.#texts = texts;
	}

	protected send(connection: Connection): void {
		for (const [text, name] of this.#texts) connection.parse({ name, text, types: [] }, true);
	}
}
