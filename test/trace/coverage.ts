/** Which sources ran, and how often: V8's own counts, taken while a process runs. */

import { readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGES = join(import.meta.dirname, "../../packages");

/** Source, as `daemon/bus/bus.ts` → how often its busiest code ran. */
export type Counts = Record<string, number>;

export interface Coverage {
	/** Since the call before. */
	take(): Promise<Counts>;
}

/** Counts blocks, so that a loop that a token passes counts although its function was called once: of modules that are loaded after this. */
export async function startCoverage(): Promise<Coverage> {
	const session = new Session();
	session.connect();
	await session.post("Profiler.enable");
	await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
	return {
		async take() {
			const { result } = await session.post("Profiler.takePreciseCoverage");
			const counts: Counts = {};
			for (const { url, functions } of result) {
				const file = sourceOf(url);
				if (file === undefined) continue;
				const ran = functions.flatMap(({ ranges }) => ranges.map(({ count }) => count));
				counts[file] = Math.max(counts[file] ?? 0, ...ran);
			}
			return counts;
		},
	};
}

/** A file that only exports from others has no code that runs; the test runner makes a getter of each name. */
const ONLY_RE_EXPORTS = /^(?:\/\*\*[^\n]*\*\/|export (?:type )?\{[^}]*\} from "[^"]+";|\s)*$/;

function sourceOf(url: string): string | undefined {
	const path = url.startsWith("file:") ? fileURLToPath(url) : url;
	if (!path.startsWith(`${PACKAGES}/`) || path.startsWith(`${PACKAGES}/lab/`)) return undefined;
	if (ONLY_RE_EXPORTS.test(readFileSync(path, "utf8"))) return undefined;
	return relative(PACKAGES, path).replaceAll("\\", "/").replace("/src/", "/");
}
