/** Checks of the database for `nexus doctor`: could it be opened, and, with `--deep`, is any of it damaged? Both change nothing. */

import { DatabaseSync } from "node:sqlite";
import { createVerifier, decodeFrame, isDamage, type Violation, wordsOf } from "@nexus-stream/protocol";
import { damagedJournalRows, sqliteStorage, storedLogs } from "../../bus/bus.ts";
import { sqliteLedger } from "../../ledger/ledger.ts";
import { hasTable, openSqlite, SchemaTooNew, schemaVersions } from "../../std/sqlite/sqlite.ts";
import { storeError } from "./store.ts";
import { serviceRows } from "./tables.ts";

/** Throws what `openStore` would. */
function reading<T>(path: string, read: (db: DatabaseSync) => T): T {
	let db: DatabaseSync | undefined;
	try {
		db = new DatabaseSync(path, { readOnly: true, timeout: 1000 });
		return read(db);
	} catch (cause) {
		throw storeError(cause, path);
	} finally {
		db?.close();
	}
}

export const checkStore = (path: string): void =>
	reading(path, (db) => {
		const known = knownVersions();
		for (const [area, version] of schemaVersions(db)) {
			const most = known.get(area);
			if (most !== undefined && version > most) throw new SchemaTooNew(path, area, version, most);
		}
	});

/** The schema versions that this program would give a new file. */
function knownVersions(): Map<string, number> {
	const file = openSqlite(":memory:", "process");
	try {
		for (const migrate of [sqliteLedger, serviceRows, sqliteStorage]) migrate(file);
		return schemaVersions(file.db);
	} finally {
		file.close();
	}
}

export interface DeepCheck {
	/** Logs that were read. */
	logs: number;
	/** One line for each thing that is damaged. */
	problems: string[];
}

/** How many faults SQLite lists before it gives up. */
const FAULTS_MAX = 20;

/** Reads the whole database. */
export const checkDeeply = (path: string): DeepCheck =>
	reading(path, (db) => {
		const problems = structureFaults(db);
		// One snapshot: retention may remove a log while it is read.
		db.exec("BEGIN");
		let logs = 0;
		if (!hasTable(db, "segment")) return { logs, problems };
		for (const stored of storedLogs(db)) {
			logs++;
			const framed = stored.kind === "run" || stored.kind === "text";
			const violation = framed ? firstFault(stored.records, stored.sealed) : exhaust(stored.records);
			const problem = stored.problem() ?? violation;
			if (problem !== undefined) problems.push(`${stored.log}: ${problem}`);
		}
		const rows = damagedJournalRows(db);
		if (rows > 0) problems.push(`the newest records of live runs: ${rows} journal rows are damaged`);
		return { logs, problems };
	});

const structureFaults = (db: DatabaseSync): string[] =>
	db
		.prepare(`PRAGMA integrity_check(${FAULTS_MAX})`)
		.all()
		.map((row) => String(row.integrity_check))
		.filter((fault) => fault !== "ok");

/** The violations that a verifying reader would find in the frames. */
function firstFault(records: Iterable<string>, sealed: boolean): string | undefined {
	const verifier = createVerifier({ complete: sealed });
	const said = ({ message, rule }: Violation) => `${message} (${rule})`;
	let fault: string | undefined;
	for (const record of records) {
		if (fault !== undefined) continue;
		try {
			const violation = verifier.push(decodeFrame(record));
			if (isDamage(violation)) fault = said(violation);
		} catch (cause) {
			fault = wordsOf(cause);
		}
	}
	const unended = verifier.finish();
	return fault ?? (unended && said(unended));
}

function exhaust(records: Iterable<string>): undefined {
	for (const _ of records);
	return undefined;
}
