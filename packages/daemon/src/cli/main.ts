#!/usr/bin/env node
/** Where the `nexus` command begins: compiled code is kept between runs, which halves the time to the first word. */

import module from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

const FLUSH_MS = 2000;
const NODE_MAJOR_MIN = 24;
/** The exit code of a wrong configuration. */
const EXIT_CONFIG = 78;

// Here, before anything that an older Node cannot even read.
if (Number.parseInt(process.versions.node, 10) < NODE_MAJOR_MIN) {
	const args = process.argv
		.slice(2)
		.map((arg) => (/^[\w./:=@,-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`));
	process.stderr.write(
		`Nexus needs Node ${NODE_MAJOR_MIN} or newer; this is ${process.version}. Install a newer Node, or bring one for this command:\n` +
			`  npx -y -p node@${NODE_MAJOR_MIN} ${["nexus", ...args].join(" ")}\n`,
	);
	process.exit(EXIT_CONFIG);
}

// In the user's own folder: bytecode in a folder that others can write to would be theirs to change.
module.enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "nexus-stream"));

const { createProgram, systemClock } = await import("./program.ts");
// A daemon may be killed before it exits in order, and would never keep anything.
systemClock.after(FLUSH_MS, module.flushCompileCache);
await createProgram(process).run(process.argv);
// A module of the user's may have left timers behind. What was said goes out first.
for (const stream of [process.stdout, process.stderr])
	await new Promise<void>((resolve) => void stream.write("", () => resolve()));
process.exit();
