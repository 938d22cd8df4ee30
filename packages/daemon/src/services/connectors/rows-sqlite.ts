/** Connectors in a SQLite file. */

import { Refused } from "@nexus-stream/protocol";
import { type AtOnce, jsonText, must, type Row, type SqliteTable, statement } from "../../ledger/table.ts";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import type { ConnectorOps, ConnectorRows, StoredConnector } from "./rows.ts";

const STEPS: readonly string[] = [
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

export const connectorsInSqlite: SqliteTable<AtOnce<ConnectorRows>> = {
	area: "connectors",
	steps: STEPS,
	open(file) {
		file.tables.register<ConnectorOps>("connectors", applier(file));
		const get = statement(file, "SELECT * FROM connector WHERE id = ?");
		const all = statement(file, "SELECT * FROM connector ORDER BY id");
		return {
			get(id) {
				const row = get.get(id);
				return row && connectorOf(row);
			},
			list: () => all.all().map(connectorOf),
		};
	},
};

function applier(file: SqliteFile): ApplierOf<ConnectorOps> {
	const taken = statement(file, "SELECT 1 FROM connector WHERE id = ?");
	const count = statement(file, "SELECT count(*) AS count FROM connector");
	const add = statement(
		file,
		`INSERT INTO connector (app_id, provider_type, endpoint, sealed_key, key_hint, enabled, default_model, models, kinds,
		created_at, updated_at, revision, id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	);
	const replace = statement(
		file,
		`UPDATE connector SET app_id = ?1, provider_type = ?2, endpoint = ?3, sealed_key = ?4, key_hint = ?5, enabled = ?6,
		default_model = ?7, models = ?8, kinds = ?9, created_at = ?10, updated_at = ?11, revision = ?12
		WHERE id = ?13 AND revision = ?12 - 1`,
	);
	const remove = statement(file, "DELETE FROM connector WHERE id = ?");
	return {
		add(_, connector, connectorsMax) {
			if (taken.get(connector.id)) throw new Refused("duplicate", `there is a connector ${connector.id} already`);
			if (Number(count.get()?.count) >= connectorsMax)
				throw new Refused("conflict", `There are ${connectorsMax} connectors already: remove one first.`);
			add.run(...valuesOf(connector));
		},
		replace: (_, connector) =>
			must(replace.run(...valuesOf(connector)), `The connector ${connector.id} was changed or removed meanwhile.`),
		remove: (_, id) => must(remove.run(id), `There is no connector ${id}.`),
	};
}

const valuesOf = (connector: StoredConnector) =>
	[
		connector.appId ?? null,
		connector.providerType,
		connector.endpoint ?? null,
		connector.sealedKey ?? null,
		connector.keyHint ?? null,
		connector.enabled ? 1 : 0,
		connector.defaultModel ?? null,
		jsonText(connector.models),
		jsonText(connector.kinds),
		connector.createdAt,
		connector.updatedAt,
		connector.revision,
		connector.id,
	] as const;

const connectorOf = (row: Row): StoredConnector => ({
	id: String(row.id),
	appId: row.app_id === null ? undefined : String(row.app_id),
	providerType: String(row.provider_type),
	endpoint: row.endpoint === null ? undefined : String(row.endpoint),
	sealedKey: row.sealed_key === null ? undefined : String(row.sealed_key),
	keyHint: row.key_hint === null ? undefined : String(row.key_hint),
	enabled: row.enabled === 1,
	defaultModel: row.default_model === null ? undefined : String(row.default_model),
	models: JSON.parse(String(row.models)) as string[],
	kinds: JSON.parse(String(row.kinds)) as string[],
	createdAt: Number(row.created_at),
	updatedAt: Number(row.updated_at),
	revision: Number(row.revision),
});
