/** The inbox in SQL. */

import { Columns, insertInto, json, listed, number, text } from "../../std/sql/columns.ts";
import { must, pageEnd, type Row, type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import { whenRead } from "../../std/write.ts";
import { ORIGIN, sessionUse, titleOf } from "../sessions/sql.ts";
import { adopted, adoption, NODE_TABLE, ownerLives } from "../table.ts";
import type { Disposition, InboundEvent, InboxOps, StoredInbox } from "./port.ts";

/** After the steps of the area `ledger`, which made the table. */
const SCHEMA: readonly SchemaStep[] = [
	`
	-- The start of the daemon that accepted it or took it over.
	ALTER TABLE inbound ADD COLUMN node INTEGER NOT NULL DEFAULT 0;
	${NODE_TABLE};
	CREATE INDEX inbound_waiting ON inbound (session, seq) WHERE state = 'queued';
	`,
	"CREATE INDEX inbound_handled ON inbound (session, because, seq) WHERE state = 'handled';",
	`-- What its session is called should it be the first message that is answered; only of one that had to wait.
	ALTER TABLE inbound ADD COLUMN title TEXT;`,
];

const EVENT = new Columns<Omit<InboundEvent, "disposition" | "origin">>({
	eventId: text("event_id"),
	session: text("session"),
	text: text("text"),
	attachments: listed("attachments"),
	idempotencyKey: text("idempotency_key"),
	receivedAt: number("received_at"),
	queue: json("queue"),
	batch: json("batch"),
	facts: json("facts"),
	traceId: text("trace_id"),
});

/** The fields of all dispositions. */
const DISPOSITION = new Columns<{ state: Disposition["state"]; runId?: string; because?: string; by?: string }>({
	state: text("state"),
	runId: text("run_id"),
	because: text("because"),
	by: text("superseded_by"),
});

const SQL = {
	accept: `${insertInto("inbound", EVENT, DISPOSITION, ORIGIN, { names: ["node", "title"] })} ON CONFLICT DO NOTHING`,
	dispose: `UPDATE inbound SET state = ?, run_id = ?, because = ?, superseded_by = ? WHERE event_id = ? AND state IN listOf(?)`,
	forgetRejected: `DELETE FROM inbound WHERE state = 'rejected' AND seq <= coalesce(
		(SELECT seq FROM inbound WHERE state = 'rejected' ORDER BY seq DESC LIMIT 1 OFFSET ?), -1)`,
	adopt: adoption("inbound", "event_id", "state = 'queued'"),
};

/** A message that was not accepted does not create or rename a session; neither does an event that only stands for others. */
const isOfSession = ({ state }: Disposition, batch: readonly string[] | undefined): boolean =>
	!["rejected", "dropped", "cancelled", "handled", "answered"].includes(state) && batch === undefined;

/** A run has it: nothing can take it back. */
const isAnswered = ({ state }: Disposition): boolean =>
	state === "started" || state === "batched" || state === "injected";

const ops: StepsOf<InboxOps> = {
	accept({ node }, event) {
		const { session, disposition, batch, receivedAt, origin } = event;
		const values = [
			...EVENT.values(event),
			...DISPOSITION.values(disposition),
			...ORIGIN.values(origin),
			node,
			disposition.state === "queued" ? titleOf(event.text) : null,
		];
		const taken = "A message with this idempotency key or source id is already here.";
		const accepted = must(SQL.accept, values, taken, "duplicate");
		if (!isOfSession(disposition, batch)) return [accepted];
		return [accepted, sessionUse.received(session, receivedAt, event.text, isAnswered(disposition))];
	},
	dispose(_, eventId, disposition, expected) {
		const values = [...DISPOSITION.values(disposition), eventId, JSON.stringify(expected)];
		const disposed = must(
			SQL.dispose,
			values,
			`Inbound event ${eventId} is not there, or not ${expected.join(" or ")}.`,
		);
		return isAnswered(disposition) ? [disposed, sessionUse.answered(eventId)] : [disposed];
	},
	forgetRejected: (_, keep) => [step(SQL.forgetRejected, keep)],
	adopt: (facts, eventIds) => adopted(SQL.adopt, facts, eventIds),
};

export const inboxTable: SqlTable<StoredInbox> = {
	name: "inbox",
	schema: SCHEMA,
	listedBy: { table: "inbound", id: "event_id" },
	sql: SQL,
	ops,
	reads(db) {
		const get = (where: string) => db.get(`SELECT * FROM inbound WHERE ${where}`, eventOf);
		const all = (where: string) => db.all(`SELECT * FROM inbound WHERE ${where}`, eventOf);
		const queued = all("state = 'queued' ORDER BY seq");
		const queuedOfSession = all("state = 'queued' AND session = ? ORDER BY seq");
		const authors = db.all(
			"SELECT event_id, channel, account, sender, sender_name, facts FROM inbound WHERE event_id IN listOf(?)",
			authorOf,
		);
		const newest = (where: string) =>
			all(
				`${where} AND (CAST(?2 AS TEXT) IS NULL OR state = ?2) AND (CAST(?3 AS TEXT) IS NULL OR channel = ?3)
				AND (CAST(?4 AS TEXT) IS NULL OR seq < ${pageEnd("inbound", "event_id", "?4")}) ORDER BY seq DESC LIMIT ?5`,
			);
		const newestOfAll = newest("CAST(?1 AS TEXT) IS NULL");
		const newestOfSession = newest("session = ?1");
		return {
			get: get("event_id = ?"),
			byKey: get("session = ? AND idempotency_key = ?"),
			bySource: get("channel = ? AND account = ? AND source_id = ?"),
			queued: (session) => (session === undefined ? queued() : queuedOfSession(session)),
			joined: all("session = ? AND run_id = ? AND state = 'injected' ORDER BY seq"),
			handled: get("state = 'handled' AND session = ? AND because = ? AND event_id < ? ORDER BY event_id DESC LIMIT 1"),
			authors: (eventIds) =>
				whenRead(authors(JSON.stringify(eventIds)), (found) => {
					const byId = new Map(found.map((author) => [author.eventId, author]));
					return eventIds.flatMap((eventId) => byId.get(eventId) ?? []);
				}),
			orphaned: all(`state = 'queued' AND NOT ${ownerLives("inbound")} ORDER BY seq`),
			list: ({ session = null, state = null, channel = null, before = null, limit }) =>
				(session === null ? newestOfAll : newestOfSession)(session, state, channel, before, limit),
		};
	},
};

const originOf = (row: Row) => (row.channel === null ? undefined : ORIGIN.of(row));

const authorOf = (row: Row): Pick<InboundEvent, "eventId" | "origin" | "facts"> => ({
	...EVENT.of(row),
	origin: originOf(row),
});

function eventOf(row: Row): InboundEvent {
	const event: InboundEvent = { ...EVENT.of(row), disposition: DISPOSITION.of(row) as Disposition };
	event.attachments ??= [];
	if (row.channel !== null) event.origin = ORIGIN.of(row);
	return event;
}
