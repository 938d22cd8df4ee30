/** Whether something that was built is older than what it was built from. */

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./run.ts";

function newest(path: string): number {
	const found = statSync(path, { throwIfNoEntry: false });
	if (!found) return 0;
	if (!found.isDirectory()) return found.mtimeMs;
	// The folder's own time tells of removed files.
	return Math.max(found.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}

/** Paths count from the package. */
export function isStale(built: string, sources: readonly string[]): boolean {
	const found = statSync(join(ROOT, built), { throwIfNoEntry: false });
	return !found || found.mtimeMs <= Math.max(...sources.map((path) => newest(join(ROOT, path))));
}
