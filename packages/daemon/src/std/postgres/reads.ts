/** Reads from PostgreSQL: a few connections, each of which takes the next query before the last one was answered. */

import { backoffMs, jittered, sleep } from "@nexus-stream/protocol/retry";
import type { Client } from "pg";
import { encoded, type PgValue } from "./batch.ts";
import { connected, destroyed, type PostgresConnectionParts, Reconnecting } from "./connection.ts";
import { postgresFailure } from "./failure.ts";

/** A row by its columns: numbers of any size are numbers. */
export type PgRow = Record<string, unknown>;

export type PgQuery = (text: string, values?: readonly PgValue[]) => Promise<PgRow[]>;

/** A read whose connection is lost is asked again: so many times, with growing waits. */
const ATTEMPTS_MAX = 5;

interface Slot {
	open: Reconnecting<Client>;
	/** Queries without an answer. */
	underWay: number;
}

export class ReadPool {
	readonly #parts: PostgresConnectionParts;
	readonly #connectionsMax: number;
	readonly #slots: Slot[] = [];
	/** Reads that must see one state have a connection for themselves. */
	readonly #snapshots: Slot;
	#lastSnapshot: Promise<unknown> = Promise.resolve();
	readonly #names = new Map<string, string>();
	#isClosed = false;

	constructor(parts: PostgresConnectionParts, connectionsMax: number) {
		this.#parts = { ...parts, pipeline: true };
		this.#connectionsMax = connectionsMax;
		this.#snapshots = this.#slot();
	}

	#slot(): Slot {
		return { open: new Reconnecting(this.#parts, (onLost) => connected(this.#parts, onLost)), underWay: 0 };
	}

	/** The least busy connection; a further one while all are busy. */
	#next(): Slot {
		const free = this.#slots.toSorted((a, b) => a.underWay - b.underWay)[0];
		if (free && (free.underWay === 0 || this.#slots.length >= this.#connectionsMax)) return free;
		const slot = this.#slot();
		this.#slots.push(slot);
		return slot;
	}

	/** Asked again while the server cannot be reached, for about a second. */
	async all(text: string, values: readonly PgValue[] = []): Promise<PgRow[]> {
		return this.#again(() => this.#ask(this.#next(), text, values));
	}

	async get(text: string, values: readonly PgValue[] = []): Promise<PgRow | undefined> {
		return (await this.all(text, values))[0];
	}

	async #again<T>(ask: () => Promise<T>): Promise<T> {
		const { clock, limits, random } = this.#parts;
		for (let failures = 0; ; failures++) {
			try {
				return await ask();
			} catch (cause) {
				const isLast = failures + 1 >= ATTEMPTS_MAX || this.#isClosed;
				if (isLast || postgresFailure(cause)?.kind !== "unreachable") throw cause;
				await sleep(clock, jittered(backoffMs(limits.reconnect, failures), random()), undefined, "due");
			}
		}
	}

	async #ask(slot: Slot, text: string, values: readonly PgValue[]): Promise<PgRow[]> {
		slot.underWay++;
		try {
			return await this.#answer(await slot.open.get(), text, values);
		} finally {
			slot.underWay--;
		}
	}

	async #answer(client: Client, text: string, values: readonly PgValue[]): Promise<PgRow[]> {
		const { clock, limits } = this.#parts;
		const name = this.#names.get(text) ?? `r${this.#names.size}`;
		this.#names.set(text, name);
		const cancel = clock.after(limits.answerMsMax, () => destroyed(client));
		try {
			const { rows } = await client.query<PgRow>({ name, text, values: values.map(encoded) });
			return rows;
		} finally {
			cancel();
		}
	}

	/** All reads of `work` see the state of one moment. */
	snapshot<T>(work: (query: PgQuery) => Promise<T>): Promise<T> {
		const result = this.#lastSnapshot.then(() => this.#again(() => this.#readTogether(work)));
		this.#lastSnapshot = result.catch(() => {});
		return result;
	}

	async #readTogether<T>(work: (query: PgQuery) => Promise<T>): Promise<T> {
		const client = await this.#snapshots.open.get();
		const query: PgQuery = (text, values = []) => this.#answer(client, text, values);
		// Not awaited: what follows is on its way already.
		const begun = query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
		begun.catch(() => {});
		try {
			return await work(query);
		} finally {
			// After a failure it ends the transaction, too.
			await query("COMMIT");
		}
	}

	async close(): Promise<void> {
		this.#isClosed = true;
		for (const { open } of [...this.#slots, this.#snapshots]) {
			const client = await open.current?.catch(() => undefined);
			await client?.end();
		}
	}
}
