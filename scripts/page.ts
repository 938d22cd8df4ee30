/** Builds the page when its sources are newer than what was built. */

import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { ROOT, runBin } from "./run.ts";

const BUILT = join(ROOT, "dist/web/index.html");
const SOURCES = ["src/web", "src/protocol", "vite.config.ts", "package-lock.json"].map((path) => join(ROOT, path));

function newest(path: string): number {
	const found = statSync(path, { throwIfNoEntry: false });
	if (!found) return 0;
	if (!found.isDirectory()) return found.mtimeMs;
	// The folder's own time tells of removed files.
	return Math.max(found.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}

export async function buildPage(): Promise<void> {
	if (existsSync(BUILT) && statSync(BUILT).mtimeMs > Math.max(...SOURCES.map(newest))) return;
	const { code, output } = await runBin("vite", ["build", "--logLevel", "warn"], { capture: true });
	if (code !== 0) throw new Error(`the page could not be built:\n${output}`);
}
