/** `npm run check`: format, lint, types, protos, unused code and the order of the folders, side by side. */

import { runBin } from "./run.ts";

const CHECKS: Record<string, () => ReturnType<typeof runBin>> = {
	"types (tsc)": () => runBin("tsc", [], { capture: true }),
	"published types (tsc)": () => runBin("tsc", ["-p", "tsconfig.build.json", "--noEmit"], { capture: true }),
	"format and lint (biome)": () => runBin("biome", ["check", "--error-on-warnings"], { capture: true }),
	"typed lint (oxlint)": () => runBin("oxlint", ["--type-aware", "--deny-warnings"], { capture: true }),
	"protos (buf)": () => runBin("buf", ["lint"], { capture: true }),
	"unused code (knip)": () => runBin("knip", ["--no-progress"], { capture: true }),
};
// `npm test` runs it with the other tests.
if (!process.argv.includes("--before-tests")) {
	CHECKS["folder order (structure test)"] = () =>
		runBin("vitest", ["run", "--reporter=dot", "test/structure"], { capture: true });
}

const results = await Promise.all(
	Object.entries(CHECKS).map(async ([name, check]) => {
		const result = await check();
		console.log(`${result.code === 0 ? "ok  " : "FAIL"} ${name} ${result.seconds.toFixed(1)} s`);
		return { name, ...result };
	}),
);

const failed = results.filter((result) => result.code !== 0);
for (const { name, output } of failed) console.log(`\n--- ${name}\n${output.trim()}`);
if (failed.length > 0) {
	console.log(
		`\n${failed.length} of ${results.length} checks failed. \`npm run fix\` repairs format and import order.`,
	);
	process.exitCode = 1;
}
