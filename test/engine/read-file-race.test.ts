/** A folder on the way that is swapped for a link and back while files are read: the opened file counts, not its path. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { readTextFile } from "../../src/engine/pi/read-file.ts";

const READS = 1500;

/** Swaps in another thread, as another program would. */
const SWAP = `
	const { renameSync, symlinkSync, unlinkSync } = require("node:fs");
	const { workerData, parentPort } = require("node:worker_threads");
	const { folder, aside, outside } = workerData;
	let stopped = false;
	parentPort.on("message", () => { stopped = true; });
	function swap() {
		for (let i = 0; i < 200; i++) {
			renameSync(folder, aside);
			symlinkSync(outside, folder);
			unlinkSync(folder);
			renameSync(aside, folder);
		}
		if (stopped) parentPort.close();
		else setImmediate(swap);
	}
	swap();
`;

test("a read never leaves the folder, however its links are swapped meanwhile", async () => {
	const base = mkdtempSync(path.join(tmpdir(), "nexus-race-"));
	onTestFinished(() => rmSync(base, { recursive: true, force: true }));
	const root = path.join(base, "root");
	const outside = path.join(base, "outside");
	for (const [folder, text] of [
		[path.join(root, "sub"), "inside"],
		[outside, "SECRET"],
	] as const) {
		mkdirSync(folder, { recursive: true });
		writeFileSync(path.join(folder, "file.txt"), text);
	}
	const workerData = { folder: path.join(root, "sub"), aside: path.join(root, "aside"), outside };
	const worker = new Worker(SWAP, { eval: true, workerData });
	const seen = new Map<string, number>();
	for (let read = 0; read < READS; read++) {
		const text = await readTextFile(root, "sub/file.txt").catch((cause: Error) => cause.message);
		seen.set(text, (seen.get(text) ?? 0) + 1);
	}
	const ended = new Promise((resolve) => worker.once("exit", resolve));
	worker.postMessage("stop");
	await ended;
	expect(seen.get("SECRET")).toBeUndefined();
	expect(seen.get("inside")).toBeGreaterThan(0);
});
