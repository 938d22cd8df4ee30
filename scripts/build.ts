/** `npm run build`: what is published. `dist/` from the sources, with their types, and the page in `dist/web/`. */

import { rmSync } from "node:fs";
import { join } from "node:path";
import { bundle } from "./bundle.ts";
import { ROOT, runBin } from "./run.ts";

rmSync(join(ROOT, "dist"), { recursive: true, force: true });
const results = await Promise.all([
	runBin("tsc", ["-p", "tsconfig.build.json", "--pretty"]),
	runBin("vite", ["build", "--logLevel", "warn"]),
	bundle(),
]);
if (results.some((result) => result && result.code !== 0)) process.exitCode = 1;
