/** Artifacts in SQL: what is known of them; their bytes are files. */

import { Columns, flag, insertInto, number, text } from "../../std/sql/columns.ts";
import { must, type SchemaStep, type SqlTable, type StepsOf, step } from "../../std/sql/sql.ts";
import type { ArtifactRows, StoredArtifact, StoredArtifactOps } from "./rows.ts";

const SCHEMA: readonly SchemaStep[] = [
	`
	CREATE TABLE artifact (
		id TEXT PRIMARY KEY,
		app_id TEXT NOT NULL,
		name TEXT NOT NULL,
		mime_type TEXT NOT NULL,
		size_bytes INTEGER NOT NULL,
		sha256 TEXT,
		created_at INTEGER NOT NULL,
		expires_at INTEGER NOT NULL,
		complete INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;
	CREATE INDEX artifact_by_app ON artifact (app_id, size_bytes);
	CREATE INDEX artifact_by_time ON artifact (expires_at);
	CREATE INDEX artifact_by_sum ON artifact (sha256) WHERE sha256 IS NOT NULL;
	CREATE INDEX artifact_unfinished ON artifact (id) WHERE complete = 0;
	`,
];

const ARTIFACT = new Columns<StoredArtifact>({
	id: text("id"),
	appId: text("app_id"),
	name: text("name"),
	mimeType: text("mime_type"),
	sizeBytes: number("size_bytes"),
	sha256: text("sha256"),
	createdAt: number("created_at"),
	expiresAt: number("expires_at"),
	complete: flag("complete"),
});

const SQL = {
	add: insertInto("artifact", ARTIFACT),
	complete: "UPDATE artifact SET sha256 = ?, complete = 1 WHERE id = ? AND complete = 0",
	renew: "UPDATE artifact SET expires_at = greatest(expires_at, ?) WHERE id = ?",
	remove: "DELETE FROM artifact WHERE id = ?",
};

const ops: StepsOf<StoredArtifactOps> = {
	add: (_, artifact) => [step(SQL.add, ...ARTIFACT.values(artifact))],
	complete: (_, id, sha256) => [must(SQL.complete, [sha256, id], `There is no unfinished artifact ${id}.`)],
	renew: (_, id, expiresAt) => [must(SQL.renew, [expiresAt, id], `There is no artifact ${id}.`)],
	remove: (_, id) => [step(SQL.remove, id)],
};

export const artifactsTable: SqlTable<ArtifactRows> = {
	name: "artifacts",
	schema: SCHEMA,
	sql: SQL,
	ops,
	reads(db) {
		const same = db.get(
			"SELECT * FROM artifact WHERE sha256 = ? AND app_id = ? AND name = ? AND size_bytes = ? ORDER BY complete DESC LIMIT 1",
			ARTIFACT.of,
		);
		const usage = db.one(
			`SELECT count(*) AS count, coalesce(sum(size_bytes), 0) AS bytes FROM artifact
			WHERE CAST(?1 AS TEXT) IS NULL OR app_id = ?1`,
			({ bytes, count }) => ({ bytes: Number(bytes), count: Number(count) }),
		);
		return {
			get: db.get("SELECT * FROM artifact WHERE id = ?", ARTIFACT.of),
			same: ({ appId, name, sizeBytes, sha256 }) =>
				sha256 === undefined ? undefined : same(sha256, appId, name, sizeBytes),
			unfinished: db.all("SELECT * FROM artifact WHERE complete = 0 ORDER BY created_at, id", ARTIFACT.of),
			unfinishedCount: db.one(
				"SELECT count(*) AS every, count(*) FILTER (WHERE app_id = ?) AS own FROM artifact WHERE complete = 0",
				({ every, own }) => ({ all: Number(every), own: Number(own) }),
			),
			of: db.all("SELECT * FROM artifact WHERE app_id = ? LIMIT ?", ARTIFACT.of),
			expired: db.all("SELECT * FROM artifact WHERE expires_at <= ? ORDER BY expires_at LIMIT ?", ARTIFACT.of),
			usage: (appId) => usage(appId ?? null),
		};
	},
};
