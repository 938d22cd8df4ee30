/** `npm test`: system parts, the page, every check, every test. With arguments: the page and those tests only. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildPage } from "./page.ts";
import { run, runBin } from "./run.ts";
import { provideSystemParts } from "./system.ts";

interface Counts {
	numPassedTests: number;
	numFailedTests: number;
	numPendingTests: number;
	numTodoTests: number;
}

async function runTests(args: readonly string[]): Promise<{ code: number; counts: Counts | undefined }> {
	const folder = mkdtempSync(join(tmpdir(), "nexus-test-"));
	const report = join(folder, "report.json");
	try {
		const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
		const { code } = await runBin("vitest", ["run", ...reporters, ...args]);
		return { code, counts: readCounts(report) };
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

/** Undefined when vitest died before it could report. */
function readCounts(report: string): Counts | undefined {
	try {
		return JSON.parse(readFileSync(report, "utf8")) as Counts;
	} catch (cause) {
		console.log(`no test report: ${String(cause)}`);
		return undefined;
	}
}

const args = process.argv.slice(2);
const everything = args.length === 0;
let ok = everything ? await provideSystemParts() : true;
await buildPage();
if (everything) {
	const check = await run([process.execPath, "scripts/check.ts"]);
	if (check.code !== 0) ok = false;
}
const { code, counts } = await runTests(args);
if (!ok) console.log("\nnot passed: see above what failed before the tests");
const failed = counts?.numFailedTests ?? 0;
const skipped = (counts?.numPendingTests ?? 0) + (counts?.numTodoTests ?? 0);
// A file that fails to load has no failed test, and must not look like a pass.
console.log(
	`\n${counts?.numPassedTests ?? 0} passed, ${code === 0 ? failed : Math.max(1, failed)} failed, ${skipped} skipped`,
);
process.exitCode = ok && code === 0 ? 0 : 1;
