/** A Ledger on its own store, and how a test commits to it. */

import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { InboundEvent } from "../../packages/daemon/src/ledger/inbox/port.ts";
import { type Ledger, sqliteLedger } from "../../packages/daemon/src/ledger/ledger.ts";
import type { Turn } from "../../packages/daemon/src/ledger/turns/port.ts";
import { type ServiceRows, serviceRows } from "../../packages/daemon/src/runtime/data/tables.ts";
import { openSqlite, type SqliteFile } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import type { CommitFacts, Write } from "../../packages/daemon/src/std/write.ts";
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

/** `node` is who commits. */
export function openLedger(path: string, node = 1): Opened {
	const file = openSqlite(path, "process");
	onTestFinished(() => {
		if (file.db.isOpen) file.close();
	});
	const ledger = { ...sqliteLedger(file), ...serviceRows(file) };
	return { file, ledger, write: (...writes) => commit(file, writes, { node, now: 1 }) };
}

/** Every rule holds on each of these. */
export const stores: readonly [name: string, open: () => Opened][] = [
	["in memory", () => openLedger(":memory:")],
	["in a file", () => openLedger(join(freshFolder(), "nexus.db"))],
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
