/** Followers of a SQLite file: each reads the journal rows that other nodes added, once. In this process they are notified at once; another process is found by polling. */

import type { StatementSync } from "node:sqlite";
import { crc32 } from "node:zlib";
import type { SqliteFile } from "../../std/sqlite/sqlite.ts";
import { Batch } from "../reading/batch.ts";
import type { ChangedTopics, Follower, Following, LogChanges, StoreNotification, WantedLogs } from "../storage.ts";
import { type LogRow, storedOf } from "./journal.ts";
import type { Statements } from "./schema.ts";

const ROWS_PER_READ = 64;
const LINE_FEED = 0x0a;
const ZERO = 0x30;

/** Logs that a commit created and sealed, as a row of the journal keeps them. A daemon that is alone keeps none. */
export interface RowChanges {
	/** How many logs it created. */
	created: number;
	sealed: [id: number, head: number][];
}

/** By file, whichever connection it was opened with; a database in memory has but one. */
const followings = new Map<string | SqliteFile, Set<SqliteFollowing>>();

const nameOf = (file: SqliteFile): string | SqliteFile => file.db.location() ?? file;

/** Notifies the followers in this process. */
export function notifyFollowers(file: SqliteFile, { node, topics }: StoreNotification): void {
	for (const following of followings.get(nameOf(file)) ?? []) if (following.node !== node) following.notified(topics);
}

export function followFile(file: SqliteFile, sql: Statements, node: number, follower: Follower): Following {
	const name = nameOf(file);
	const all = followings.get(name) ?? new Set();
	const following = new SqliteFollowing({ sql, node, follower });
	followings.set(name, all.add(following));
	return {
		look: () => following.look(),
		stop() {
			all.delete(following);
			if (all.size === 0 && followings.get(name) === all) followings.delete(name);
		},
	};
}

interface SqliteFollowingParts {
	sql: Pick<Statements, "version" | "lastRow" | "rowsAfter" | "firstRow" | "madeBy">;
	node: number;
	follower: Follower;
}

class SqliteFollowing {
	readonly node: number;
	readonly #sql: SqliteFollowingParts["sql"];
	readonly #follower: Follower;
	/** The last row that was read. */
	#last: number;
	/** The version of the file at the last look. */
	#version = "";
	#isReading = false;
	#again = false;

	constructor({ sql, node, follower }: SqliteFollowingParts) {
		this.#sql = sql;
		this.node = node;
		this.#follower = follower;
		this.#last = Number(sql.lastRow.get()!.id);
	}

	notified(topics: ChangedTopics): void {
		this.#read();
		if (topics === "all" || topics.size > 0) this.#follower.onNotify(topics);
	}

	/** The version tells at little cost whether anything was committed at all: by others, or on this connection. */
	look(): void {
		const { others, own } = this.#sql.version.get()!;
		const version = `${Number(others)} ${Number(own)}`;
		if (version === this.#version) return;
		this.#read();
		this.#version = version;
	}

	#read(): void {
		this.#again = true;
		// A reader that is woken may commit, and so notify.
		if (this.#isReading) return;
		this.#isReading = true;
		try {
			while (this.#again) {
				this.#again = false;
				while (this.#readSome() === ROWS_PER_READ);
			}
		} finally {
			this.#isReading = false;
		}
	}

	#readSome(): number {
		const { rowsAfter, firstRow } = this.#sql;
		const { wanted } = this.#follower;
		const rows = rowsAfter.all(this.#last, this.node, Number(wanted.size > 0), ROWS_PER_READ);
		let missed = rows.length > 0 && Number(rows[0]!.id) > this.#last + 1 && Number(firstRow.get()!.id) > this.#last + 1;
		for (const row of rows) {
			this.#last = Number(row.id);
			if (Number(row.node) === this.node) continue;
			this.#follower.onChange(this.#changesOf(row, missed));
			missed = false;
		}
		// Rows of this node alone came behind the lost ones.
		if (missed) this.#follower.onChange({ ...NOTHING, node: this.node, n: 0, missed });
		return rows.length;
	}

	#changesOf(row: LogRow, missed: boolean): LogChanges {
		const commit = { node: Number(row.node), n: Number(row.n) };
		if (row.changes === null) return { ...NOTHING, ...commit, missed: true };
		const { created, sealed } = changesIn(row.changes as string);
		const grown = batchesOf(row, this.#follower.wanted);
		const at = Number(row.at);
		return {
			...commit,
			missed: missed || !grown,
			created: created > 0 ? createdBy(this.#sql.madeBy, Number(row.id)) : [],
			grown: grown ?? [],
			sealed: sealed.map(([id, head]) => ({ id, head, at })),
		};
	}
}

const NOTHING = { created: [], grown: [], sealed: [] };

export const textOfChanges = (changes: RowChanges): string =>
	changes.created > 0 || changes.sealed.length > 0 ? JSON.stringify(changes) : "";

const changesIn = (text: string): RowChanges =>
	text === "" ? { created: 0, sealed: [] } : (JSON.parse(text) as RowChanges);

const createdBy = (madeBy: StatementSync, row: number) => madeBy.all(row).map((log) => storedOf(log));

/** The new records of wanted logs. Only these are decoded; undefined when the row is damaged. */
function batchesOf({ entries, crc }: LogRow, wanted: WantedLogs): LogChanges["grown"] | undefined {
	// They are not read as long as no log is wanted.
	if (entries === null) return [];
	const { buffer, byteOffset, byteLength } = entries as Uint8Array;
	const bytes = Buffer.from(buffer, byteOffset, byteLength);
	if (crc32(bytes) !== crc) return undefined;
	const grown: { id: number; batch: Batch }[] = [];
	let at = 0;
	const number = () => {
		let value = 0;
		for (let byte = bytes[at++]!; byte >= ZERO; byte = bytes[at++]!) value = value * 10 + byte - ZERO;
		return value;
	};
	while (at < bytes.length) {
		const id = number();
		const first = number();
		const count = number();
		const start = at;
		for (let left = count; left > 0; left--) at = bytes.indexOf(LINE_FEED, at) + 1;
		if (wanted.has(id)) grown.push({ id, batch: new Batch(first, count, bytes.toString("utf8", start, at - 1)) });
	}
	return grown;
}
