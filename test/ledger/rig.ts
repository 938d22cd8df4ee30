/** A Ledger on its own store, and how a test commits to it. */

import { join } from "node:path";
import { onTestFinished } from "vitest";
import { sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import type { Storage } from "../../packages/daemon/src/bus/storage.ts";
import type { InboundEvent } from "../../packages/daemon/src/ledger/inbox/port.ts";
import { type Ledger, sqliteLedger } from "../../packages/daemon/src/ledger/ledger.ts";
import type { Turn } from "../../packages/daemon/src/ledger/turns/port.ts";
import { openDatabase } from "../../packages/daemon/src/runtime/data/postgres.ts";
import { type ServiceRows, serviceRows } from "../../packages/daemon/src/runtime/data/tables.ts";
import { openSqlite, type SqliteFile } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import type { CommitFacts, Write } from "../../packages/daemon/src/std/write.ts";
import { databaseForTest, type TestDatabase } from "../postgres.ts";
import { hasPostgres } from "../postgres-server.ts";
import { quiet } from "../quiet.ts";
import { freshFolder } from "../runtime/folder.ts";

/** Applies one unit of a commit, as a store does. */
export function commit(file: SqliteFile, writes: readonly Write[], facts: CommitFacts = { node: 1, now: 1 }): void {
	file.transaction(() => {
		for (const write of writes) file.tables.apply(write, facts);
	});
}

export interface Opened {
	file: SqliteFile;
	ledger: Ledger & ServiceRows;
	/** Commits one unit. */
	write(...writes: Write[]): void;
}

export interface OpenedAnywhere extends Pick<Opened, "ledger"> {
	/** Unless it is in PostgreSQL. */
	file?: SqliteFile;
	/** Commits one unit; rejects with its refusal. */
	write(...writes: Write[]): Promise<void>;
	/** For a Bus on the same store. */
	storage(): Storage;
}

/** `node` is who commits. */
export function openLedger(path: string, node = 1): Opened {
	const file = openSqlite(path, "process");
	onTestFinished(() => {
		if (file.db.isOpen) file.close();
	});
	const ledger = { ...sqliteLedger(file), ...serviceRows(file) };
	return { file, ledger, write: (...writes) => commit(file, writes, { node, now: 1 }) };
}

export interface OpenedDatabase extends OpenedAnywhere {
	node: number;
	close(): Promise<void>;
}

/** Takes part in a database as a daemon does. */
export async function joinDatabase(database: TestDatabase): Promise<OpenedDatabase> {
	const options = { ...quiet, url: database.url, readsMax: 1, random: Math.random };
	const { postgres, storage, ledger, rows } = await openDatabase(options, { log: quiet.log });
	const { node } = await storage.join("test", false);
	let n = 0;
	const write = async (...writes: Write[]) => {
		n++;
		const units = [{ writes, log: undefined }];
		const outcome = (await storage.commit({ node, n, again: false, units })).outcomes.get(0);
		if (outcome && "refused" in outcome) throw outcome.refused;
	};
	return { storage: () => storage, node, close: () => postgres.close(), ledger: { ...ledger, ...rows }, write };
}

/** For one test: all who join it leave before it is dropped. */
export async function freshDatabase(): Promise<{ database: TestDatabase; join(): Promise<OpenedDatabase> }> {
	const database = await databaseForTest();
	const joined: OpenedDatabase[] = [];
	onTestFinished(async () => {
		for (const each of joined) await each.close();
		await database.drop();
	});
	const join = async () => {
		const opened = await joinDatabase(database);
		joined.push(opened);
		return opened;
	};
	return { database, join };
}

export const answeringLater = ({ file, ledger, write }: Opened): OpenedAnywhere => ({
	file,
	ledger,
	storage: () => sqliteStorage(file),
	write: async (...writes) => write(...writes),
});

const fileStores: readonly [name: string, open: () => Opened][] = [
	["in memory", () => openLedger(":memory:")],
	["in a file", () => openLedger(join(freshFolder(), "nexus.db"))],
];

type Store = [name: string, open: () => Promise<OpenedAnywhere>];

/** Every rule holds on each of these. */
export const stores: readonly Store[] = [
	...fileStores.map(([name, open]): Store => [name, async () => answeringLater(open())]),
	...(hasPostgres ? [["in PostgreSQL", async () => (await freshDatabase()).join()] satisfies Store] : []),
];

export const turnOf = (runId: string, fields: Partial<Turn> = {}): Turn => ({
	runId,
	session: "main",
	engine: "demo",
	status: "completed",
	reason: "completed",
	startedAt: 1000,
	endedAt: 2000,
	usage: { input: -1, output: -1 },
	messages: [
		{ role: "user", text: "question" },
		{ role: "assistant", text: "answer", messageId: `${runId}.1` },
	],
	toolCalls: [],
	...fields,
});

export const eventOf = (eventId: string, fields: Partial<InboundEvent> = {}): InboundEvent => ({
	eventId,
	session: "main",
	text: `text of ${eventId}`,
	attachments: [],
	receivedAt: 1000,
	disposition: { state: "queued" },
	...fields,
});

export const notes = { name: "notes.txt", contentType: "text/plain", data: "aGVsbG8=" };

/** A turn that uses every field there is. */
export const fullTurn = turnOf("run_full", {
	status: "failed",
	reason: "timeout",
	error: { code: "timeout", message: "too slow" },
	firstTokenMs: 0,
	usage: { input: 10, output: 20, cache_read: 5 },
	usageBy: [{ agent: "lead", model: "m", usage: { input: 10, output: 20, cache_read: 5 } }],
	trace: {
		channel: "telegram",
		account: "bot",
		sender: "7",
		deliveries: [],
		stages: [{ stage: "receive", at: 1, ms: 2 }],
		hooks: [{ plugin: "p", hook: "onReceive", ms: 1, outcome: "failed", detail: "odd" }],
	},
	messages: [
		{ role: "user", text: "look at this", eventId: "evt_unknown", attachments: [notes] },
		{ role: "assistant", text: "", messageId: "run_full.1" },
		{
			role: "assistant",
			text: "emoji 🧵, line\nfeed",
			messageId: "run_full.3",
			reasoning: "hm",
			agent: "lead",
			visible: false,
		},
		{
			role: "assistant",
			text: "see",
			messageId: "run_full.4",
			signedReasoning: [{ text: "half \ud83d", signature: "sig", after: 0, callsBefore: 1 }],
			parts: [
				{
					modality: "card",
					contentType: "application/json",
					description: "card: a",
					bytes: 2,
					after: 3,
					payload: "{}",
				},
			],
		},
	],
	toolCalls: [
		{
			callId: "c1",
			name: "read",
			status: "completed",
			message: 1,
			startedAt: 1,
			endedAt: 2,
			args: '{"a":1}',
			result: '"ok"',
			content: [
				{ type: "text", text: "a picture" },
				{ type: "image", contentType: "image/png", data: "AAAA" },
				{ type: "resource", uri: "file:///a", text: "b" },
			],
			after: 7,
			agent: "lead",
		},
		{ callId: "c2", name: "stop", status: "failed", message: 1, startedAt: 2, endedAt: 3, summary: "stopped" },
	],
});
