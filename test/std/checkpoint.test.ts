import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Worker } from "node:worker_threads";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { checkpointBeside } from "../../packages/daemon/src/std/sqlite/checkpoint.ts";

let folder: string;
let path: string;
beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), "nexus-wal-"));
	path = join(folder, "a.db");
});
// A worker that is ending may still be opening its files while they are removed.
afterEach(() => rmSync(folder, { recursive: true, maxRetries: 20 }));

const walBytes = () => statSync(`${path}-wal`).size;

function writer(limits: Parameters<typeof checkpointBeside>[2]) {
	const db = new DatabaseSync(path);
	// As the product opens it: thousands of syncs would make the test as slow as the disk.
	db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE t (x TEXT)");
	const stop = checkpointBeside(db, path, { lookMs: 5, walBytesSoft: 100_000, ...limits });
	const insert = db.prepare("INSERT INTO t VALUES (?)");
	return {
		db,
		write: (rows: number) => {
			for (let i = 0; i < rows; i++) insert.run("x".repeat(2000));
		},
		close() {
			stop();
			db.close();
		},
	};
}

it("the write-ahead log starts over after the worker has moved it, without the writer's help", async () => {
	const { write, close } = writer({});
	write(500);
	const grown = walBytes();
	expect(grown).toBeGreaterThan(100_000);
	// The file keeps its size; a log that starts over is written from its beginning, so it does not grow any further.
	for (let round = 0; round < 5; round++) {
		await vi.waitFor(() => {
			const check = new DatabaseSync(path);
			const state = check.prepare("PRAGMA wal_checkpoint(PASSIVE)").get() as { log: number; checkpointed: number };
			check.close();
			expect(state.log).toBe(state.checkpointed);
		}, 15_000);
		write(100);
	}
	expect(walBytes()).toBeLessThanOrEqual(grown * 1.2);
	close();
});

it("I11: a log that grows faster than the worker moves it starts over after one wait of the writer", async () => {
	const { write, close, db } = writer({ lookMs: 3_600_000 });
	let waits = 0;
	const counted = {
		exec: (sql: string) => db.exec(sql),
		prepare: (sql: string) => ({
			all() {
				waits++;
				return db.prepare(sql).all();
			},
		}),
		isTransaction: false,
	} as unknown as DatabaseSync;
	// The first rows need no worker: one that is still at work could start the log over while the others are written.
	const walBytesSoft = 300_000;
	const stop = checkpointBeside(counted, path, { lookMs: 5, walBytesSoft, walBytesMax: 400_000 });
	write(20);
	expect(walBytes()).toBeLessThan(walBytesSoft);
	await new Promise((resolve) => setTimeout(resolve, 50));
	expect(waits).toBe(0);
	write(500);
	expect(walBytes()).toBeGreaterThan(400_000);
	await vi.waitFor(() => expect(waits).toBeGreaterThan(0), 15_000);
	await vi.waitFor(() => {
		write(1);
		expect(walBytes()).toBeLessThan(walBytesSoft);
	}, 15_000);
	stop();
	close();
});

it("I11: what the log had grown to is given back, and an idle file needs no worker", async () => {
	const workers = { started: 0, ended: 0 };
	const count = (worker: Worker) => {
		workers.started++;
		worker.once("exit", () => workers.ended++);
	};
	process.on("worker", count);
	const { write, close } = writer({ walBytesMax: 400_000, workerIdleMs: 50 });
	write(1000);
	expect(walBytes()).toBeGreaterThan(2_000_000);
	await vi.waitFor(() => {
		write(1);
		expect(walBytes()).toBeLessThan(100_000);
	}, 15_000);
	// A worker that is still at work may start it over once more.
	await vi.waitFor(() => {
		write(100);
		expect(walBytes()).toBeGreaterThan(100_000);
	}, 15_000);
	expect(workers.started).toBeGreaterThan(0);
	await vi.waitFor(() => expect(workers.ended).toBe(workers.started), 15_000);
	process.off("worker", count);
	close();
});

it("a checkpoint that the disk refuses does not end the process", async () => {
	const { write, close, db } = writer({ lookMs: 3_600_000 });
	const refused: unknown[] = [];
	const failing = {
		exec: (sql: string) => db.exec(sql),
		prepare: () => ({
			all() {
				refused.push("asked");
				throw new Error("database or disk is full");
			},
		}),
		isTransaction: false,
	} as unknown as DatabaseSync;
	const stop = checkpointBeside(failing, path, { lookMs: 5, walBytesSoft: 100_000, walBytesMax: 200_000 });
	write(500);
	await vi.waitFor(() => expect(refused.length).toBeGreaterThan(0), 15_000);
	stop();
	close();
});

it("a process with an open file and nothing to do ends", () => {
	const script = `
		const { openSqlite } = await import(${JSON.stringify(new URL("../../packages/daemon/src/std/sqlite/sqlite.ts", import.meta.url).href)});
		const { db } = openSqlite(${JSON.stringify(path)}, "process");
		db.exec("CREATE TABLE t (x TEXT)");
		const insert = db.prepare("INSERT INTO t VALUES (?)");
		for (let i = 0; i < 2000; i++) insert.run("x".repeat(4000));
		await new Promise((resolve) => setTimeout(resolve, 600));`;
	const ended = spawnSync(process.execPath, ["--conditions=nexus-source", "--input-type=module", "-e", script], {
		timeout: 28_000,
	});
	expect(ended.status, String(ended.stderr)).toBe(0);
});

it("a log that cannot be looked at ends nothing: the next look tries again", async () => {
	const db = new DatabaseSync(":memory:");
	symlinkSync(`${path}-wal`, `${path}-wal`);
	expect(() => walBytes()).toThrow("ELOOP");
	let looks = 0;
	// An error thrown by a timer would end the process.
	const thrown: unknown[] = [];
	const onThrown = (cause: unknown) => void thrown.push(cause);
	process.on("uncaughtException", onThrown);
	const stop = checkpointBeside(db, path, { lookMs: 1 });
	const counting = setInterval(() => looks++, 1);
	await vi.waitFor(() => expect(looks).toBeGreaterThan(20), 15_000);
	clearInterval(counting);
	stop();
	process.off("uncaughtException", onThrown);
	db.close();
	expect(thrown).toEqual([]);
});
