/** Connectors in SQL. */

import { Columns, flag, insertInto, json, number, text } from "../../std/sql/columns.ts";
import { must, type SchemaStep, type SqlTable, type StepsOf } from "../../std/sql/sql.ts";
import type { ConnectorOps, ConnectorRows, StoredConnector } from "./rows.ts";

const SCHEMA: readonly SchemaStep[] = [
	`
	CREATE TABLE connector (
		id TEXT PRIMARY KEY,
		app_id TEXT,
		provider_type TEXT NOT NULL,
		endpoint TEXT,
		sealed_key TEXT,
		key_hint TEXT,
		enabled INTEGER NOT NULL,
		default_model TEXT,
		models TEXT NOT NULL,
		kinds TEXT NOT NULL,
		created_at INTEGER NOT NULL,
		updated_at INTEGER NOT NULL,
		revision INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;
	`,
];

const CONNECTOR = new Columns<StoredConnector>({
	id: text("id"),
	revision: number("revision"),
	appId: text("app_id"),
	providerType: text("provider_type"),
	endpoint: text("endpoint"),
	sealedKey: text("sealed_key"),
	keyHint: text("key_hint"),
	enabled: flag("enabled"),
	defaultModel: text("default_model"),
	models: json("models"),
	kinds: json("kinds"),
	createdAt: number("created_at"),
	updatedAt: number("updated_at"),
});

const SQL = {
	add: `${insertInto("connector", CONNECTOR)} ON CONFLICT (id) DO NOTHING`,
	room: "SELECT 1 WHERE (SELECT count(*) FROM connector) <= ?",
	replace: `UPDATE connector SET ${CONNECTOR.names.map((name, n) => `${name} = ?${n + 1}`).join(", ")}
		WHERE id = ?1 AND revision = ?2 - 1`,
	remove: "DELETE FROM connector WHERE id = ?",
};

const ops: StepsOf<ConnectorOps> = {
	add: (_, connector, connectorsMax) => [
		must(SQL.add, CONNECTOR.values(connector), `there is a connector ${connector.id} already`, "duplicate"),
		must(SQL.room, [connectorsMax], `There are ${connectorsMax} connectors already: remove one first.`),
	],
	replace: (_, connector) => [
		must(SQL.replace, CONNECTOR.values(connector), `The connector ${connector.id} was changed or removed meanwhile.`),
	],
	remove: (_, id) => [must(SQL.remove, [id], `There is no connector ${id}.`)],
};

export const connectorsTable: SqlTable<ConnectorRows> = {
	name: "connectors",
	schema: SCHEMA,
	sql: SQL,
	ops,
	reads: (db) => ({
		get: db.get("SELECT * FROM connector WHERE id = ?", CONNECTOR.of),
		list: db.all("SELECT * FROM connector ORDER BY id", CONNECTOR.of),
	}),
};
