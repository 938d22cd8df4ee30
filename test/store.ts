/** Where suites get their Bus and Ledger from: one place, so that all of them can run on another store. */

import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { expect, onTestFinished } from "vitest";
import { type Bus, type BusOptions, createBus, sqliteStorage } from "../packages/daemon/src/bus/bus.ts";
import { type Ledger, sqliteLedger } from "../packages/daemon/src/ledger/ledger.ts";
import { type ServiceRows, serviceRows } from "../packages/daemon/src/runtime/data/tables.ts";
import { openSqlite, type SqliteFile } from "../packages/daemon/src/std/sqlite/sqlite.ts";
import type { Write } from "../packages/daemon/src/std/write.ts";
import { withDefaults } from "../packages/protocol/src/defaults.ts";
import { Refused } from "../packages/protocol/src/protocol.ts";
import { FAULTS, faulty } from "./bus/faulty.ts";
import { quiet } from "./quiet.ts";

type Tables = Ledger & ServiceRows;

/** The reads of a table, by a store that answers at once. */
export type AtOnce<Reads> = {
	[Name in keyof Reads]: Reads[Name] extends (...args: infer Args) => infer Answer
		? (...args: Args) => Exclude<Answer, Promise<unknown>>
		: never;
};

export interface TestStore {
	file: SqliteFile;
	bus: Bus;
	ledger: Ledger;
	rows: ServiceRows;
	/** The stored rows, read directly from the file past all layers in front of it. */
	stored: { readonly [Table in keyof Tables]: AtOnce<Tables[Table]> };
	close(): Promise<void>;
}

export type OpenStore = (path: string, options?: Partial<Omit<BusOptions, "storage">>) => TestStore;

/** Embedded: it answers at once. For suites that count turns of the loop, or move a clock by them. */
export const openPlainStore: OpenStore = (path, options) => open(path, options);

/** With the seed of a bad connection in `NEXUS_FAULTY`, behind one (ST27). */
export const openStore: OpenStore = (path, options) => open(path, options, nextSeed());

/** How many stores each test file has opened: whatever ran before it in this process, a file gets the same seeds. */
const opened = new Map<string | undefined, number>();

function nextSeed(): number | undefined {
	const first = Number(process.env.NEXUS_FAULTY);
	if (!(first > 0)) return undefined;
	const { testPath } = expect.getState();
	const before = opened.get(testPath) ?? 0;
	opened.set(testPath, before + 1);
	return first + before;
}

function open(path: string, options: Partial<Omit<BusOptions, "storage">> = {}, seed?: number): TestStore {
	const file = openSqlite(path, "process");
	const ledger = sqliteLedger(file);
	const rows = serviceRows(file);
	const storage = sqliteStorage(file);
	// A connection that is lost is back at once.
	const limits = { ...(seed !== undefined && { commitRetryMs: 5 }), ...options.limits };
	const bus = createBus({
		...withDefaults(quiet, options),
		limits,
		storage: seed === undefined ? storage : faulty(storage, seed),
	});
	return {
		file,
		bus,
		ledger: seed === undefined ? ledger : late(ledger, seed),
		rows: seed === undefined ? rows : late(rows, seed),
		stored: { ...ledger, ...rows } as unknown as TestStore["stored"],
		async close() {
			await bus.close();
			file.close();
		},
	};
}

/** Reads that take a while, each a different one. */
function late<Tables extends object>(tables: Tables, seed: number): Tables {
	const random = fc.sample(fc.infiniteStream(fc.nat(FAULTS.turnsMax)), { numRuns: 1, seed })[0]!;
	const slow = <T extends object>(table: T): T =>
		new Proxy(table, {
			get(_, name: string & keyof T) {
				const member = table[name];
				if (typeof member !== "function") return slow(member as object);
				return async (...args: unknown[]): Promise<unknown> => {
					for (let turns = random.next().value as number; turns > 0; turns--) await setImmediate();
					return member.apply(table, args) as unknown;
				};
			},
		});
	return slow(tables);
}

export interface ForTestOptions extends Partial<Partial<Omit<BusOptions, "storage">>> {
	/** Default: in memory. */
	path?: string;
	/** Behind a bad connection, or never behind one, whatever the others are. */
	connection?: "bad" | "none";
	/** Its process dies: nothing of it is closed at the end of the test. */
	dies?: boolean;
}

const BAD_SEED = 1;

/** A store for one test. */
export function storeForTest({ path = ":memory:", dies = false, connection, ...options }: ForTestOptions = {}) {
	const opened = { bad: () => open(path, options, BAD_SEED), none: () => openPlainStore(path, options) };
	const store = connection ? opened[connection]() : openStore(path, options);
	if (!dies) onTestFinished(() => store.close());
	return { ...store, look: lookInto(store) };
}

export type Look = ReturnType<typeof lookInto>;

/** Short words for what tests look up most. */
export const lookInto = ({ stored: { turns, inbox, sessions } }: TestStore) => ({
	turn: turns.get,
	turns: turns.list,
	event: inbox.get,
	events: inbox.list,
	queued: () => inbox.queued(),
	sessions: sessions.list,
});

/** Refuses units with a write that `refuses` says so of, as a table would that cannot hold it. */
export function refuseWrites({ file: { tables } }: Pick<TestStore, "file">, refuses: (write: Write) => boolean): void {
	const apply = tables.apply.bind(tables);
	// A commit with a unit that is refused is applied a second time.
	const verdicts = new WeakMap<Write, boolean>();
	tables.apply = (write, facts) => {
		const isRefused = verdicts.get(write) ?? refuses(write);
		verdicts.set(write, isRefused);
		if (isRefused) throw new Refused("conflict", "CHECK constraint failed");
		apply(write, facts);
	};
}
