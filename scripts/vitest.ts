/** Runs tests and says in the end what came of them, and which files took longest. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { chooseSeed } from "../test/seed.ts";
import { ROOT, runBin } from "./run.ts";

const SLOWEST = 10;

interface Report {
	numPassedTests: number;
	numFailedTests: number;
	numPendingTests: number;
	numTodoTests: number;
	testResults: { name: string; startTime: number; endTime: number }[];
}

/** True when everything that was run has passed. `sound` is false when something failed before the tests. */
export async function runTests(args: readonly string[], env: NodeJS.ProcessEnv = {}, sound = true): Promise<boolean> {
	const seed = chooseSeed();
	console.log(`NEXUS_SEED=${seed} repeats this run`);
	const folder = mkdtempSync(join(tmpdir(), "nexus-test-"));
	const file = join(folder, "report.json");
	const started = performance.now();
	try {
		const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
		const { code } = await runBin("vitest", ["run", ...reporters, ...args], {
			env: {
				NEXUS_SEED: String(seed),
				...env,
			},
		});
		const report = readReport(file);
		if (report) printSlowest(report, (performance.now() - started) / 1000);
		if (!sound) console.log("\nnot passed: see above what failed before the tests");
		printCounts(report, code);
		return sound && code === 0;
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

/** Undefined when vitest died before it could report. */
function readReport(file: string): Report | undefined {
	try {
		return JSON.parse(readFileSync(file, "utf8")) as Report;
	} catch (cause) {
		console.log(`no test report: ${String(cause)}`);
		return undefined;
	}
}

/** So that growth is seen when it happens. */
function printSlowest({ testResults }: Report, seconds: number): void {
	const files = testResults.map(({ name, startTime, endTime }) => ({
		name: relative(ROOT, name),
		seconds: (endTime - startTime) / 1000,
	}));
	const total = files.reduce((sum, file) => sum + file.seconds, 0);
	console.log(`\n${files.length} files, ${total.toFixed(0)} file-seconds in ${seconds.toFixed(0)} s; the slowest:`);
	for (const file of files.sort((a, b) => b.seconds - a.seconds).slice(0, SLOWEST)) {
		console.log(`${file.seconds.toFixed(1).padStart(7)} s  ${file.name}`);
	}
}

function printCounts(report: Report | undefined, code: number): void {
	const failed = report?.numFailedTests ?? 0;
	const skipped = (report?.numPendingTests ?? 0) + (report?.numTodoTests ?? 0);
	// A file that fails to load has no failed test, and must not look like a pass.
	console.log(
		`\n${report?.numPassedTests ?? 0} passed, ${code === 0 ? failed : Math.max(1, failed)} failed, ${skipped} skipped`,
	);
}
