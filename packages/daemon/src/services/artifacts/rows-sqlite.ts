/** Artifacts in a SQLite file: what is known of them; their bytes are files. */

import { type AtOnce, must, type Row, type SqliteTable, statement } from "../../ledger/table.ts";
import type { SqliteFile } from "../../std/sqlite.ts";
import type { ApplierOf } from "../../std/write.ts";
import type { ArtifactRows, StoredArtifact, StoredArtifactOps } from "./rows.ts";

const STEPS: readonly string[] = [
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

export const artifactsInSqlite: SqliteTable<AtOnce<ArtifactRows>> = {
	area: "artifacts",
	steps: STEPS,
	open(file) {
		file.tables.register<StoredArtifactOps>("artifacts", applier(file));
		const get = statement(file, "SELECT * FROM artifact WHERE id = ?");
		const same = statement(
			file,
			"SELECT * FROM artifact WHERE sha256 = ? AND app_id = ? AND name = ? AND size_bytes = ? ORDER BY complete DESC LIMIT 1",
		);
		const unfinished = statement(file, "SELECT * FROM artifact WHERE complete = 0 ORDER BY created_at, id");
		const count = statement(
			file,
			"SELECT count(*) AS every, count(*) FILTER (WHERE app_id = ?) AS own FROM artifact WHERE complete = 0",
		);
		const of = statement(file, "SELECT * FROM artifact WHERE app_id = ? LIMIT ?");
		const expired = statement(file, "SELECT * FROM artifact WHERE expires_at <= ? ORDER BY expires_at LIMIT ?");
		const usage = statement(
			file,
			"SELECT count(*) AS count, coalesce(sum(size_bytes), 0) AS bytes FROM artifact WHERE ?1 IS NULL OR app_id = ?1",
		);
		const one = (row: Row | undefined) => row && artifactOf(row);
		return {
			get: (id) => one(get.get(id)),
			same: ({ appId, name, sizeBytes, sha256 }) =>
				sha256 === undefined ? undefined : one(same.get(sha256, appId, name, sizeBytes)),
			unfinished: () => unfinished.all().map(artifactOf),
			unfinishedCount(appId) {
				const { every, own } = count.get(appId)!;
				return { all: Number(every), own: Number(own) };
			},
			of: (appId, limit) => of.all(appId, limit).map(artifactOf),
			expired: (at, limit) => expired.all(at, limit).map(artifactOf),
			usage(appId) {
				const { bytes, count } = usage.get(appId ?? null)!;
				return { bytes: Number(bytes), count: Number(count) };
			},
		};
	},
};

function applier(file: SqliteFile): ApplierOf<StoredArtifactOps> {
	const add = statement(
		file,
		`INSERT INTO artifact (id, app_id, name, mime_type, size_bytes, sha256, created_at, expires_at, complete)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
	);
	const complete = statement(file, "UPDATE artifact SET sha256 = ?, complete = 1 WHERE id = ? AND complete = 0");
	const renew = statement(file, "UPDATE artifact SET expires_at = max(expires_at, ?) WHERE id = ?");
	const remove = statement(file, "DELETE FROM artifact WHERE id = ?");
	return {
		add(_, { id, appId, name, mimeType, sizeBytes, sha256 = null, createdAt, expiresAt, complete: whole }) {
			add.run(id, appId, name, mimeType, sizeBytes, sha256, createdAt, expiresAt, whole ? 1 : 0);
		},
		complete: (_, id, sha256) => must(complete.run(sha256, id), `There is no unfinished artifact ${id}.`),
		renew: (_, id, expiresAt) => must(renew.run(expiresAt, id), `There is no artifact ${id}.`),
		remove(_, id) {
			remove.run(id);
		},
	};
}

const artifactOf = (row: Row): StoredArtifact => ({
	id: String(row.id),
	appId: String(row.app_id),
	name: String(row.name),
	mimeType: String(row.mime_type),
	sizeBytes: Number(row.size_bytes),
	sha256: row.sha256 === null ? undefined : String(row.sha256),
	createdAt: Number(row.created_at),
	expiresAt: Number(row.expires_at),
	complete: row.complete === 1,
});
