/** The inbox in a SQLite file. */

import type { SQLOutputValue } from "node:sqlite";
import { Refused } from "@nexus-stream/protocol";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { sessionUse } from "../sessions/sqlite.ts";
import {
	type AtOnce,
	adoption,
	jsonOrNull,
	jsonText,
	NODE_TABLE,
	ownerLives,
	pageEnd,
	type Row,
	type SqliteTable,
	type Statement,
	statement,
} from "../table.ts";
import type { Disposition, InboundEvent, InboxOps, QueueSettings, StoredAttachment, StoredInbox } from "./port.ts";

/** After the steps of the area `ledger`, which made the table. */
const STEPS: readonly string[] = [
	`
	-- The start of the daemon that accepted it or took it over.
	ALTER TABLE inbound ADD COLUMN node INTEGER NOT NULL DEFAULT 0;
	${NODE_TABLE};
	CREATE INDEX inbound_waiting ON inbound (session, seq) WHERE state = 'queued';
	`,
	"CREATE INDEX inbound_handled ON inbound (session, because, seq) WHERE state = 'handled';",
];

export const inboxInSqlite: SqliteTable<AtOnce<StoredInbox>> = {
	area: "inbox",
	steps: STEPS,
	listedBy: { table: "inbound", id: "event_id" },
	open(file) {
		file.tables.register<InboxOps>("inbox", applier(file));
		return reads(file);
	},
};

function reads(file: SqliteFile): AtOnce<StoredInbox> {
	const select = (where: string) => statement(file, `SELECT * FROM inbound WHERE ${where}`);
	const byId = select("event_id = ?");
	const byKey = select("session = ? AND idempotency_key = ?");
	const bySource = select("channel = ? AND account = ? AND source_id = ?");
	const queued = select("state = 'queued' ORDER BY seq");
	const queuedOfSession = select("state = 'queued' AND session = ? ORDER BY seq");
	const joined = select("session = ? AND run_id = ? AND state = 'injected' ORDER BY seq");
	const handled = select(
		"state = 'handled' AND session = ? AND because = ? AND event_id < ? ORDER BY event_id DESC LIMIT 1",
	);
	const author = statement(
		file,
		"SELECT event_id, channel, account, sender, sender_name, facts FROM inbound WHERE event_id = ?",
	);
	const left = select(`state = 'queued' AND NOT ${ownerLives("inbound")} ORDER BY seq`);
	const newest = (where: string) =>
		select(
			`${where} AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR channel = ?3)
			AND (?4 IS NULL OR seq < ${pageEnd("inbound", "event_id", "?4")}) ORDER BY seq DESC LIMIT ?5`,
		);
	const newestOfAll = newest("?1 IS NULL");
	const newestOfSession = newest("session = ?1");
	const one = (found: Statement, ...keys: string[]) => {
		const row: Row | undefined = found.get(...keys);
		return row && eventOf(row);
	};
	return {
		get: (eventId) => one(byId, eventId),
		byKey: (session, key) => one(byKey, session, key),
		bySource: (...source) => one(bySource, ...source),
		queued: (session) => (session === undefined ? queued.all() : queuedOfSession.all(session)).map(eventOf),
		joined: (session, runId) => joined.all(session, runId).map(eventOf),
		handled: (...event) => one(handled, ...event),
		authors: (eventIds) => eventIds.flatMap((eventId) => author.all(eventId).map(authorOf)),
		orphaned: () => left.all().map(eventOf),
		list({ session = null, state = null, channel = null, before = null, limit }) {
			const found = session === null ? newestOfAll : newestOfSession;
			return found.all(session, state, channel, before, limit).map(eventOf);
		},
	};
}

/** A message that was not accepted does not create or rename a session; neither does an event that only stands for others. */
const isOfSession = ({ state }: Disposition, batch: readonly string[] | undefined): boolean =>
	!["rejected", "dropped", "cancelled", "handled", "answered"].includes(state) && batch === undefined;

/** A run has it: nothing can take it back. */
const isAnswered = ({ state }: Disposition): boolean =>
	state === "started" || state === "batched" || state === "injected";

function applier(file: SqliteFile): ApplierOf<InboxOps> {
	const insert = statement(
		file,
		`INSERT INTO inbound (${EVENT_COLUMNS.join(", ")}, node) VALUES (${EVENT_COLUMNS.map(() => "?").join(", ")}, ?)
		ON CONFLICT (session, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
		ON CONFLICT (channel, account, source_id) WHERE source_id IS NOT NULL DO NOTHING`,
	);
	const update = statement(
		file,
		`UPDATE inbound SET state = ?, run_id = ?, because = ?, superseded_by = ? WHERE event_id = ?
		AND state IN (SELECT value FROM json_each(?))`,
	);
	const stateOf = statement(file, "SELECT state FROM inbound WHERE event_id = ?");
	const forget = statement(
		file,
		`DELETE FROM inbound WHERE state = 'rejected' AND seq <= coalesce(
			(SELECT seq FROM inbound WHERE state = 'rejected' ORDER BY seq DESC LIMIT 1 OFFSET ?), -1)`,
	);
	const session = sessionUse(file);
	const messageOf = statement(file, "SELECT session, substr(text, 1, 1000) AS text FROM inbound WHERE event_id = ?");
	return {
		accept({ node }, event) {
			if (insert.run(...eventColumns(event), node) === 0)
				throw new Refused("duplicate", "A message with this idempotency key or source id is already here.");
			const { disposition, batch, receivedAt, text } = event;
			if (isOfSession(disposition, batch)) session.received(event.session, receivedAt, text, isAnswered(disposition));
		},
		dispose(_, eventId, disposition, expected) {
			if (update.run(...dispositionColumns(disposition), eventId, JSON.stringify(expected)) > 0) {
				const row = isAnswered(disposition) ? messageOf.get(eventId) : undefined;
				if (row) session.answered(String(row.session), String(row.text));
				return;
			}
			const state = stateOf.get(eventId)?.state;
			const found = state === undefined ? "is not there" : `is ${String(state)}, not ${expected.join(" or ")}`;
			throw new Refused("conflict", `Inbound event ${eventId} ${found}.`);
		},
		forgetRejected(_, keep) {
			forget.run(keep);
		},
		adopt: adoption(file, "inbound", "event_id", "state = 'queued'"),
	};
}

export const attachmentsText = (list: readonly StoredAttachment[] | undefined): string | null =>
	list === undefined || list.length === 0 ? null : jsonText(list);

export const attachmentsOf = (value: SQLOutputValue | undefined): StoredAttachment[] =>
	typeof value === "string" ? (JSON.parse(value) as StoredAttachment[]) : [];

function eventOf(row: Row): InboundEvent {
	const event: InboundEvent = {
		eventId: String(row.event_id),
		session: String(row.session),
		text: String(row.text),
		attachments: attachmentsOf(row.attachments),
		receivedAt: Number(row.received_at),
		disposition: dispositionOf(row),
	};
	if (row.idempotency_key !== null) event.idempotencyKey = String(row.idempotency_key);
	if (row.channel !== null) {
		event.origin = { channel: String(row.channel), account: String(row.account), sender: String(row.sender) };
		if (row.source_id !== null) event.origin.sourceId = String(row.source_id);
		if (row.sender_name !== null) event.origin.senderName = String(row.sender_name);
	}
	if (row.queue !== null) event.queue = JSON.parse(String(row.queue)) as QueueSettings;
	if (row.batch !== null) event.batch = JSON.parse(String(row.batch)) as string[];
	if (row.trace_id !== null) event.traceId = String(row.trace_id);
	if (row.facts !== null) event.facts = JSON.parse(String(row.facts)) as Record<string, unknown>;
	return event;
}

function authorOf(row: Row): Pick<InboundEvent, "eventId" | "origin" | "facts"> {
	const origin = { channel: String(row.channel), account: String(row.account), sender: String(row.sender) };
	const name = row.sender_name === null ? {} : { senderName: String(row.sender_name) };
	return {
		eventId: String(row.event_id),
		origin: row.channel === null ? undefined : { ...origin, ...name },
		facts: row.facts === null ? undefined : (JSON.parse(String(row.facts)) as Record<string, unknown>),
	};
}

/** In the order of EVENT_COLUMNS. */
function eventColumns(event: InboundEvent): (string | number | null)[] {
	const { origin } = event;
	const [state, runId, because, supersededBy] = dispositionColumns(event.disposition);
	return [
		event.eventId,
		event.session,
		event.text,
		attachmentsText(event.attachments),
		event.idempotencyKey ?? null,
		event.receivedAt,
		state,
		runId,
		because,
		supersededBy,
		origin?.channel ?? null,
		origin?.account ?? null,
		origin?.sourceId ?? null,
		origin?.sender ?? null,
		origin?.senderName ?? null,
		jsonOrNull(event.queue),
		jsonOrNull(event.batch),
		jsonOrNull(event.facts),
		event.traceId ?? null,
	];
}

const EVENT_COLUMNS = [
	...["event_id", "session", "text", "attachments", "idempotency_key", "received_at"],
	...["state", "run_id", "because", "superseded_by"],
	...["channel", "account", "source_id", "sender", "sender_name", "queue", "batch", "facts", "trace_id"],
];

function dispositionOf(row: Row): Disposition {
	const because = String(row.because);
	switch (String(row.state) as Disposition["state"]) {
		case "started":
			return { state: "started", runId: String(row.run_id) };
		case "batched":
			return { state: "batched", runId: String(row.run_id) };
		case "injected":
			return { state: "injected", runId: String(row.run_id) };
		case "cancelled":
			return { state: "cancelled" };
		case "handled":
			return { state: "handled", because };
		case "superseded": {
			const by = String(row.superseded_by);
			return { state: "superseded", by, ...(row.run_id !== null && { runId: String(row.run_id) }) };
		}
		case "rejected":
			return { state: "rejected", because };
		case "dropped":
			return { state: "dropped", because };
		case "answered":
			return { state: "answered", because };
		default:
			return { state: "queued" };
	}
}

/** [state, run_id, because, superseded_by] */
function dispositionColumns(disposition: Disposition): [string, string | null, string | null, string | null] {
	const { state } = disposition;
	switch (state) {
		case "started":
		case "batched":
		case "injected":
			return [state, disposition.runId, null, null];
		case "queued":
		case "cancelled":
			return [state, null, null, null];
		case "superseded":
			return [state, disposition.runId ?? null, null, disposition.by];
		case "rejected":
		case "dropped":
		case "handled":
		case "answered":
			return [state, null, disposition.because, null];
		default:
			return disposition satisfies never;
	}
}
