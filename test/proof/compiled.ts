/** Adapters and daemons are started hundreds of times in a proof, and compiled once: NODE_ variables are passed on to them. Import it first. */

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../runtime/folder.ts";

// `npm test` has one cache for the whole run.
if (!process.env.NODE_COMPILE_CACHE) {
	const compiled = mkdtempSync(join(tmpdir(), "nexus-compiled-"));
	process.env.NODE_COMPILE_CACHE = compiled;
	process.once("exit", () => removeFolder(compiled));
}
