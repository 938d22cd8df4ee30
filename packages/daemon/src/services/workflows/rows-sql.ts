/** Workflows in SQL. */

import { Columns, flag, insertInto, json, number, text } from "../../std/sql/columns.ts";
import {
	jsonOrNull,
	jsonText,
	must,
	type SchemaStep,
	type SqlTable,
	type SqlValue,
	type StepsOf,
	step,
} from "../../std/sql/sql.ts";
import type { StoredNode, StoredWorkflow, WorkflowOps, WorkflowRows } from "./rows.ts";

const SCHEMA: readonly SchemaStep[] = [
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

const WORKFLOW = new Columns<StoredWorkflow>({
	id: text("id"),
	appId: text("app_id"),
	userId: text("user_id"),
	owner: flag("owner"),
	name: text("name"),
	state: text("state"),
	createdAt: number("created_at"),
	startedAt: number("started_at"),
	finishedAt: number("finished_at"),
	definition: json("definition"),
	error: json("error"),
});

const NODE = new Columns<StoredNode>({
	nodeId: text("node_id"),
	state: text("state"),
	status: json("status"),
	output: json("output"),
	shape: json("shape"),
});

const sizeOf = (value: string) => `coalesce(octet_length(${value}), 0)`;
const OLD = `SELECT id FROM workflow WHERE finished_at < ?1 AND (CAST(?3 AS TEXT) IS NULL OR app_id = ?3)
	ORDER BY finished_at LIMIT ?2`;

const SQL = {
	create: insertInto("workflow", WORKFLOW, { names: ["bytes"] }),
	createNode: insertInto("workflow_node", { names: ["workflow_id", "app_id", "position"] }, NODE, { names: ["bytes"] }),
	advance: `UPDATE workflow SET state = ?1, error = ?2, started_at = ?3, finished_at = ?4,
		bytes = octet_length(definition) + ${sizeOf("?2")} WHERE id = ?5 AND finished_at IS NULL`,
	advanceNode: `UPDATE workflow_node SET state = ?1, status = ?2, output = ?3,
		bytes = octet_length(?2) + ${sizeOf("?3")} + ${sizeOf("shape")} WHERE workflow_id = ?4 AND node_id = ?5
		AND state NOT IN ('completed', 'failed', 'canceled', 'skipped')`,
	forgetNodes: `DELETE FROM workflow_node WHERE workflow_id IN (${OLD})`,
	forget: `DELETE FROM workflow WHERE id IN (${OLD})`,
};

/** The size of the large values, which are the last ones. */
const bytesOf = (values: readonly SqlValue[]): number =>
	values.reduce<number>((sum, value) => sum + (typeof value === "string" ? Buffer.byteLength(value) : 0), 0);

const ops: StepsOf<WorkflowOps> = {
	create(_, workflow, nodes) {
		const values = WORKFLOW.values(workflow);
		const created = step(SQL.create, ...values, bytesOf(values.slice(-2)));
		const nodesCreated = nodes.map((node, position) => {
			const own = NODE.values(node);
			return step(SQL.createNode, workflow.id, workflow.appId, position, ...own, bytesOf(own.slice(-3)));
		});
		return [created, ...nodesCreated];
	},
	advance: (_, id, { state, error, startedAt = null, finishedAt = null }, nodes) => [
		must(
			SQL.advance,
			[state, jsonOrNull(error), startedAt, finishedAt, id],
			`Workflow ${id} has ended, or there is none.`,
		),
		...nodes.map((node) =>
			must(
				SQL.advanceNode,
				[node.state, jsonText(node.status), jsonOrNull(node.output), id, node.nodeId],
				`Node ${node.nodeId} of ${id} has ended, or there is none.`,
			),
		),
	],
	forget: (_, before, rowsMax, appId) => [
		step(SQL.forgetNodes, before, rowsMax, appId ?? null),
		step(SQL.forget, before, rowsMax, appId ?? null),
	],
};

const LIST_MAX = 1000;

export const workflowsTable: SqlTable<WorkflowRows> = {
	name: "workflows",
	schema: SCHEMA,
	listedBy: { table: "workflow", id: "id" },
	sql: SQL,
	ops,
	reads(db) {
		const list = db.all(
			`SELECT id, app_id, user_id, owner, name, state, error, created_at, started_at, finished_at FROM workflow
			WHERE (CAST(?1 AS TEXT) IS NULL OR app_id = ?1) AND (CAST(?2 AS TEXT) IS NULL OR id < ?2)
			AND (CAST(?3 AS TEXT) IS NULL OR state IN listOf(?3)) ORDER BY id DESC LIMIT ?4`,
			WORKFLOW.of,
		);
		const older = db.has(
			"SELECT 1 FROM workflow WHERE finished_at < ?1 AND (CAST(?2 AS TEXT) IS NULL OR app_id = ?2) LIMIT 1",
		);
		return {
			get: db.get("SELECT * FROM workflow WHERE id = ?", WORKFLOW.of),
			nodes: db.all("SELECT * FROM workflow_node WHERE workflow_id = ? ORDER BY position", NODE.of),
			statuses: db.all(
				"SELECT node_id, state, status, shape FROM workflow_node WHERE workflow_id = ? ORDER BY position",
				NODE.of,
			),
			list: ({ appId = null, states, limit, before = null }) =>
				list(appId, before, jsonOrNull(states), Math.min(limit, LIST_MAX)),
			isOlder: (before, appId) => older(before, appId ?? null),
			bytes: db.one(
				`SELECT coalesce((SELECT sum(bytes) FROM workflow WHERE app_id = ?1), 0)
				+ coalesce((SELECT sum(bytes) FROM workflow_node WHERE app_id = ?1), 0) AS bytes`,
				({ bytes }) => Number(bytes),
			),
		};
	},
};
