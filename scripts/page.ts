/** Builds the page when its sources are newer than what was built. */

import { runBin } from "./run.ts";
import { isStale } from "./stale.ts";

export async function buildPage(): Promise<void> {
	const sources = [
		"src/web",
		"src/protocol",
		"src/markdown",
		"src/client",
		"src/std/clock.ts",
		"vite.config.ts",
		"package-lock.json",
	];
	if (!isStale("dist/web/index.html", sources)) return;
	const { code, output } = await runBin("vite", ["build", "--logLevel", "warn"], { capture: true });
	if (code !== 0) throw new Error(`the page could not be built:\n${output}`);
}
