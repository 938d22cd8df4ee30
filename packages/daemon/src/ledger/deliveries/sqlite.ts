/** Deliveries in a SQLite file. */

import { type DeliveryMode, type DeliveryState, Refused } from "@nexus-stream/protocol";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import {
	type AtOnce,
	adoption,
	jsonOrNull,
	jsonText,
	must,
	NODE_TABLE,
	ownerLives,
	type Row,
	type SqliteTable,
	statement,
} from "../table.ts";
import type { Deliveries, Delivery, DeliveryCounts, DeliveryMessage, DeliveryOps, DeliveryTarget } from "./port.ts";

const STEPS: readonly string[] = [
	`
	CREATE TABLE delivery (
		seq INTEGER PRIMARY KEY,
		id TEXT NOT NULL UNIQUE,
		run_id TEXT NOT NULL,
		channel TEXT NOT NULL,
		account TEXT NOT NULL,
		target TEXT NOT NULL,
		options TEXT NOT NULL,
		mode TEXT,
		state TEXT NOT NULL,
		position INTEGER NOT NULL,
		carry TEXT,
		error TEXT,
		created_at INTEGER NOT NULL,
		updated_at INTEGER NOT NULL,
		ended_at INTEGER,
		UNIQUE (run_id, channel, account, target)
	) STRICT;
	CREATE INDEX delivery_active ON delivery (seq) WHERE state = 'active';
	CREATE INDEX delivery_by_account ON delivery (channel, account, seq);

	CREATE TABLE delivery_message (
		delivery INTEGER NOT NULL REFERENCES delivery (seq),
		ordinal INTEGER NOT NULL,
		nonce TEXT NOT NULL,
		source_from INTEGER NOT NULL,
		source_to INTEGER,
		message_id TEXT,
		state TEXT NOT NULL,
		shown INTEGER,
		text TEXT,
		PRIMARY KEY (delivery, ordinal),
		UNIQUE (delivery, nonce)
	) STRICT, WITHOUT ROWID;
	`,
	"ALTER TABLE delivery_message ADD COLUMN text_done INTEGER;",
	`
	ALTER TABLE delivery_message ADD COLUMN error TEXT;
	CREATE INDEX delivery_message_by_id ON delivery_message (message_id) WHERE message_id IS NOT NULL;
	CREATE INDEX delivery_message_by_nonce ON delivery_message (nonce);
	`,
	"CREATE INDEX delivery_by_state ON delivery (channel, account, state);",
	"ALTER TABLE delivery_message ADD COLUMN edits INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE delivery_message ADD COLUMN abandoned INTEGER NOT NULL DEFAULT 0;",
	`
	-- The start of the daemon that works on it.
	ALTER TABLE delivery ADD COLUMN node INTEGER NOT NULL DEFAULT 0;
	${NODE_TABLE};
	`,
	"ALTER TABLE delivery_message ADD COLUMN facts TEXT;",
];

export const deliveriesInSqlite: SqliteTable<AtOnce<Deliveries>> = {
	area: "deliveries",
	steps: STEPS,
	listedBy: { table: "delivery", id: "id" },
	open(file) {
		file.tables.register<DeliveryOps>("deliveries", { ...ofDelivery(file), ...ofMessages(file) });
		return reads(file);
	},
};

function reads(file: SqliteFile): AtOnce<Deliveries> {
	const messagesOf = statement(file, "SELECT * FROM delivery_message WHERE delivery = ? ORDER BY ordinal");
	const whole = (row: Row) => deliveryOf(row, messagesOf.all(Number(row.seq)));
	const byId = statement(file, "SELECT * FROM delivery WHERE id = ?");
	const left = statement(
		file,
		`SELECT * FROM delivery WHERE state = 'active' AND NOT ${ownerLives("delivery")} ORDER BY seq`,
	);
	const newest = (where: string) =>
		statement(
			file,
			`SELECT * FROM delivery WHERE ${where} AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR channel = ?3)
			AND (?4 IS NULL OR account = ?4) AND (?5 IS NULL OR id < ?5)
			AND (?6 IS NULL OR id NOT IN (SELECT value FROM json_each(?6))) ORDER BY id DESC LIMIT ?7`,
		);
	const newestOfAll = newest("?1 IS NULL");
	const newestOfRun = newest("run_id = ?1");
	const byState = statement(
		file,
		"SELECT state, count(*) AS n FROM delivery WHERE channel = ? AND account = ? GROUP BY state",
	);
	const ofMessage = statement(
		file,
		`SELECT delivery.*, nonce FROM delivery_message JOIN delivery ON delivery.seq = delivery_message.delivery
		WHERE (message_id = ?1 OR (message_id IS NULL AND nonce = ?2)) AND channel = ?3 AND account = ?4
		ORDER BY seq DESC LIMIT 1`,
	);
	return {
		get(id) {
			const row = byId.get(id);
			return row && whole(row);
		},
		orphaned: () => left.all().map(whole),
		counts(channel, account) {
			const counts: DeliveryCounts = { active: 0, complete: 0, failed: 0, unknown: 0, stale: 0, damaged: 0 };
			for (const { state, n } of byState.all(channel, account)) counts[state as DeliveryState] = Number(n);
			return counts;
		},
		ofMessage({ messageId, nonce = null, channel, account }) {
			const row = ofMessage.get(messageId, nonce, channel, account);
			return row && { delivery: whole(row), nonce: String(row.nonce) };
		},
		list({ runId = null, state = null, channel = null, account = null, before = null, except, limit }) {
			const found = runId === null ? newestOfAll : newestOfRun;
			return found.all(runId, state, channel, account, before, jsonOrNull(except), limit).map(whole);
		},
	};
}

type DeliveryOp = "open" | "setMode" | "finish" | "reopen" | "adopt";

function ofDelivery(file: SqliteFile): Pick<ApplierOf<DeliveryOps>, DeliveryOp> {
	const insert = statement(
		file,
		`INSERT INTO delivery (id, run_id, channel, account, target, options, state, position, created_at, updated_at, node)
		VALUES (?, ?, ?, ?, ?, ?, 'active', 0, ?7, ?7, ?8) ON CONFLICT (run_id, channel, account, target) DO NOTHING`,
	);
	const setMode = statement(file, "UPDATE delivery SET mode = ?, updated_at = ? WHERE id = ?");
	const again = statement(
		file,
		"UPDATE delivery SET state = 'active', error = NULL, ended_at = NULL, updated_at = ?, node = ? WHERE id = ? AND state <> 'active'",
	);
	const end = statement(file, "UPDATE delivery SET state = ?, error = ?, updated_at = ?3, ended_at = ?3 WHERE id = ?4");
	const missing = (id: string) => `There is no delivery ${id}.`;
	return {
		open({ node }, { id, runId, channel, account, target, options, createdAt }) {
			const place = [runId, channel, account, canonical(target)] as const;
			if (insert.run(id, ...place, jsonText(options), createdAt, node) > 0) return;
			throw new Refused("duplicate", `Run ${runId} is already delivered to this chat of ${channel}/${account}.`);
		},
		setMode: (_, id, mode, now) => must(setMode.run(mode, now, id), missing(id)),
		finish: (_, id, state, error, now) => must(end.run(state, error ?? null, now, id), missing(id)),
		reopen: ({ node }, id, now) => must(again.run(now, node, id), `There is no delivery ${id} that has ended.`),
		adopt: adoption(file, "delivery", "id", "state = 'active'"),
	};
}

function ofMessages(file: SqliteFile): Omit<ApplierOf<DeliveryOps>, DeliveryOp> {
	const moved = statement(
		file,
		"UPDATE delivery SET position = max(position, ?), carry = ?, updated_at = max(updated_at, ?) WHERE id = ?",
	);
	const touched = statement(file, "UPDATE delivery SET updated_at = max(updated_at, ?) WHERE id = ?");
	// An error that another daemon recorded meanwhile stays, and makes a message that is now sent a failed one.
	const put = statement(
		file,
		`INSERT INTO delivery_message (delivery, ordinal, nonce, source_from, source_to, message_id, state, shown, abandoned, edits,
		text, text_done, facts, error) SELECT seq, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14 FROM delivery WHERE id = ?1
		ON CONFLICT (delivery, nonce) DO UPDATE SET source_from = ?4, source_to = ?5, message_id = ?6,
		state = iif(?7 = 'sent' AND error IS NOT NULL, 'failed', ?7), shown = ?8, abandoned = ?9, edits = ?10, text = ?11, text_done = ?12,
		facts = ?13, error = coalesce(?14, error)`,
	);
	const which = "WHERE delivery = (SELECT seq FROM delivery WHERE id = ?1) AND nonce = ?2";
	const drop = statement(file, `DELETE FROM delivery_message ${which} AND state IN ('intended', 'open')`);
	const missed = statement(
		file,
		`UPDATE delivery_message SET state = iif(state = 'sent', 'failed', state), message_id = ?3, error = ?4 ${which}`,
	);
	const unmade = statement(
		file,
		"UPDATE delivery SET state = 'failed', error = ?2 WHERE id = ?1 AND state = 'complete'",
	);
	const found = (changes: number, id: string, nonce: string) =>
		must(changes, `There is no message ${nonce} in delivery ${id}.`);
	return {
		put(
			_,
			id,
			{ ordinal, nonce, from, to, messageId, state, shown, abandoned, edits = 0, ...rest },
			{ cursor, carry },
			now,
		) {
			const { text = null, done = null, facts, error = null } = rest;
			const place = [ordinal, nonce, from, to ?? null, messageId ?? null, state, shown ?? null] as const;
			found(put.run(id, ...place, Number(abandoned === true), edits, text, done, jsonOrNull(facts), error), id, nonce);
			moved.run(cursor, carry ?? null, now, id);
		},
		drop(_, id, nonce, now) {
			found(drop.run(id, nonce), id, nonce);
			touched.run(now, id);
		},
		failed(_, id, nonce, { messageId, error }, now) {
			unmade.run(id, error);
			found(missed.run(id, nonce, messageId, error), id, nonce);
			touched.run(now, id);
		},
	};
}

/** The same address is the same text, in whatever order its fields were written. */
function canonical(target: DeliveryTarget): string {
	const sorted = (value: unknown): unknown => {
		if (Array.isArray(value)) return value.map(sorted);
		if (typeof value !== "object" || value === null) return value;
		const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
		return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
	};
	return jsonText(sorted(target));
}

function deliveryOf(row: Row, messages: Row[]): Delivery {
	return {
		id: String(row.id),
		runId: String(row.run_id),
		channel: String(row.channel),
		account: String(row.account),
		target: JSON.parse(String(row.target)) as DeliveryTarget,
		options: JSON.parse(String(row.options)) as Record<string, unknown>,
		mode: row.mode === null ? undefined : (String(row.mode) as DeliveryMode),
		state: String(row.state) as DeliveryState,
		cursor: Number(row.position),
		carry: row.carry === null ? undefined : String(row.carry),
		error: row.error === null ? undefined : String(row.error),
		createdAt: Number(row.created_at),
		updatedAt: Number(row.updated_at),
		endedAt: row.ended_at === null ? undefined : Number(row.ended_at),
		messages: messages.map(messageOf),
	};
}

const messageOf = (row: Row): DeliveryMessage => ({
	ordinal: Number(row.ordinal),
	nonce: String(row.nonce),
	from: Number(row.source_from),
	to: row.source_to === null ? undefined : Number(row.source_to),
	messageId: row.message_id === null ? undefined : String(row.message_id),
	state: String(row.state) as DeliveryMessage["state"],
	shown: row.shown === null ? undefined : Number(row.shown),
	abandoned: row.abandoned === 0 ? undefined : (true as const),
	edits: row.edits === 0 ? undefined : Number(row.edits),
	text: row.text === null ? undefined : String(row.text),
	done: row.text_done === null ? undefined : Number(row.text_done),
	facts: row.facts === null ? undefined : (JSON.parse(String(row.facts)) as Record<string, unknown>),
	error: row.error === null ? undefined : String(row.error),
});
