import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { effort, FULL_EFFORT, LIMIT_MS } from "./test/effort.ts";
import { chooseSeed } from "./test/seed.ts";
import { importing, replacingModules } from "./test/select.ts";

// Workers and the processes that tests start compile each module once, not once per process.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("node_modules/.cache/nexus-compiled", import.meta.url));

/** Begun first: begun last, everything would wait for them. */
const LONGEST = [
	"adapter/conformance/bundled.test.ts",
	"adapter/conformance/conformance.test.ts",
	"browser/lab.test.ts",
	"browser/chat.test.ts",
	"proof/fault-matrix.test.ts",
];

class LongestFirst extends BaseSequencer {
	override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
		const sorted = await super.sort(files);
		const isLongest = (file: TestSpecification) => LONGEST.some((name) => file.moduleId.endsWith(name));
		return [...sorted.filter(isLongest), ...sorted.filter((file) => !isLongest(file))];
	}
}

/** They wait for processes, browsers and timers most of the time. */
const WAITING = ["adapter", "cli", "cluster", "nex/outbound", "proof", "runtime"].map(
	(folder) => `test/${folder}/**/*.test.ts`,
);
/** They share a browser and a daemon. */
const BROWSER = ["test/browser/*.test.ts"];
/** Run alone: other tests would disturb their measurements, or they fill a disk. */
const ALONE = ["slow-reader", "disk-full", "disk-full-work"].map((name) => `test/proof/${name}.test.ts`);
/** Tests that use a store: they run a second time over a bad connection to it (ST27). */
const STORED = ["broker", "nex/inbox", "edge", ...(effort < FULL_EFFORT ? [] : ["nex/outbound"])].flatMap((folder) =>
	importing("test/store.ts").filter((file) => file.startsWith(`test/${folder}/`)),
);
/** Their processes load every module again. The others share the modules that a process has loaded, which halves the time of a run. */
const SEPARATE = replacingModules();
const ALL = ["test/**/*.test.ts", "test/**/*.test.tsx"];

/** At full effort every proof has the machine for itself. */
const WAITING_WORKERS = effort < FULL_EFFORT ? 6 : 1;

/** Packages of this repository are loaded from their sources. */
const CONDITIONS = ["nexus-source", "node", "module", "development|production"];

export default defineConfig({
	resolve: { conditions: CONDITIONS },
	ssr: { resolve: { conditions: CONDITIONS, externalConditions: CONDITIONS } },
	test: {
		execArgv: ["--conditions=nexus-source"],
		globalSetup: ["test/setup.ts", "test/postgres-server.ts"],
		setupFiles: ["test/seed.ts"],
		sequence: { sequencer: LongestFirst },
		testTimeout: LIMIT_MS,
		hookTimeout: LIMIT_MS,
		// The default of one second is too short for a browser that runs in parallel with three daemons.
		expect: { poll: { timeout: 30_000 } },
		projects: [
			{
				extends: true,
				test: {
					name: "waiting",
					include: WAITING,
					exclude: [...ALONE, ...SEPARATE],
					isolate: false,
					maxWorkers: WAITING_WORKERS,
					sequence: { groupOrder: 0 },
				},
			},
			{
				extends: true,
				test: {
					name: "browser",
					include: BROWSER,
					globalSetup: ["test/setup.ts", "test/browser/shared.ts"],
					maxWorkers: WAITING_WORKERS,
					sequence: { groupOrder: 0 },
				},
			},
			{
				extends: true,
				test: {
					name: "computing",
					include: ALL,
					exclude: [...WAITING, ...BROWSER, ...ALONE, ...SEPARATE],
					isolate: false,
					maxWorkers: 2,
					sequence: { groupOrder: 1 },
				},
			},
			{
				extends: true,
				test: {
					name: "separate",
					include: SEPARATE,
					maxWorkers: 2,
					sequence: { groupOrder: 1 },
				},
			},
			...[false, true].map((isolate) => ({
				extends: true as const,
				test: {
					name: isolate ? "bad connection, separate" : "bad connection",
					include: STORED.filter((file) => SEPARATE.includes(file) === isolate),
					env: { NEXUS_FAULTY: String((chooseSeed() % 100_000) + 1) },
					isolate,
					maxWorkers: 2,
					sequence: { groupOrder: 1 },
				},
			})),
			{
				extends: true,
				test: { name: "alone", include: ALONE, maxWorkers: 1, sequence: { groupOrder: 2 } },
			},
		],
	},
});
