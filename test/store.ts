/**
 * The one place where the broker's and the inbox's tests open a store: Bus and Ledger on one SQLite file, as in the daemon.
 * `NEXUS_TEST_STORE=slow` puts an await at every call, so that a suite proves that nothing relies on an answer in the tick of the call.
 */

import { onTestFinished } from "vitest";
import { type Bus, type BusOptions, createBus, type LogWriter, sqliteStorage } from "../src/bus/bus.ts";
import { type Ledger, sqliteLedger } from "../src/ledger/ledger.ts";
import { Refused } from "../src/protocol/protocol.ts";
import { openSqlite, type SqliteFile } from "../src/std/sqlite.ts";
import type { Write } from "../src/std/write.ts";

export interface TestStore {
	file: SqliteFile;
	bus: Bus;
	ledger: Ledger;
	/** What is on record at this moment, whatever is between the store and its users. */
	look: Look;
}

export interface StoreOptions extends Partial<Omit<BusOptions, "storage">> {
	/** Default: in memory. */
	path?: string;
	/** Every call takes some turns of the loop. */
	slow?: boolean;
	/** Its process dies: nothing of it is closed at the end of the test. */
	dies?: boolean;
}

export function openTestStore({
	path = ":memory:",
	slow = isSlow,
	dies = false,
	...options
}: StoreOptions = {}): TestStore {
	const file = openSqlite(path, "process");
	const ledger = sqliteLedger(file);
	const bus = createBus({ storage: sqliteStorage(file), ...options });
	if (!dies)
		onTestFinished(async () => {
			await bus.close();
			file.close();
		});
	const look = lookInto(ledger);
	return slow ? { file, bus: slowBus(bus), ledger: slowLedger(ledger), look } : { file, bus, ledger, look };
}

const isSlow = process.env.NEXUS_TEST_STORE === "slow";

type Answer<T extends (...args: never[]) => unknown> = Exclude<ReturnType<T>, Promise<unknown>>;
type Look = ReturnType<typeof lookInto>;

/** An embedded store answers at once. */
function lookInto({ turns, inbox, sessions }: Ledger) {
	return {
		turn: (runId: string) => turns.get(runId) as Answer<typeof turns.get>,
		turns: (query: Parameters<typeof turns.list>[0]) => turns.list(query) as Answer<typeof turns.list>,
		event: (eventId: string) => inbox.get(eventId) as Answer<typeof inbox.get>,
		events: (query: Parameters<typeof inbox.list>[0]) => inbox.list(query) as Answer<typeof inbox.list>,
		queued: () => inbox.queued() as Answer<typeof inbox.queued>,
		sessions: (query: Parameters<typeof sessions.list>[0]) => sessions.list(query) as Answer<typeof sessions.list>,
	};
}

/** Refuses units with a write that `refuses` says so of, as a table would that cannot hold it. */
export function refuseWrites({ file: { things } }: Pick<TestStore, "file">, refuses: (write: Write) => boolean): void {
	const apply = things.apply.bind(things);
	things.apply = (write, facts) => {
		if (refuses(write)) throw new Refused("conflict", "CHECK constraint failed");
		apply(write, facts);
	};
}

let turns = 0;

/** Another number of turns of the loop each time, so that calls overtake one another. */
async function later<T>(work: () => T | Promise<T>): Promise<T> {
	turns = (turns + 3) % 7;
	for (let n = turns; n >= 0; n--) await new Promise((resolve) => setImmediate(resolve));
	return work();
}

function slowLedger(ledger: Ledger): Ledger {
	const slow = (part: object) =>
		new Proxy(part, {
			get: (target, name) => {
				const read = Reflect.get(target, name) as (...args: unknown[]) => unknown;
				return (...args: unknown[]) => later(() => read(...args));
			},
		});
	const parts = Object.entries(ledger).map(([name, part]) => [name, typeof part === "object" ? slow(part) : part]);
	return Object.fromEntries(parts) as Ledger;
}

/** The order of calls stays; their outcomes are told late. */
function slowBus(bus: Bus): Bus {
	const late = async <T>(outcome: Promise<T>): Promise<T> => {
		outcome.catch(() => {});
		return later(() => outcome);
	};
	const slowWriter = (writer: LogWriter): LogWriter =>
		new Proxy(writer, {
			get(target, name) {
				const member = Reflect.get(target, name) as unknown;
				if (name === "seal") return (...args: Parameters<LogWriter["seal"]>) => late(target.seal(...args));
				return typeof member === "function" ? member.bind(target) : member;
			},
		});
	return new Proxy(bus, {
		get(target, name) {
			const member = Reflect.get(target, name) as unknown;
			if (name === "create")
				return (...args: Parameters<Bus["create"]>) => late(target.create(...args)).then(slowWriter);
			if (name === "reopen")
				return (...args: Parameters<Bus["reopen"]>) => late(target.reopen(...args)).then(slowWriter);
			if (name === "write") return (...args: Parameters<Bus["write"]>) => late(target.write(...args));
			return typeof member === "function" ? member.bind(target) : member;
		},
	});
}
