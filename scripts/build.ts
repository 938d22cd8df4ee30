/** `npm run build`: writes what is published into `packages/<name>/dist`: JavaScript, types, and the page in the daemon's `dist/web`. */

import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bundle, PUBLISHED } from "./bundle.ts";
import { ROOT, runBin } from "./run.ts";

const TYPES = join(ROOT, "dist-types");
const dist = (name: string): string => join(ROOT, "packages", name, "dist");

for (const name of PUBLISHED) {
	rmSync(dist(name), { recursive: true, force: true });
	mkdirSync(dist(name));
}
const results = await Promise.all([
	runBin("tsc", ["-p", "tsconfig.build.json", "--pretty"]),
	runBin("vite", ["build", "packages/web", "--logLevel", "warn"]),
	bundle(),
	// For clients that load descriptors instead of generated code.
	runBin("buf", ["build", "-o", "packages/daemon/dist/runtime.binpb"]),
]);
if (results.some((result) => result && result.code !== 0)) process.exitCode = 1;
for (const name of PUBLISHED) cpSync(join(TYPES, name, "src"), dist(name), { recursive: true });
rmSync(TYPES, { recursive: true, force: true });
