import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { LIMIT_MS } from "./test/effort.ts";

/** The small file that takes minutes, because adapters keep their platforms' pace in it: begun last, all would wait for it. */
const LONGEST = "adapter/conformance/bundled.test.ts";

class LongestFirst extends BaseSequencer {
	override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
		const sorted = await super.sort(files);
		const isLongest = (file: TestSpecification) => file.moduleId.endsWith(LONGEST);
		return [...sorted.filter(isLongest), ...sorted.filter((file) => !isLongest(file))];
	}
}

export default defineConfig({
	test: {
		setupFiles: ["test/seed.ts"],
		sequence: { sequencer: LongestFirst },
		testTimeout: LIMIT_MS,
		hookTimeout: LIMIT_MS,
		// A second, the default, is short for a browser beside three daemons.
		expect: { poll: { timeout: 30_000 } },
		// Process and browser tests share two cores with the daemons they start.
		maxWorkers: 2,
		projects: [
			{
				extends: true,
				test: {
					name: "parts",
					include: ["test/**/*.test.ts", "test/**/*.test.tsx"],
					exclude: ["test/proof/**"],
					sequence: { groupOrder: 0 },
				},
			},
			{
				extends: true,
				test: {
					name: "proof",
					// Each of these loads the whole machine: one at a time, after the others.
					include: ["test/proof/*.test.ts"],
					maxWorkers: 1,
					sequence: { groupOrder: 1 },
				},
			},
		],
	},
});
