/** A folder on the way that is swapped for a link and back while files are read: the opened file counts, not its path. */

import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { readTextFile } from "../../packages/daemon/src/engine/tools/tools.ts";

const READS = 1500;

/** Swaps in another thread, as another program would. */
const SWAP = `
	const { renameSync, symlinkSync, unlinkSync } = require("node:fs");
	const { workerData, parentPort } = require("node:worker_threads");
	const { folder, moved, outside } = workerData;
	let stopped = false;
	parentPort.on("message", () => { stopped = true; });
	function swap() {
		for (let i = 0; i < 200; i++) {
			renameSync(folder, moved);
			symlinkSync(outside, folder);
			unlinkSync(folder);
			renameSync(moved, folder);
		}
		parentPort.postMessage("swapped");
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
	const workerData = { folder: path.join(root, "sub"), moved: path.join(root, "moved"), outside };
	const worker = new Worker(SWAP, { eval: true, workerData });
	await once(worker, "message");
	const seen = { inside: 0, refused: 0, leaked: [] as string[] };
	const read = async () => {
		const text = await readTextFile(root, "sub/file.txt").catch((cause: Error) => cause);
		if (text === "inside") seen.inside++;
		else if (!(text instanceof Error)) seen.leaked.push(text);
		// Other errors: for a moment of each swap the folder is not there.
		else if (text.message.includes("outside")) seen.refused++;
	};
	// Both sides of the swap are met before the reads count.
	while ((seen.inside === 0 || seen.refused === 0) && seen.leaked.length === 0) await read();
	for (let left = READS; left > 0; left--) await read();
	const ended = new Promise((resolve) => worker.once("exit", resolve));
	worker.postMessage("stop");
	await ended;
	expect(seen.leaked).toEqual([]);
});
