/** The throughput of the store: records through the Bus and turns through Bus and Ledger, compared with plain inserts into SQLite. */

import { join } from "node:path";
import { type Bus, createBus, type LogWriter, sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import { sqliteLedger } from "../../packages/daemon/src/ledger/ledger.ts";
import { type Turn, turnWrites } from "../../packages/daemon/src/ledger/turns/port.ts";
import { openSqlite, type SqliteFile } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { quiet } from "../../test/quiet.ts";
import type { Figure } from "../figure.ts";
import { withFolder } from "../processes.ts";
import { median } from "../statistics.ts";

const APPENDERS = 64;
const RECORDS = 192_000;
const SETTLERS = 16;
const TURNS = 16_000;
const ROUNDS = 3;
const AGAINST_BATCHES = 64;

const record = (seq: number) =>
	`{"type":"stream.chunk","message_id":"run_01KA4XJ5T5M1V6E4WX2Q8N7B3C.1","seq_no":${seq},"payload":"sixteen letters ","is_partial":true,"ts":1763164800000}`;

async function perSecond(count: number, work: () => void | Promise<void>): Promise<number> {
	const started = performance.now();
	await work();
	return (count / (performance.now() - started)) * 1000;
}

interface Store {
	file: SqliteFile;
	bus: Bus;
}

/** Each figure gets a fresh file. */
function withStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
	return withFolder(async (folder) => {
		const file = openSqlite(join(folder, "nexus.db"), "process");
		sqliteLedger(file);
		const bus = createBus({ ...quiet, storage: sqliteStorage(file) });
		try {
			return await work({ file, bus });
		} finally {
			await bus.close();
			if (file.db.isOpen) file.close();
		}
	});
}

/** All writers at once, each with its share of the records; `pauses` says when one waits until what it wrote is durable. */
function appendAll(pauses: (writer: LogWriter) => boolean): Promise<number> {
	return withStore(async ({ bus }) => {
		const names = Array.from({ length: APPENDERS }, (_, index) => `run_${index}`);
		const writers = await Promise.all(names.map((log) => bus.create({ log, kind: "run" }, [record(0)])));
		const each = RECORDS / APPENDERS;
		return perSecond(RECORDS, async () => {
			const write = async (writer: LogWriter) => {
				for (let seq = 1; seq <= each; seq++) {
					writer.append(record(seq));
					if (pauses(writer)) await writer.flushed();
				}
				await writer.flushed();
			};
			await Promise.all(writers.map(write));
		});
	});
}

/** Every record is durable before the next is appended: as many records a commit as writers. */
const appendAndWait = () => appendAll(() => true);
/** Writers only pause when the Bus says that enough is waiting, as a run does. */
const appendAsARunDoes = () => appendAll(({ crowded }) => crowded);

/** SQLite alone: a row per record, a transaction per as many records as there are writers. */
function plainRows(): Promise<number> {
	return withFolder((folder) => {
		const { db, transaction, close } = openSqlite(join(folder, "plain.db"), "process");
		db.exec("CREATE TABLE record (log INTEGER, at INTEGER, body TEXT, PRIMARY KEY (log, at)) WITHOUT ROWID");
		const insert = db.prepare("INSERT INTO record VALUES (?, ?, ?)");
		const all = () => {
			for (let at = 1; at <= RECORDS / AGAINST_BATCHES; at++) {
				transaction(() => {
					for (let log = 0; log < AGAINST_BATCHES; log++) insert.run(log, at, record(at));
				});
			}
		};
		return perSecond(RECORDS, all).finally(close);
	});
}

const turnOf = (index: number): Turn => ({
	runId: `run_${String(index).padStart(26, "0")}`,
	session: `session-${index % SETTLERS}`,
	engine: "bench",
	status: "completed",
	reason: "completed",
	startedAt: index,
	endedAt: index + 1,
	firstTokenMs: 1,
	usage: { input: -1, output: -1 },
	messages: [
		{ role: "user", text: "a question", eventId: `evt_${index}` },
		{ role: "assistant", text: "an answer of a few words", messageId: `run_${index}.1` },
	],
	toolCalls: [],
});

/** A whole life each: the log with its begin, then its last frame together with the turn. */
function turnsWithLogs(): Promise<number> {
	return withStore(({ bus }) => {
		let next = 0;
		const settle = async () => {
			while (next < TURNS) {
				const turn = turnOf(next++);
				const writer = await bus.create({ log: turn.runId, kind: "run" }, [record(0)]);
				await writer.seal([record(1)], [turnWrites.settle(turn)]);
			}
		};
		return perSecond(TURNS, async () => void (await Promise.all(Array.from({ length: SETTLERS }, settle))));
	});
}

function turnsAlone(): Promise<number> {
	return withStore(({ file }) =>
		perSecond(TURNS, () => {
			for (let index = 0; index < TURNS; index++) {
				const settle = turnWrites.settle(turnOf(index));
				file.transaction(() => file.tables.apply(settle, { node: 1, now: index }));
			}
		}),
	);
}

/** SQLite alone: one row, one transaction. */
function plainCommits(): Promise<number> {
	return withFolder((folder) => {
		const { db, close } = openSqlite(join(folder, "plain.db"), "process");
		db.exec("CREATE TABLE turn (id TEXT PRIMARY KEY, body TEXT)");
		const insert = db.prepare("INSERT INTO turn VALUES (?, ?)");
		return perSecond(TURNS, () => {
			for (let index = 0; index < TURNS; index++) insert.run(String(index), JSON.stringify(turnOf(index)));
		}).finally(close);
	});
}

async function inTurns(...measures: (() => Promise<number>)[]): Promise<number[]> {
	const results = measures.map((): number[] => []);
	for (let round = 0; round < ROUNDS; round++) {
		for (const [index, measure] of measures.entries()) results[index]?.push(await measure());
	}
	return results.map(median);
}

export async function append(): Promise<Figure[]> {
	const [waited = Number.NaN, free = Number.NaN, bare = Number.NaN] = await inTurns(
		appendAndWait,
		appendAsARunDoes,
		plainRows,
	);
	const against = "a row each in SQLite";
	return [
		{
			name: "append, 64 writers, each waits for its record",
			unit: "records/s",
			value: waited,
			bare,
			against,
			goal: { of: "value", atLeast: 60_000 },
		},
		{ name: "append, 64 writers, as runs do", unit: "records/s", value: free, bare, against },
	];
}

export async function turns(): Promise<Figure[]> {
	const [whole = Number.NaN, alone = Number.NaN, bare = Number.NaN] = await inTurns(
		turnsWithLogs,
		turnsAlone,
		plainCommits,
	);
	const against = "a commit each in SQLite";
	return [
		{
			name: "turn commits, 16 writers, log and turn",
			unit: "turns/s",
			value: whole,
			bare,
			against,
			goal: { of: "value", atLeast: 10_000 },
		},
		{ name: "turn commits, Ledger alone", unit: "turns/s", value: alone, bare, against },
	];
}
