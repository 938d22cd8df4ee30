/** Finds and reads for the Bus in PostgreSQL: logs with their true heads, segments, and the tails of logs that other nodes write. */

import { crc32 } from "node:zlib";
import { NexusError } from "@nexus-stream/protocol";
import type { PgQuery, PgRow, ReadPool } from "../../std/postgres/postgres.ts";
import type { Query } from "../../std/write.ts";
import type { LogQuery } from "../port.ts";
import { Batch } from "../reading/batch.ts";
import { isWholeSegment } from "../sqlite/faults.ts";
import { entriesOf, type LogRow, storedOf, TailReader } from "../sqlite/journal.ts";
import type { Adopted, ChainWith, Kinds, StoredLog } from "../storage.ts";
import { READ } from "./schema.ts";

/** Answers a question about stored things with reads that see one state. */
export type AnswerQuery = <T>(query: Query<T>, read: PgQuery) => Promise<T>;

const LIST_MAX = 1_000_000_000;

export const logOf = (row: PgRow): StoredLog => storedOf(row as LogRow);

export const damagedHere = (log: string, offset: number): NexusError =>
	new NexusError(
		"data_loss",
		`the records of ${log} from offset ${offset} on are damaged in the database: restore it from a backup`,
	);

/** A log with the tail that its owner's journal holds. */
export function withTail(log: StoredLog, rows: readonly { entries: string; crc: number }[]): Adopted {
	const reader = new TailReader(log);
	for (const { entries, crc } of rows) {
		if (crc !== crc32(entries)) reader.skip();
		else for (const entry of entriesOf(entries)) if (entry.log === log.id) reader.take(entry);
	}
	return reader.result();
}

export class PostgresReading {
	readonly #reads: ReadPool;
	readonly #answer: AnswerQuery;

	constructor(reads: ReadPool, answer: AnswerQuery) {
		this.#reads = reads;
		this.#answer = answer;
	}

	async find(log: string): Promise<StoredLog | undefined> {
		const row = await this.#reads.get(READ.find, [log]);
		return row && logOf(row);
	}

	/** A log may be cut between the two questions: then its segment is there when it is asked for again. */
	async read(id: number, offset: number): Promise<Batch | undefined> {
		return (await this.#segment(id, offset)) ?? (await this.#tail(id)) ?? (await this.#segment(id, offset));
	}

	async #segment(id: number, offset: number): Promise<Batch | undefined> {
		const row = await this.#reads.get(READ.segment, [id, offset]);
		if (!row || Number(row.first) + Number(row.count) <= offset) return undefined;
		if (!isWholeSegment(id, row as LogRow)) throw damagedHere(String(row.name), Number(row.first));
		return new Batch(Number(row.first), Number(row.count), row.records as string);
	}

	async #tail(id: number): Promise<Batch | undefined> {
		const rows = await this.#reads.all(READ.tail, [id]);
		const [first] = rows;
		if (!first) return undefined;
		const log = { id, head: Number(first.head), bytes: 0 } as StoredLog;
		const { tail, log: whole } = withTail(log, rows as never);
		if (!tail && whole.damaged !== undefined) throw damagedHere(String(first.name), log.head + 1);
		return tail;
	}

	async link(chain: string, after: number): Promise<StoredLog | undefined> {
		const row = await this.#reads.get(READ.link, [chain, after]);
		return row && logOf(row);
	}

	async chain(chain: string): Promise<{ start: number; head: number } | undefined> {
		const row = await this.#reads.get(READ.chain, [chain]);
		if (!row) return undefined;
		const { start, head } = endsOf(row);
		return { start, head };
	}

	chainWith<T>(chain: string, query: Query<T>): Promise<ChainWith<T>> {
		return this.#reads.snapshot(async (read) => {
			const [rows, answer] = await Promise.all([read(READ.chain, [chain]), this.#answer(query, read)]);
			return { ...(rows[0] ? endsOf(rows[0]) : { start: 0, head: 0 }), answer };
		});
	}

	async list({ kind, chain, before, limit = LIST_MAX, orphaned = false, live }: LogQuery): Promise<StoredLog[]> {
		const values = [kind ?? null, chain ?? null, before ?? null, limit];
		const rows = orphaned
			? await this.#reads.all(READ.listLeft, values)
			: await this.#reads.all(READ.list, [...values, live ?? null]);
		const open = rows.filter(({ sealed_at: sealedAt }) => sealedAt === null);
		const heads = open.length > 0 ? await this.#headsOf(open) : new Map<number, number>();
		return rows.map((row) => {
			const log = logOf(row);
			return { ...log, head: Math.max(log.head, heads.get(log.id) ?? 0) };
		});
	}

	/** All of them in one pass over the journals of their owners. */
	async #headsOf(rows: readonly PgRow[]): Promise<Map<number, number>> {
		const nodes = [...new Set(rows.map(({ node }) => Number(node)))];
		const found = await this.#reads.all(READ.heads, [nodes, rows.map(({ id }) => Number(id))]);
		return new Map(found.map(({ id, head }) => [Number(id), Number(head)]));
	}

	async oldestSealed(kinds: Kinds): Promise<StoredLog | undefined> {
		const row =
			"countedFor" in kinds
				? await this.#reads.get(READ.countedSealed, [kinds.countedFor])
				: await this.#reads.get(READ.oldestSealed, "only" in kinds ? [kinds.only, []] : [null, kinds.except]);
		return row && logOf(row);
	}

	async totalBytes(countedFor?: string): Promise<number> {
		const row =
			countedFor === undefined
				? await this.#reads.get(READ.totalBytes)
				: await this.#reads.get(READ.countedBytes, [countedFor]);
		return Number(row!.bytes);
	}
}

/** The ends of a chain, and its last link if there is one left. */
function endsOf(row: PgRow): { start: number; head: number; newest?: StoredLog } {
	const start = Number(row.start);
	if (row.id === null) return { start, head: start };
	const newest = logOf(row);
	return { start, head: Math.max(start, newest.base + newest.head), newest };
}
