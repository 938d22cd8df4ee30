/** Following the commits of other nodes in PostgreSQL: each row of their journals is read once, on a notification or by polling. */

import { crc32 } from "node:zlib";
import { elapsing } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Listener, PgRow, Postgres } from "../../std/postgres/postgres.ts";
import { Batch } from "../reading/batch.ts";
import type { ChangedTopics, Follower, LogChanges, StoreNotification, WantedLogs } from "../storage.ts";
import { logOf } from "./reading.ts";
import { READ } from "./schema.ts";

export const CHANNEL = "nexus";

const ROWS_PER_READ = 64;
/** All rows are read when more logs are wanted: a longer list would cost more than it saves. */
const WANTED_LISTED_MAX = 200;
/** How often the nodes are asked for while notifications arrive, and while they do not. */
const POLL_MS = 250;
const POLL_UNSURE_MS = 50;
/** PostgreSQL takes payloads of less than 8,000 bytes. */
const PAYLOAD_BYTES_MAX = 7000;

interface Payload {
	/** The node, its last commit, and the topics; "*" stands for all of them. */
	d: number;
	n: number;
	t: string[] | "*";
}

export function payloadOf({ node, n, topics }: StoreNotification): string {
	const payload = (t: Payload["t"]) => JSON.stringify({ d: node, n, t } satisfies Payload);
	const text = payload([...topics]);
	return Buffer.byteLength(text) <= PAYLOAD_BYTES_MAX ? text : payload("*");
}

interface FollowingParts {
	readonly postgres: Postgres;
	readonly node: number;
	readonly follower: Follower;
	/** The last commits that count as read, by node. */
	readonly from: ReadonlyMap<number, number>;
	readonly isListening: boolean;
	readonly log: Log;
}

/** The commits of one node, as far as they were read. */
interface NodeState {
	last: number;
	reading: Promise<void> | undefined;
	again: boolean;
}

export class PostgresFollowing {
	readonly #parts: FollowingParts;
	readonly #nodes = new Map<number, NodeState>();
	readonly #listener: Listener | undefined;
	readonly #now: () => number;
	#lookedAt = -Infinity;
	#cancelPoll: (() => void) | undefined;
	#cancelLook: (() => void) | undefined;
	#isStopped = false;

	constructor(parts: FollowingParts) {
		this.#parts = parts;
		this.#now = elapsing(parts.postgres.clock);
		for (const [node, last] of parts.from) if (node !== parts.node) this.#stateOf(node).last = last;
		if (parts.isListening)
			this.#listener = parts.postgres.listener(CHANNEL, {
				onPayload: (payload) => this.#notified(payload),
				onState: (isSure) => this.#changed(isSure),
			});
		this.#listener?.start();
		this.#pollWhileUnsure();
	}

	#stateOf(node: number): NodeState {
		let state = this.#nodes.get(node);
		if (!state) {
			state = { last: 0, reading: undefined, again: false };
			this.#nodes.set(node, state);
		}
		return state;
	}

	/** Another program may send anything on the channel. */
	#notified(text: string): void {
		if (this.#isStopped) return;
		let payload: Payload;
		try {
			payload = JSON.parse(text) as Payload;
		} catch (cause) {
			this.#parts.log.warn({ err: cause }, "a notification of the store cannot be read");
			return;
		}
		const { d: node, n, t: topics } = payload;
		if (node === this.#parts.node) return;
		if (n > this.#stateOf(node).last) void this.#tried(this.#read(node));
		const changed: ChangedTopics = topics === "*" ? "all" : new Set(topics);
		if (changed === "all" || changed.size > 0) this.#parts.follower.onNotify(changed);
	}

	/** Looks once for what was sent while nothing could be received. */
	#changed(isSure: boolean): void {
		if (this.#isStopped) return;
		if (!isSure) {
			this.#pollWhileUnsure();
			return;
		}
		this.#lookedAt = -Infinity;
		void this.#tried(this.look());
		this.#parts.follower.onNotify("all");
	}

	#pollWhileUnsure(): void {
		this.#cancelPoll?.();
		if (this.#isStopped || this.#listener?.isSure) return;
		this.#cancelPoll = this.#parts.postgres.clock.after(POLL_UNSURE_MS, () => {
			void this.#tried(this.look()).then(() => this.#pollWhileUnsure());
		});
	}

	async #tried(reading: Promise<void>): Promise<void> {
		await reading.catch((cause: unknown) => {
			if (!this.#isStopped) this.#parts.log.warn({ err: cause }, "the commits of other daemons cannot be read");
		});
	}

	/** One question for all nodes, then one for each that has committed. */
	async look(): Promise<void> {
		const now = this.#now();
		const waitMs = this.#listener?.isSure ? this.#lookedAt + POLL_MS - now : 0;
		if (this.#isStopped) return;
		if (waitMs > 0) {
			this.#lookLater(waitMs);
			return;
		}
		this.#lookedAt = now;
		const rows = await this.#parts.postgres.reads.all(READ.nodes, [this.#parts.node]);
		const known = new Set(rows.map(({ id }) => Number(id)));
		for (const node of this.#nodes.keys()) if (!known.has(node)) this.#nodes.delete(node);
		const behind = rows.filter(({ id, n }) => Number(n) > this.#stateOf(Number(id)).last);
		await Promise.all(behind.map(({ id }) => this.#read(Number(id))));
	}

	#lookLater(ms: number): void {
		this.#cancelLook ??= this.#parts.postgres.clock.after(ms, () => {
			this.#cancelLook = undefined;
			void this.#tried(this.look());
		});
	}

	/** One read at a time for each node; a notification that comes meanwhile makes it read on. */
	#read(node: number): Promise<void> {
		const state = this.#stateOf(node);
		state.again = true;
		state.reading ??= this.#readOn(node, state).finally(() => {
			state.reading = undefined;
		});
		return state.reading;
	}

	async #readOn(node: number, state: NodeState): Promise<void> {
		while (state.again && !this.#isStopped) {
			state.again = false;
			while ((await this.#readSome(node, state)) === ROWS_PER_READ && !this.#isStopped);
		}
	}

	async #readSome(node: number, state: NodeState): Promise<number> {
		const { postgres, follower } = this.#parts;
		const { wanted } = follower;
		const listed = wanted.size <= WANTED_LISTED_MAX ? [...wanted.keys()] : null;
		const rows = await postgres.reads.all(READ.commits, [node, state.last, listed, ROWS_PER_READ]);
		for (const row of rows) {
			// A log may have become wanted while the rows were on their way.
			const isLate = row.entries === null && wanted.size > 0 && idsIn(row.logs as string).some((id) => wanted.has(id));
			const late = isLate ? await postgres.reads.get(READ.entries, [node, Number(row.n)]) : undefined;
			if (this.#isStopped) return 0;
			const missed = Number(row.prev) !== state.last;
			state.last = Number(row.n);
			follower.onChange(changesOf(node, late ? { ...row, ...late } : row, missed, wanted));
		}
		return rows.length;
	}

	stop(): void {
		this.#isStopped = true;
		this.#cancelPoll?.();
		this.#cancelLook?.();
		void this.#listener?.close();
	}
}

const idsIn = (array: string): number[] => array.slice(1, -1).split(",").map(Number);

function changesOf(node: number, row: PgRow, missed: boolean, wanted: WantedLogs): LogChanges {
	const text = row.entries as string | null;
	const isDamaged = text !== null && crc32(text) !== Number(row.crc);
	const sealed = row.sealed === null ? [] : (JSON.parse(row.sealed as string) as [number, number][]);
	const at = Number(row.at);
	return {
		node,
		n: Number(row.n),
		missed: missed || isDamaged,
		created: ((row.created ?? []) as PgRow[]).map(logOf),
		grown: text === null || isDamaged ? [] : batchesOf(text, wanted),
		sealed: sealed.map(([id, head]) => ({ id, head, at })),
	};
}

/** The new records of wanted logs; the others are skipped as they are. */
function batchesOf(text: string, wanted: WantedLogs): LogChanges["grown"] {
	const grown: { id: number; batch: Batch }[] = [];
	for (let at = 0; at < text.length; ) {
		const start = text.indexOf("\n", at) + 1;
		const [id, first, count] = text
			.slice(at, start - 1)
			.split(" ")
			.map(Number) as [number, number, number];
		let end = start;
		for (let left = count; left > 0; left--) end = text.indexOf("\n", end) + 1;
		if (wanted.has(id)) grown.push({ id, batch: new Batch(first, count, text.slice(start, end - 1)) });
		at = end;
	}
	return grown;
}
