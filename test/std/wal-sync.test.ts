/** Syncing the write-ahead log off the event loop, with a disk that the test controls. */

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it, onTestFinished } from "vitest";
import { walSync } from "../../packages/daemon/src/std/sqlite/wal-sync.ts";
import { freshFolder } from "../runtime/folder.ts";

function database() {
	const path = join(freshFolder(), "wal.db");
	const db = new DatabaseSync(path);
	db.exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE word (text TEXT)");
	onTestFinished(() => db.close());
	return { db, path };
}

const isMoved = (path: string) => {
	const reader = new DatabaseSync(`file:${path}?immutable=1`, { readOnly: true });
	try {
		// An immutable file is read without its log: it has what a checkpoint moved, and nothing else.
		return reader.prepare("SELECT count(*) AS n FROM sqlite_schema").get()!.n === 1;
	} finally {
		reader.close();
	}
};

it("I1: resolves after the disk has answered, and the event loop keeps running meanwhile", async () => {
	const { db, path } = database();
	const answered = Promise.withResolvers<void>();
	const power = walSync(db, path, (() => answered.promise) as never);
	let isSynced = false;
	const synced = power.sync().then(() => (isSynced = true));
	await new Promise((resolve) => setImmediate(resolve));
	expect(isSynced).toBe(false);
	answered.resolve();
	await synced;
	power.close();
});

it("I1: after a failed sync a second one does not rely on the log: it moves everything into the database", async () => {
	const { db, path } = database();
	let isFailing = true;
	let syncs = 0;
	const flush = async () => {
		syncs++;
		if (isFailing) throw Object.assign(new Error("i/o error"), { code: "EIO" });
	};
	const power = walSync(db, path, flush as never);
	await expect(power.sync()).rejects.toThrow("i/o error");
	expect(isMoved(path)).toBe(false);
	isFailing = false;
	const before = syncs;
	await power.sync();
	expect(isMoved(path)).toBe(true);
	expect(syncs).toBe(before);
	await power.sync();
	expect(syncs).toBeGreaterThan(before);
	power.close();
});
