/** The durable store of the Bus in PostgreSQL, which several daemons share: its nodes, take-overs and removals. `commit.ts` writes, `reading.ts` reads. */

import type { Log } from "@nexus-stream/protocol/log";
import { sleep } from "@nexus-stream/protocol/retry";
import {
	migratePostgres,
	openPostgres,
	type PgAnswer,
	type Postgres,
	type PostgresOptions,
} from "../../std/postgres/postgres.ts";
import type { Query } from "../../std/write.ts";
import type { LogQuery } from "../port.ts";
import type { Batch } from "../reading/batch.ts";
import { segmentCrc } from "../sqlite/faults.ts";
import { JournalNeeds } from "../sqlite/journal.ts";
import {
	type Adopted,
	type ChainWith,
	type Commit,
	type Committed,
	type Follower,
	type Following,
	fenced,
	type Joined,
	type Kinds,
	type NewSegment,
	noLiveLog,
	ownedByAnother,
	type Storage,
	type StoredLog,
	type StoreNotification,
	segmentBytesOf,
} from "../storage.ts";
import { PostgresCommits } from "./commit.ts";
import { CHANNEL, PostgresFollowing, payloadOf } from "./following.ts";
import type { StepsOfWrite } from "./plan.ts";
import { type AnswerQuery, logOf, PostgresReading, withTail } from "./reading.ts";
import { COMMIT, LOCK_COLUMNS, POSTGRES_BUS_AREA, POSTGRES_BUS_STEPS, side } from "./schema.ts";

/** A log that is not cut is cut once this many commits came after its first uncut record. */
const COMMITS_BEHIND_MAX = 4096;
const COMMITS_PER_TIDY = 2048;
const SEGMENTS_PER_REMOVAL = 16;
/** A row of the journal can be read by other daemons for at least this long. */
const JOURNAL_KEPT_MS = 5000;
/** A dead node is remembered for so long: it may still ask what became of its last commit. */
const DEAD_KEPT_MS = 600_000;
/** Notifications of one daemon are at least so far apart. */
const NOTIFY_EVERY_MS = 1;

export interface PostgresStorageParts {
	readonly postgres: Postgres;
	/** The statements of a write, and the answers to questions about stored things. */
	readonly stepsOf: StepsOfWrite;
	readonly answer: AnswerQuery;
	/** Default: `power`. */
	readonly durability?: "process" | "power";
	/** `poll` for engines and poolers without LISTEN. Default: `listen`. */
	readonly notifications?: "listen" | "poll";
	readonly log: Log;
}

/** Parses the statements of commits as soon as there is a connection. */
export const openBusDatabase = (options: PostgresOptions): Postgres => openPostgres(options, Object.values(COMMIT));

export const migrateBusDatabase = (postgres: Postgres): Promise<void> =>
	migratePostgres(postgres, POSTGRES_BUS_AREA, POSTGRES_BUS_STEPS);

export const postgresStorage = (parts: PostgresStorageParts): Storage => new PostgresStorage(parts);

class PostgresStorage implements Storage {
	readonly #parts: PostgresStorageParts;
	readonly #postgres: Postgres;
	readonly #needs = new JournalNeeds();
	readonly #commits: PostgresCommits;
	readonly #reading: PostgresReading;
	/** The last commits of all nodes when this one joined. */
	#from = new Map<number, number>();

	constructor(parts: PostgresStorageParts) {
		const { postgres, stepsOf, answer, durability = "power" } = parts;
		this.#parts = parts;
		this.#postgres = postgres;
		this.#commits = new PostgresCommits({ postgres, stepsOf, needs: this.#needs, durability });
		this.#reading = new PostgresReading(postgres.reads, answer);
	}

	async join(name: string, alone: boolean): Promise<Joined> {
		const kill = alone ? [side("killAll")] : [];
		const answers = await this.#postgres.side.run([...kill, side("join", name), side("nodes")]);
		const [joined, nodes] = answers.slice(-2) as [PgAnswer, PgAnswer];
		const [node, now] = joined.rows[0]!.map(Number) as [number, number];
		this.#from = new Map(nodes.rows.map(([id, n]) => [Number(id), Number(n)]));
		this.#commits.last = 0;
		return { node, now };
	}

	async renew(node: number, leaseMs: number): Promise<boolean> {
		const [renewed] = await this.#postgres.side.run([side("renew", node, leaseMs)]);
		return renewed!.count > 0;
	}

	async expire(node: number, leaseMs: number): Promise<readonly number[]> {
		const [, expired] = await this.#postgres.side.run([side("renew", node, leaseMs), side("expire", node, leaseMs)]);
		return expired!.rows.map(([id]) => Number(id));
	}

	async leave(node: number): Promise<void> {
		await this.#postgres.side.run([side("leave", node)]);
	}

	async reserve(count: number): Promise<number> {
		const [reserved] = await this.#postgres.side.run([side("reserve", count)]);
		return Number(reserved!.rows[0]![0]);
	}

	commit(commit: Commit): Promise<Committed> {
		return this.#commits.apply(commit);
	}

	/** After the commit and on another connection: inside of it, it would make all daemons wait for one another. */
	async notify(notification: StoreNotification): Promise<void> {
		if (this.#parts.notifications === "poll") return;
		await this.#postgres.side.run([side("notify", CHANNEL, payloadOf(notification), notification.node)]);
		await sleep(this.#postgres.clock, NOTIFY_EVERY_MS);
	}

	follow(node: number, follower: Follower): Following {
		const { notifications = "listen", log } = this.#parts;
		const isListening = notifications === "listen";
		const parts = { postgres: this.#postgres, node, follower, from: this.#from, isListening, log };
		const following = new PostgresFollowing(parts);
		return { look: () => following.look(), stop: () => following.stop() };
	}

	find(log: string): Promise<StoredLog | undefined> {
		return this.#reading.find(log);
	}

	read(id: number, offset: number): Promise<Batch | undefined> {
		return this.#reading.read(id, offset);
	}

	link(chain: string, after: number): Promise<StoredLog | undefined> {
		return this.#reading.link(chain, after);
	}

	chain(chain: string): Promise<{ start: number; head: number } | undefined> {
		return this.#reading.chain(chain);
	}

	chainWith<T>(chain: string, query: Query<T>): Promise<ChainWith<T>> {
		return this.#reading.chainWith(chain, query);
	}

	list(query: LogQuery): Promise<StoredLog[]> {
		return this.#reading.list(query);
	}

	oldestSealed(kinds: Kinds): Promise<StoredLog | undefined> {
		return this.#reading.oldestSealed(kinds);
	}

	totalBytes(countedFor?: string): Promise<number> {
		return this.#reading.totalBytes(countedFor);
	}

	/** The tail becomes a segment at once, so that a tail is always in the journal of one node. */
	adopt(name: string, node: number): Promise<Adopted> {
		return this.#postgres.side.transaction(async (run) => {
			const [, locked, own, tail] = await run([
				{ text: COMMIT.begin },
				side("lock", name),
				side("isAlive", node),
				side("tail", name),
			]);
			try {
				const row = Object.fromEntries(LOCK_COLUMNS.map((column, at) => [column, locked!.rows[0]?.[at] ?? null]));
				if (row.id === null) throw noLiveLog(name);
				if (own!.rows.length === 0) throw fenced();
				if (Number(row.node) !== node && row.is_left !== "t") throw ownedByAnother(name);
				const entries = tail!.rows.map(([text, crc]) => ({ entries: text!, crc: Number(crc) }));
				const adopted = withTail(logOf(row), entries);
				const cut = adopted.tail && segmentOf(adopted.tail);
				const { log } = adopted;
				const bytes = cut ? segmentBytesOf(cut) : 0;
				await run([
					...(cut ? [addSegment(log.id, cut)] : []),
					side("adopt", log.id, node, log.head, bytes),
					{ text: COMMIT.commit },
				]);
				return { log: { ...log, bytes: log.bytes + bytes }, tail: undefined };
			} catch (cause) {
				await run([{ text: COMMIT.rollback }]).catch(() => {});
				throw cause;
			}
		});
	}

	async removeSome(id: number): Promise<boolean> {
		const answers = await this.#postgres.side.run([
			side("rememberRemoval", id),
			side("markRemoved", id),
			side("removeSegments", id, SEGMENTS_PER_REMOVAL),
			side("removeLog", id),
			side("isGone", id),
		]);
		return answers.at(-1)!.rows[0]![0] === "t";
	}

	async tidy(node: number): Promise<{ more: boolean; lagging: ReadonlySet<number> }> {
		// The last row stays: the next commit names it, and it tells what became of the last one.
		const { last } = this.#commits;
		const needed = this.#needs.first(last);
		const lagging = this.#needs.before(last - COMMITS_BEHIND_MAX);
		const [removed, , , half, rest] = await this.#postgres.side.run([
			side("removeJournal", node, needed, JOURNAL_KEPT_MS, COMMITS_PER_TIDY),
			side("removeDead", DEAD_KEPT_MS),
			side("forgetDead", DEAD_KEPT_MS),
			side("halfRemoved"),
			side("isUntidy", node, needed),
		]);
		for (const [id] of half!.rows) await this.removeSome(Number(id));
		return { more: removed!.count === COMMITS_PER_TIDY || rest!.rows[0]![0] === "t", lagging };
	}
}

const segmentOf = ({ first, count, text }: Batch): NewSegment => ({ first, count, bytes: Buffer.from(text) });

function addSegment(id: number, { first, count, bytes }: NewSegment) {
	return side("addSegment", id, first, count, bytes, segmentCrc(id, first, count, bytes));
}
