/** Deliveries in SQL. */

import { Columns, insertInto, json, mark, number, text } from "../../std/sql/columns.ts";
import {
	jsonText,
	must,
	type Row,
	type SchemaStep,
	type SqlReader,
	type SqlTable,
	type StepsOf,
	step,
} from "../../std/sql/sql.ts";
import { type Reading, whenRead } from "../../std/write.ts";
import { adopted, adoption, NODE_TABLE, ownerLives } from "../table.ts";
import type { Deliveries, Delivery, DeliveryCounts, DeliveryMessage, DeliveryOps, DeliveryTarget } from "./port.ts";

const SCHEMA: readonly SchemaStep[] = [
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

const DELIVERY = new Columns<Omit<Delivery, "messages">>({
	id: text("id"),
	runId: text("run_id"),
	channel: text("channel"),
	account: text("account"),
	target: json("target", canonical),
	options: json("options"),
	mode: text("mode"),
	state: text("state"),
	cursor: number("position"),
	carry: text("carry"),
	error: text("error"),
	createdAt: number("created_at"),
	updatedAt: number("updated_at"),
	endedAt: number("ended_at"),
});

const MESSAGE = new Columns<DeliveryMessage>({
	ordinal: number("ordinal"),
	nonce: text("nonce"),
	from: number("source_from"),
	to: number("source_to"),
	messageId: text("message_id"),
	state: text("state"),
	shown: number("shown"),
	abandoned: mark("abandoned", true, 0),
	edits: number("edits", 0),
	text: text("text"),
	done: number("text_done"),
	facts: json("facts"),
	error: text("error"),
});

/** An error that another daemon recorded meanwhile stays, and makes a message that is now sent a failed one. */
const CHANGES = MESSAGE.names.slice(2).map((name) => {
	if (name === "error") return "error = coalesce(excluded.error, delivery_message.error)";
	if (name !== "state") return `${name} = excluded.${name}`;
	return `state = CASE WHEN excluded.state = 'sent' AND delivery_message.error IS NOT NULL THEN 'failed' ELSE excluded.state END`;
});

const OF_MESSAGE = "delivery = (SELECT seq FROM delivery WHERE id = ?1) AND nonce = ?2";

const SQL = {
	open: `${insertInto("delivery", DELIVERY, { names: ["node"] })} ON CONFLICT (run_id, channel, account, target) DO NOTHING`,
	setMode: "UPDATE delivery SET mode = ?, updated_at = ? WHERE id = ?",
	reopen: `UPDATE delivery SET state = 'active', error = NULL, ended_at = NULL, updated_at = ?, node = ?
		WHERE id = ? AND state <> 'active'`,
	finish: "UPDATE delivery SET state = ?1, error = ?2, updated_at = ?3, ended_at = ?3 WHERE id = ?4",
	adopt: adoption("delivery", "id", "state = 'active'"),
	moved: `UPDATE delivery SET position = greatest(position, ?), carry = ?, updated_at = greatest(updated_at, ?) WHERE id = ?`,
	touched: "UPDATE delivery SET updated_at = greatest(updated_at, ?) WHERE id = ?",
	put: `INSERT INTO delivery_message (delivery, ${MESSAGE.names.join(", ")})
		SELECT seq, ${MESSAGE.names.map((_, n) => `?${n + 2}`).join(", ")} FROM delivery WHERE id = ?1
		ON CONFLICT (delivery, nonce) DO UPDATE SET ${CHANGES.join(", ")}`,
	drop: `DELETE FROM delivery_message WHERE ${OF_MESSAGE} AND state IN ('intended', 'open')`,
	missed: `UPDATE delivery_message SET state = CASE WHEN state = 'sent' THEN 'failed' ELSE state END, message_id = ?3,
		error = ?4 WHERE ${OF_MESSAGE}`,
	unmade: "UPDATE delivery SET state = 'failed', error = ?2 WHERE id = ?1 AND state = 'complete'",
};

const noDelivery = (id: string) => `There is no delivery ${id}.`;
const noMessage = (id: string, nonce: string) => `There is no message ${nonce} in delivery ${id}.`;

const ops: StepsOf<DeliveryOps> = {
	open({ node }, delivery) {
		const { runId, channel, account, createdAt } = delivery;
		const opened = DELIVERY.values({ ...delivery, state: "active", cursor: 0, updatedAt: createdAt });
		const known = `Run ${runId} is already delivered to this chat of ${channel}/${account}.`;
		return [must(SQL.open, [...opened, node], known, "duplicate")];
	},
	setMode: (_, id, mode, now) => [must(SQL.setMode, [mode, now, id], noDelivery(id))],
	finish: (_, id, state, error, now) => [must(SQL.finish, [state, error ?? null, now, id], noDelivery(id))],
	reopen: ({ node }, id, now) => [must(SQL.reopen, [now, node, id], `There is no delivery ${id} that has ended.`)],
	adopt: (facts, ids) => adopted(SQL.adopt, facts, ids),
	put: (_, id, message, { cursor, carry = null }, now) => [
		must(SQL.put, MESSAGE.values(message, id), noMessage(id, message.nonce)),
		step(SQL.moved, cursor, carry, now, id),
	],
	drop: (_, id, nonce, now) => [must(SQL.drop, [id, nonce], noMessage(id, nonce)), step(SQL.touched, now, id)],
	failed: (_, id, nonce, { messageId, error }, now) => [
		step(SQL.unmade, id, error),
		must(SQL.missed, [id, nonce, messageId, error], noMessage(id, nonce)),
		step(SQL.touched, now, id),
	],
};

export const deliveriesTable: SqlTable<Deliveries> = {
	name: "deliveries",
	schema: SCHEMA,
	listedBy: { table: "delivery", id: "id" },
	sql: SQL,
	ops,
	reads(db) {
		const whole = withMessages(db);
		const same = (row: Row) => row;
		const byId = db.all("SELECT * FROM delivery WHERE id = ?", same);
		const left = db.all(
			`SELECT * FROM delivery WHERE state = 'active' AND NOT ${ownerLives("delivery")} ORDER BY seq`,
			same,
		);
		const newest = (where: string) =>
			db.all(
				`SELECT * FROM delivery WHERE ${where} AND (CAST(?2 AS TEXT) IS NULL OR state = ?2)
				AND (CAST(?3 AS TEXT) IS NULL OR channel = ?3) AND (CAST(?4 AS TEXT) IS NULL OR account = ?4)
				AND (CAST(?5 AS TEXT) IS NULL OR id < ?5) AND (CAST(?6 AS TEXT) IS NULL OR id NOT IN listOf(?6))
				ORDER BY id DESC LIMIT ?7`,
				same,
			);
		const newestOfAll = newest("CAST(?1 AS TEXT) IS NULL");
		const newestOfRun = newest("run_id = ?1");
		const byState = db.all(
			"SELECT state, count(*) AS n FROM delivery WHERE channel = ? AND account = ? GROUP BY state",
			({ state, n }) => [state as keyof DeliveryCounts, Number(n)] as const,
		);
		const ofMessage = db.all(
			`SELECT delivery.*, nonce FROM delivery_message JOIN delivery ON delivery.seq = delivery_message.delivery
			WHERE (message_id = ?1 OR (message_id IS NULL AND nonce = ?2)) AND channel = ?3 AND account = ?4
			ORDER BY seq DESC LIMIT 1`,
			same,
		);
		return {
			get: (id) => whenRead(whole(byId(id)), ([found]) => found?.delivery),
			orphaned: () => whenRead(whole(left()), deliveriesOf),
			counts: (channel, account) =>
				whenRead(byState(channel, account), (found) => ({ ...NONE, ...Object.fromEntries(found) })),
			ofMessage: ({ messageId, nonce = null, channel, account }) =>
				whenRead(
					whole(ofMessage(messageId, nonce, channel, account)),
					([found]) => found && { delivery: found.delivery, nonce: String(found.row.nonce) },
				),
			list({ runId = null, state = null, channel = null, account = null, before = null, except, limit }) {
				const found = runId === null ? newestOfAll : newestOfRun;
				const excluded = except ? JSON.stringify(except) : null;
				return whenRead(whole(found(runId, state, channel, account, before, excluded, limit)), deliveriesOf);
			},
		};
	},
};

const NONE: DeliveryCounts = { active: 0, complete: 0, failed: 0, unknown: 0, stale: 0, damaged: 0 };

interface Found {
	row: Row;
	delivery: Delivery;
}

const deliveriesOf = (found: readonly Found[]): Delivery[] => found.map(({ delivery }) => delivery);

/** Completes the rows of deliveries with their messages: one statement, however many deliveries. */
function withMessages(db: SqlReader) {
	const messages = db.all(
		`SELECT * FROM delivery_message WHERE delivery IN (SELECT seq FROM delivery WHERE id IN listOf(?))
		ORDER BY delivery, ordinal`,
		(row) => [Number(row.delivery), MESSAGE.of(row)] as const,
	);
	return (found: Reading<Row[]>): Reading<Found[]> =>
		whenRead(found, (rows) => {
			if (rows.length === 0) return [];
			return whenRead(messages(JSON.stringify(rows.map(({ id }) => id))), (all) => {
				const messagesOf = Map.groupBy(all, ([delivery]) => delivery);
				return rows.map((row) => {
					const own = (messagesOf.get(Number(row.seq)) ?? []).map(([, message]) => message);
					return { row, delivery: { ...DELIVERY.of(row), messages: own } };
				});
			});
		});
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
