/** `npm test`: system parts, the page, every check, every test. With arguments: the page and those tests only. */

import { buildPage } from "./page.ts";
import { run } from "./run.ts";
import { provideSystemParts } from "./system.ts";
import { runTests } from "./vitest.ts";

const args = process.argv.slice(2);
const everything = args.length === 0;
let sound = everything ? await provideSystemParts() : true;
await buildPage();
if (everything) {
	const check = await run([process.execPath, "scripts/check.ts", "--before-tests"]);
	if (check.code !== 0) sound = false;
}
if (!(await runTests(args, {}, sound))) process.exitCode = 1;
