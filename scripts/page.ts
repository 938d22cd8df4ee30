/** Builds the page when its sources are newer than what was built. */

import { runBin } from "./run.ts";
import { isStale } from "./stale.ts";

export async function buildPage(): Promise<void> {
	const sources = ["packages/web", "packages/protocol/src", "packages/client/src", "package-lock.json"];
	if (!isStale("packages/daemon/dist/web/index.html", sources)) return;
	const { code, output } = await runBin("vite", ["build", "packages/web", "--logLevel", "warn"], { capture: true });
	if (code !== 0) throw new Error(`the page could not be built:\n${output}`);
}
