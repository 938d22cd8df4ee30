/** Workflows in a SQLite file. */

import { type AtOnce, jsonOrNull, jsonText, must, type Row, type SqliteTable, statement } from "../../ledger/table.ts";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import type { StoredNode, StoredWorkflow, WorkflowOps, WorkflowRows } from "./rows.ts";

const STEPS: readonly string[] = [
	`
	CREATE TABLE workflow (
		id TEXT PRIMARY KEY,
		app_id TEXT NOT NULL,
		user_id TEXT NOT NULL,
		owner INTEGER NOT NULL,
		name TEXT NOT NULL,
		definition TEXT NOT NULL,
		state TEXT NOT NULL,
		error TEXT,
		created_at INTEGER NOT NULL,
		started_at INTEGER,
		finished_at INTEGER
	) STRICT, WITHOUT ROWID;
	CREATE INDEX workflow_by_app ON workflow (app_id, id);
	CREATE INDEX workflow_by_time ON workflow (finished_at) WHERE finished_at IS NOT NULL;
	CREATE TABLE workflow_node (
		workflow_id TEXT NOT NULL,
		position INTEGER NOT NULL,
		node_id TEXT NOT NULL,
		state TEXT NOT NULL,
		status TEXT NOT NULL,
		output TEXT,
		PRIMARY KEY (workflow_id, node_id)
	) STRICT, WITHOUT ROWID;
	`,
	`
	-- The sizes are sums over an index.
	ALTER TABLE workflow ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
	UPDATE workflow SET bytes = octet_length(definition) + ifnull(octet_length(error), 0);
	ALTER TABLE workflow_node ADD COLUMN app_id TEXT NOT NULL DEFAULT '';
	UPDATE workflow_node SET app_id = ifnull((SELECT app_id FROM workflow WHERE id = workflow_id), '');
	ALTER TABLE workflow_node ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
	UPDATE workflow_node SET bytes = octet_length(status) + ifnull(octet_length(output), 0);
	CREATE INDEX workflow_bytes ON workflow (app_id, bytes);
	CREATE INDEX workflow_node_bytes ON workflow_node (app_id, bytes);
	`,
	"ALTER TABLE workflow_node ADD COLUMN shape TEXT",
];

const LIST_MAX = 1000;

export const workflowsInSqlite: SqliteTable<AtOnce<WorkflowRows>> = {
	area: "workflows",
	steps: STEPS,
	listedBy: { table: "workflow", id: "id" },
	open(file) {
		file.tables.register<WorkflowOps>("workflows", applier(file));
		const get = statement(file, "SELECT * FROM workflow WHERE id = ?");
		const nodes = statement(file, "SELECT * FROM workflow_node WHERE workflow_id = ? ORDER BY position");
		const statuses = statement(
			file,
			"SELECT node_id, state, status, shape, NULL AS output FROM workflow_node WHERE workflow_id = ? ORDER BY position",
		);
		const list = statement(
			file,
			`SELECT id, app_id, user_id, owner, name, state, error, created_at, started_at, finished_at FROM workflow WHERE (?1 IS NULL OR app_id = ?1) AND (?2 IS NULL OR id < ?2)
			AND (?3 IS NULL OR state IN (SELECT value FROM json_each(?3))) ORDER BY id DESC LIMIT ?4`,
		);
		const older = statement(
			file,
			"SELECT 1 FROM workflow WHERE finished_at < ?1 AND (?2 IS NULL OR app_id = ?2) LIMIT 1",
		);
		const bytes = statement(
			file,
			`SELECT ifnull((SELECT sum(bytes) FROM workflow WHERE app_id = ?1), 0)
			+ ifnull((SELECT sum(bytes) FROM workflow_node WHERE app_id = ?1), 0) AS bytes`,
		);
		return {
			get(id) {
				const row = get.get(id);
				return row && workflowOf(row);
			},
			nodes: (id) => nodes.all(id).map(nodeOf),
			statuses: (id) => statuses.all(id).map(nodeOf),
			list: ({ appId, states, limit, before }) =>
				list.all(appId ?? null, before ?? null, jsonOrNull(states), Math.min(limit, LIST_MAX)).map(headOf),
			isOlder: (before, appId) => older.get(before, appId ?? null) !== undefined,
			bytes: (appId) => Number(bytes.get(appId)!.bytes),
		};
	},
};

function applier(file: SqliteFile): ApplierOf<WorkflowOps> {
	const insert = statement(
		file,
		`INSERT INTO workflow (id, app_id, user_id, owner, name, definition, state, error, created_at, started_at, finished_at, bytes)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, octet_length(?6) + ifnull(octet_length(?8), 0))`,
	);
	const insertNode = statement(
		file,
		`INSERT INTO workflow_node (workflow_id, position, node_id, state, status, output, app_id, shape, bytes)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, octet_length(?5) + ifnull(octet_length(?6), 0) + ifnull(octet_length(?8), 0))`,
	);
	const advance = statement(
		file,
		`UPDATE workflow SET state = ?1, error = ?2, started_at = ?3, finished_at = ?4,
		bytes = octet_length(definition) + ifnull(octet_length(?2), 0) WHERE id = ?5 AND finished_at IS NULL`,
	);
	const advanceNode = statement(
		file,
		`UPDATE workflow_node SET state = ?1, status = ?2, output = ?3,
		bytes = octet_length(?2) + ifnull(octet_length(?3), 0) + ifnull(octet_length(shape), 0) WHERE workflow_id = ?4 AND node_id = ?5
		AND state NOT IN ('completed', 'failed', 'canceled', 'skipped')`,
	);
	const old =
		"SELECT id FROM workflow WHERE finished_at < ?1 AND (?3 IS NULL OR app_id = ?3) ORDER BY finished_at LIMIT ?2";
	const forgetNodes = statement(file, `DELETE FROM workflow_node WHERE workflow_id IN (${old})`);
	const forget = statement(file, `DELETE FROM workflow WHERE id IN (${old})`);
	return {
		create(_, { definition, owner, ...one }, nodes) {
			insert.run(
				...[one.id, one.appId, one.userId, owner ? 1 : 0, one.name, jsonText(definition), one.state],
				...[jsonOrNull(one.error), one.createdAt, one.startedAt ?? null, one.finishedAt ?? null],
			);
			for (const [position, { nodeId, state, status, output, shape }] of nodes.entries())
				insertNode.run(
					...[one.id, position, nodeId, state, jsonText(status), jsonOrNull(output), one.appId, jsonOrNull(shape)],
				);
		},
		advance(_, id, { state, error, startedAt, finishedAt }, nodes) {
			const changed = advance.run(state, jsonOrNull(error), startedAt ?? null, finishedAt ?? null, id);
			must(changed, `Workflow ${id} has ended, or there is none.`);
			for (const node of nodes) {
				const moved = advanceNode.run(node.state, jsonText(node.status), jsonOrNull(node.output), id, node.nodeId);
				must(moved, `Node ${node.nodeId} of ${id} has ended, or there is none.`);
			}
		},
		forget(_, before, rowsMax, appId) {
			forgetNodes.run(before, rowsMax, appId ?? null);
			forget.run(before, rowsMax, appId ?? null);
		},
	};
}

const workflowOf = (row: Row): StoredWorkflow => ({
	...headOf(row),
	definition: JSON.parse(row.definition as string) as unknown,
});

function headOf(row: Row): Omit<StoredWorkflow, "definition"> {
	return {
		id: row.id as string,
		appId: row.app_id as string,
		userId: row.user_id as string,
		owner: row.owner === 1,
		name: row.name as string,
		state: row.state as string,
		createdAt: row.created_at as number,
		error: row.error === null ? undefined : (JSON.parse(row.error as string) as unknown),
		startedAt: row.started_at === null ? undefined : (row.started_at as number),
		finishedAt: row.finished_at === null ? undefined : (row.finished_at as number),
	};
}

const nodeOf = (row: Row): StoredNode => ({
	nodeId: row.node_id as string,
	state: row.state as string,
	status: JSON.parse(row.status as string) as unknown,
	shape: row.shape === null ? undefined : (JSON.parse(row.shape as string) as unknown),
	output: row.output === null ? undefined : (JSON.parse(row.output as string) as unknown),
});
