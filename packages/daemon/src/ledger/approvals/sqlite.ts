/** Approvals and questions in a SQLite file. */

import { Refused } from "@nexus-stream/protocol";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { type AtOnce, jsonOrNull, jsonText, must, type Row, type SqliteTable, statement } from "../table.ts";
import type { Approval, ApprovalOps, ApprovalState, Decided, Requester, StoredApprovals } from "./port.ts";

const STEPS: readonly string[] = [
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

const LIST_MAX = 1000;

export const approvalsInSqlite: SqliteTable<AtOnce<StoredApprovals>> = {
	area: "approvals",
	steps: STEPS,
	open(file) {
		file.tables.register<ApprovalOps>("approvals", applier(file));
		const find = statement(
			file,
			"SELECT * FROM approval WHERE id = ? ORDER BY state = 'pending' DESC, seq DESC LIMIT 1",
		);
		const get = statement(file, "SELECT * FROM approval WHERE run_id = ? AND id = ? ORDER BY seq DESC LIMIT 1");
		const list = statement(
			file,
			`SELECT * FROM approval WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR run_id = ?2)
			AND (?3 IS NULL OR session = ?3) ORDER BY seq DESC LIMIT ?4`,
		);
		const pending = statement(file, "SELECT * FROM approval WHERE state = 'pending' ORDER BY seq");
		const older = statement(file, "SELECT 1 FROM approval WHERE decided_at < ? LIMIT 1");
		const one = (row: Row | undefined) => row && approvalOf(row);
		return {
			find: (id) => one(find.get(id)),
			get: (runId, id) => one(get.get(runId, id)),
			list: ({ state, runId, session, limit = LIST_MAX } = {}) =>
				list.all(state ?? null, runId ?? null, session ?? null, Math.min(limit, LIST_MAX)).map(approvalOf),
			pending: () => pending.all().map(approvalOf),
			isOlder: (before) => older.get(before) !== undefined,
		};
	},
};

const DECIDED = "state = ?, decided_at = ?, decided_by = ?, reason = ?, answer = ?";
const valuesOf = ({ state, at, by, reason, text }: Decided) =>
	[state, at, by ?? null, reason ?? null, text ?? null] as const;

function applier(file: SqliteFile): ApplierOf<ApprovalOps> {
	const open = statement(
		file,
		`INSERT INTO approval (id, run_id, session, call_id, tool, agent, kind, args, digest, question, choices, asked_for,
		state, created_at, expires_at, decided_at, decided_by, reason, answer, because)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	);
	const isPending = statement(file, "SELECT 1 FROM approval WHERE id = ? AND state = 'pending'");
	const decide = statement(
		file,
		`UPDATE approval SET ${DECIDED} WHERE run_id = ? AND id = ? AND state = 'pending' AND (? OR expires_at > ?)`,
	);
	const withdrawRun = statement(file, `UPDATE approval SET ${DECIDED} WHERE run_id = ? AND state = 'pending'`);
	const withdrawSession = statement(file, `UPDATE approval SET ${DECIDED} WHERE session = ? AND state = 'pending'`);
	const forget = statement(
		file,
		"DELETE FROM approval WHERE seq IN (SELECT seq FROM approval WHERE decided_at < ? LIMIT ?)",
	);
	return {
		open(_, one) {
			if (one.state === "pending" && isPending.get(one.id))
				throw new Refused("conflict", `Another question has the id ${one.id}.`);
			const { agent = null, question = null, by = null, reason = null, text = null, decidedAt = null } = one;
			open.run(
				...[one.id, one.runId, one.session, one.callId, one.tool, agent, one.kind],
				...[jsonText(one.args ?? null), one.digest, question, jsonOrNull(one.choices), jsonOrNull(one.requester)],
				...[one.state, one.createdAt, one.expiresAt, decidedAt, by, reason, text, one.because ?? null],
			);
		},
		decide(_, { runId, id }, decided) {
			const isPersons = ["approved", "denied", "answered"].includes(decided.state);
			const changed = decide.run(...valuesOf(decided), runId, id, isPersons ? 0 : 1, decided.at);
			must(changed, `${id} of ${runId} is decided already, or its time is over.`);
		},
		withdrawRun(_, runId, decided) {
			withdrawRun.run(...valuesOf(decided), runId);
		},
		withdrawSession(_, session, decided) {
			withdrawSession.run(...valuesOf(decided), session);
		},
		forget(_, before, rowsMax) {
			forget.run(before, rowsMax);
		},
	};
}

const parsed = <T>(text: unknown): T => JSON.parse(String(text)) as T;

const approvalOf = (row: Row): Approval => ({
	id: String(row.id),
	runId: String(row.run_id),
	session: String(row.session),
	callId: String(row.call_id),
	tool: String(row.tool),
	agent: row.agent === null ? undefined : String(row.agent),
	kind: row.kind === "question" ? "question" : "approval",
	args: parsed(row.args),
	digest: String(row.digest),
	question: row.question === null ? undefined : String(row.question),
	choices: row.choices === null ? undefined : parsed<string[]>(row.choices),
	requester: row.asked_for === null ? undefined : parsed<Requester>(row.asked_for),
	because: row.because === null ? undefined : String(row.because),
	state: String(row.state) as ApprovalState,
	createdAt: Number(row.created_at),
	expiresAt: Number(row.expires_at),
	decidedAt: row.decided_at === null ? undefined : Number(row.decided_at),
	by: row.decided_by === null ? undefined : String(row.decided_by),
	reason: row.reason === null ? undefined : String(row.reason),
	text: row.answer === null ? undefined : String(row.answer),
});
