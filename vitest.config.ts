import { defineConfig } from "vitest/config";

export default defineConfig({
	test: {
		setupFiles: ["test/seed.ts"],
		testTimeout: 30_000,
		hookTimeout: 30_000,
		// A second, the default, is short for a browser beside three daemons.
		expect: { poll: { timeout: 15_000 } },
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
