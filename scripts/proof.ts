/**
 * `npm run proof`: at full effort, every kill, fault and token of the proofs, and every case of the properties. Prints the proofs' tables.
 * With arguments: those files only.
 */

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FULL_EFFORT } from "../test/effort.ts";
import { buildPage } from "./page.ts";
import { ROOT } from "./run.ts";
import { provideSystemParts } from "./system.ts";
import { runTests } from "./vitest.ts";

const growsWithEffort = (file: string): boolean => /\beffort\.ts"/.test(readFileSync(join(ROOT, file), "utf8"));

const args = process.argv.slice(2);
const sound = await provideSystemParts();
await buildPage();
const files = [
	...globSync("test/proof/*.test.ts", { cwd: ROOT }),
	...globSync("test/!(proof)/**/*.test.ts", { cwd: ROOT }).filter(growsWithEffort),
];
const env = { NEXUS_EFFORT: process.env.NEXUS_EFFORT || String(FULL_EFFORT) };
if (!(await runTests(args.length > 0 ? args : files, env, sound))) process.exitCode = 1;
