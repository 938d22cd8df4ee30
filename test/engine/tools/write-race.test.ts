/** A folder on the way that is swapped for a link and back while files are written: nothing is ever written outside. */

import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { fileTools } from "../../../packages/daemon/src/engine/tools/files/files.ts";
import { freshFolder } from "../../runtime/folder.ts";
import { call } from "./kit.ts";

const WRITES = 400;

/** In another thread, as another program would. A write that meets the gap re-creates the folder, which is removed again. */
const SWAP = `
	const { renameSync, rmSync, symlinkSync } = require("node:fs");
	const { workerData, parentPort } = require("node:worker_threads");
	const { folder, moved, outside } = workerData;
	let stopped = false;
	parentPort.on("message", () => { stopped = true; });
	function insist(step) {
		for (;;) {
			try {
				return step();
			} catch {
				try {
					rmSync(folder, { recursive: true, force: true });
				} catch {}
			}
		}
	}
	function swap() {
		for (let i = 0; i < 200; i++) {
			renameSync(folder, moved);
			insist(() => symlinkSync(outside, folder));
			rmSync(folder, { force: true });
			insist(() => renameSync(moved, folder));
		}
		parentPort.postMessage("swapped");
		if (stopped) parentPort.close();
		else setImmediate(swap);
	}
	swap();
`;

test("A15: a write or an edit never leaves the folder, however its links are swapped meanwhile", async () => {
	const base = freshFolder();
	const root = join(base, "root");
	const outside = join(base, "outside");
	for (const folder of [join(root, "sub"), outside]) {
		mkdirSync(folder, { recursive: true });
		writeFileSync(join(folder, "file.txt"), "untouched 0");
	}
	const tools = fileTools({ root, fileBytesMax: 1000, protectedFiles: [], secretFiles: [] });
	const workerData = { folder: join(root, "sub"), moved: join(base, "root", "moved"), outside };
	const worker = new Worker(SWAP, { eval: true, workerData });
	await once(worker, "message");
	const seen = { done: 0, refused: 0 };
	const path = "sub/file.txt";
	const act = async (n: number) => {
		const written = await call(tools, "write", { path, content: `inside ${n}` });
		const edited = await call(tools, "edit", { path, old_text: "inside", new_text: "again" });
		for (const { failed } of [written, edited]) seen[failed ? "refused" : "done"]++;
	};
	// Both sides of the swap are met before the writes count.
	for (let n = 0; n < WRITES || seen.done === 0 || seen.refused === 0; n++) await act(n);
	const ended = new Promise((resolve) => worker.once("exit", resolve));
	worker.postMessage("stop");
	await ended;
	expect(readdirSync(outside)).toEqual(["file.txt"]);
	expect(readFileSync(join(outside, "file.txt"), "utf8")).toBe("untouched 0");
});
