/** `npm run build`: what is published. `dist/` from the sources, with their types, and the page in `dist/web/`. */

import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bundle } from "./bundle.ts";
import { ROOT, runBin } from "./run.ts";

rmSync(join(ROOT, "dist"), { recursive: true, force: true });
mkdirSync(join(ROOT, "dist"));
const results = await Promise.all([
	runBin("tsc", ["-p", "tsconfig.build.json", "--pretty"]),
	runBin("vite", ["build", "--logLevel", "warn"]),
	bundle(),
	// For clients that load descriptors instead of generated code.
	runBin("buf", ["build", "-o", "dist/runtime.binpb"]),
]);
if (results.some((result) => result && result.code !== 0)) process.exitCode = 1;
