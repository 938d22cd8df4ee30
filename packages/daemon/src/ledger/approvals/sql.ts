/** Approvals and questions in SQL. */

import { Columns, insertInto, json, number, text } from "../../std/sql/columns.ts";
import { must, type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import type { Approval, ApprovalOps, Decided, StoredApprovals } from "./port.ts";

const SCHEMA: readonly SchemaStep[] = [
	`
	CREATE TABLE approval (
		seq INTEGER PRIMARY KEY,
		id TEXT NOT NULL,
		run_id TEXT NOT NULL,
		session TEXT NOT NULL,
		call_id TEXT NOT NULL,
		tool TEXT NOT NULL,
		agent TEXT,
		kind TEXT NOT NULL,
		args TEXT NOT NULL,
		digest TEXT NOT NULL,
		question TEXT,
		choices TEXT,
		asked_for TEXT,
		state TEXT NOT NULL,
		created_at INTEGER NOT NULL,
		expires_at INTEGER NOT NULL,
		decided_at INTEGER,
		decided_by TEXT,
		reason TEXT,
		answer TEXT
	) STRICT;
	CREATE UNIQUE INDEX approval_pending ON approval (id) WHERE state = 'pending';
	CREATE INDEX approval_id ON approval (id);
	CREATE INDEX approval_run ON approval (run_id);
	CREATE INDEX approval_session ON approval (session) WHERE state = 'pending';
	`,
	"CREATE INDEX approval_by_time ON approval (decided_at) WHERE decided_at IS NOT NULL;",
	"ALTER TABLE approval ADD COLUMN because TEXT;",
];

const APPROVAL = new Columns<Approval>({
	id: text("id"),
	runId: text("run_id"),
	session: text("session"),
	callId: text("call_id"),
	tool: text("tool"),
	agent: text("agent"),
	kind: text("kind"),
	args: json("args"),
	digest: text("digest"),
	question: text("question"),
	choices: json("choices"),
	requester: json("asked_for"),
	because: text("because"),
	state: text("state"),
	createdAt: number("created_at"),
	expiresAt: number("expires_at"),
	decidedAt: number("decided_at"),
	by: text("decided_by"),
	reason: text("reason"),
	text: text("answer"),
});

const DECIDE = "UPDATE approval SET state = ?1, decided_at = ?2, decided_by = ?3, reason = ?4, answer = ?5";

const SQL = {
	open: `${insertInto("approval", APPROVAL)} ON CONFLICT (id) WHERE state = 'pending' DO NOTHING`,
	decide: `${DECIDE} WHERE run_id = ?6 AND id = ?7 AND state = 'pending' AND (?8 = 1 OR expires_at > ?9)`,
	withdrawRun: `${DECIDE} WHERE run_id = ?6 AND state = 'pending'`,
	withdrawSession: `${DECIDE} WHERE session = ?6 AND state = 'pending'`,
	forget: "DELETE FROM approval WHERE seq IN (SELECT seq FROM approval WHERE decided_at < ? LIMIT ?)",
};

const valuesOf = ({ state, at, by, reason, text }: Decided) =>
	[state, at, by ?? null, reason ?? null, text ?? null] as const;

const ops: StepsOf<ApprovalOps> = {
	open: (_, approval) => [
		must(
			SQL.open,
			APPROVAL.values({ ...approval, args: approval.args ?? null }),
			`Another question has the id ${approval.id}.`,
		),
	],
	decide(_, { runId, id }, decided) {
		const isPersons = ["approved", "denied", "answered"].includes(decided.state);
		const values = [...valuesOf(decided), runId, id, isPersons ? 0 : 1, decided.at];
		return [must(SQL.decide, values, `${id} of ${runId} is decided already, or its time is over.`)];
	},
	withdrawRun: (_, runId, decided) => [step(SQL.withdrawRun, ...valuesOf(decided), runId)],
	withdrawSession: (_, session, decided) => [step(SQL.withdrawSession, ...valuesOf(decided), session)],
	forget: (_, before, rowsMax) => [step(SQL.forget, before, rowsMax)],
};

const LIST_MAX = 1000;

export const approvalsTable: SqlTable<StoredApprovals> = {
	name: "approvals",
	schema: SCHEMA,
	sql: SQL,
	ops,
	reads(db) {
		const list = db.all(
			`SELECT * FROM approval WHERE (CAST(?1 AS TEXT) IS NULL OR state = ?1) AND (CAST(?2 AS TEXT) IS NULL OR run_id = ?2)
			AND (CAST(?3 AS TEXT) IS NULL OR session = ?3) ORDER BY seq DESC LIMIT ?4`,
			APPROVAL.of,
		);
		return {
			find: db.get(
				"SELECT * FROM approval WHERE id = ? ORDER BY state = 'pending' DESC, seq DESC LIMIT 1",
				APPROVAL.of,
			),
			get: db.get("SELECT * FROM approval WHERE run_id = ? AND id = ? ORDER BY seq DESC LIMIT 1", APPROVAL.of),
			list: ({ state, runId, session, limit = LIST_MAX } = {}) =>
				list(state ?? null, runId ?? null, session ?? null, Math.min(limit, LIST_MAX)),
			pending: db.all("SELECT * FROM approval WHERE state = 'pending' ORDER BY seq", APPROVAL.of),
			isOlder: db.has("SELECT 1 FROM approval WHERE decided_at < ? LIMIT 1"),
		};
	},
};
