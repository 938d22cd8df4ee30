/** The programs that tests start as processes: from one bundle, built once for a run (test/setup.ts), because a start from sources takes twice as long. */

import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";

const built = (path: string): string => join(import.meta.dirname, "../packages/daemon/dist-test", path);

/** Puts the packages into a folder's `node_modules`, as links to their sources. */
export function linkPackages(folder: string): void {
	mkdirSync(join(folder, "node_modules"), { recursive: true });
	for (const name of ["@nexus-stream", "nexus-stream"])
		symlinkSync(join(import.meta.dirname, "../node_modules", name), join(folder, "node_modules", name));
}

export const NEXUS = built("cli/main.js");
export const ADAPTER = built("platforms/main.js");

/** An adapter that takes its time from the process that starts it: `<adapter> <verb> …`. */
export const timedAdapter = (channel: string): string[] => [
	process.execPath,
	// A library causes this warning; Node silences only those from node_modules.
	"--disable-warning=DEP0040",
	built("time/adapter.js"),
	channel,
];
