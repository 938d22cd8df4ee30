/** Workflows in a SQLite file. */

import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import { type AtOnce, jsonOrNull, jsonText, must, type Row, type SqliteThing, statement } from "../thing.ts";
import type { StoredNode, StoredWorkflow, WorkflowOps, WorkflowRows } from "./port.ts";

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
	"ALTER TABLE workflow_node ADD COLUMN shape TEXT",
];

const LIST_MAX = 1000;

export const workflowsInSqlite: SqliteThing<AtOnce<WorkflowRows>> = {
	area: "workflows",
	steps: STEPS,
	open(file) {
		file.things.register<WorkflowOps>("workflows", applier(file));
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
		const older = statement(file, "SELECT 1 FROM workflow WHERE finished_at < ? LIMIT 1");
		return {
			get(id) {
				const row = get.get(id);
				return row && workflowOf(row);
			},
			nodes: (id) => nodes.all(id).map(nodeOf),
			statuses: (id) => statuses.all(id).map(nodeOf),
			list: ({ appId, states, limit, before }) =>
				list.all(appId ?? null, before ?? null, jsonOrNull(states), Math.min(limit, LIST_MAX)).map(headOf),
			isOlder: (before) => older.get(before) !== undefined,
		};
	},
};

function applier(file: SqliteFile): ApplierOf<WorkflowOps> {
	const insert = statement(
		file,
		`INSERT INTO workflow (id, app_id, user_id, owner, name, definition, state, error, created_at, started_at, finished_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	);
	const insertNode = statement(
		file,
		"INSERT INTO workflow_node (workflow_id, position, node_id, state, status, output, shape) VALUES (?, ?, ?, ?, ?, ?, ?)",
	);
	const advance = statement(
		file,
		"UPDATE workflow SET state = ?, error = ?, started_at = ?, finished_at = ? WHERE id = ? AND finished_at IS NULL",
	);
	const advanceNode = statement(
		file,
		`UPDATE workflow_node SET state = ?, status = ?, output = ? WHERE workflow_id = ? AND node_id = ?
		AND state NOT IN ('completed', 'failed', 'canceled', 'skipped')`,
	);
	const old = "SELECT id FROM workflow WHERE finished_at < ? ORDER BY finished_at LIMIT ?";
	const forgetNodes = statement(file, `DELETE FROM workflow_node WHERE workflow_id IN (${old})`);
	const forget = statement(file, `DELETE FROM workflow WHERE id IN (${old})`);
	return {
		create(_, { definition, owner, ...one }, nodes) {
			insert.run(
				...[one.id, one.appId, one.userId, owner ? 1 : 0, one.name, jsonText(definition), one.state],
				...[jsonOrNull(one.error), one.createdAt, one.startedAt ?? null, one.finishedAt ?? null],
			);
			for (const [position, { nodeId, state, status, output, shape }] of nodes.entries())
				insertNode.run(one.id, position, nodeId, state, jsonText(status), jsonOrNull(output), jsonOrNull(shape));
		},
		advance(_, id, { state, error, startedAt, finishedAt }, nodes) {
			const changed = advance.run(state, jsonOrNull(error), startedAt ?? null, finishedAt ?? null, id);
			must(changed, `Workflow ${id} has ended, or there is none.`);
			for (const node of nodes) {
				const moved = advanceNode.run(node.state, jsonText(node.status), jsonOrNull(node.output), id, node.nodeId);
				must(moved, `Node ${node.nodeId} of ${id} has ended, or there is none.`);
			}
		},
		forget(_, before, rowsMax) {
			forgetNodes.run(before, rowsMax);
			forget.run(before, rowsMax);
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
		...(row.error !== null && { error: JSON.parse(row.error as string) as unknown }),
		...(row.started_at !== null && { startedAt: row.started_at as number }),
		...(row.finished_at !== null && { finishedAt: row.finished_at as number }),
	};
}

const nodeOf = (row: Row): StoredNode => ({
	nodeId: row.node_id as string,
	state: row.state as string,
	status: JSON.parse(row.status as string) as unknown,
	...(row.shape !== null && { shape: JSON.parse(row.shape as string) as unknown }),
	...(row.output !== null && { output: JSON.parse(row.output as string) as unknown }),
});
