/** A folder on the way that is swapped for a link and back while files are read and written: nothing outside is ever read or written. */

import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { fileTools } from "../../../packages/daemon/src/engine/tools/files/files.ts";
import { readTextFile } from "../../../packages/daemon/src/engine/tools/files/read-file.ts";
import { freshFolder } from "../../runtime/folder.ts";
import { call } from "./kit.ts";

const READS = 1500;
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

/** A folder that another thread swaps for a link to one outside, and back, until `stop`. */
async function swappedFolder(inside: string, secret: string) {
	const base = freshFolder();
	const root = join(base, "root");
	const outside = join(base, "outside");
	for (const [folder, text] of [
		[join(root, "sub"), inside],
		[outside, secret],
	] as const) {
		mkdirSync(folder, { recursive: true });
		writeFileSync(join(folder, "file.txt"), text);
	}
	const workerData = { folder: join(root, "sub"), moved: join(root, "moved"), outside };
	const worker = new Worker(SWAP, { eval: true, workerData });
	await once(worker, "message");
	const stop = async () => {
		const ended = once(worker, "exit");
		worker.postMessage("stop");
		await ended;
	};
	return { root, outside, path: "sub/file.txt", stop };
}

test("a read never leaves the folder, however its links are swapped meanwhile", async () => {
	const { root, path, stop } = await swappedFolder("inside", "SECRET");
	const seen = { inside: 0, refused: 0, leaked: [] as string[] };
	const read = async () => {
		const text = await readTextFile(root, path).catch((cause: Error) => cause);
		if (text === "inside") seen.inside++;
		else if (!(text instanceof Error)) seen.leaked.push(text);
		// Other errors: for a moment of each swap the folder is not there.
		else if (text.message.includes("outside")) seen.refused++;
	};
	// Both sides of the swap are met before the reads count.
	while ((seen.inside === 0 || seen.refused === 0) && seen.leaked.length === 0) await read();
	for (let left = READS; left > 0; left--) await read();
	await stop();
	expect(seen.leaked).toEqual([]);
});

test("A15: a write or an edit never leaves the folder, however its links are swapped meanwhile", async () => {
	const { root, outside, path, stop } = await swappedFolder("untouched 0", "untouched 0");
	const tools = fileTools({ root, fileBytesMax: 1000, protectedFiles: [], secretFiles: [] });
	const seen = { done: 0, refused: 0 };
	const act = async (n: number) => {
		const written = await call(tools, "write", { path, content: `inside ${n}` });
		const edited = await call(tools, "edit", { path, old_text: "inside", new_text: "again" });
		for (const { failed } of [written, edited]) seen[failed ? "refused" : "done"]++;
	};
	// Both sides of the swap are met before the writes count.
	for (let n = 0; n < WRITES || seen.done === 0 || seen.refused === 0; n++) await act(n);
	await stop();
	expect(readdirSync(outside)).toEqual(["file.txt"]);
	expect(readFileSync(join(outside, "file.txt"), "utf8")).toBe("untouched 0");
});
