/**
 * The published JavaScript: the sources and the small libraries they always load, in a few files. Hundreds of files, most of them
 * parts of libraries that are never used, would take the daemon half of its start and a tenth of its memory.
 */

import { chmodSync, existsSync, globSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build, type Plugin, type UserConfig } from "vite";
import { ROOT } from "./run.ts";
import { isStale } from "./stale.ts";

/** The names of a package's exported sources, without their ending. */
function exportedSources(name: string): string[] {
	const folder = join(ROOT, "packages", name);
	const { exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
		exports: Record<string, { "nexus-source": string }>;
	};
	return Object.values(exports)
		.flatMap(({ "nexus-source": source }) => globSync(source.replace("*", "**/*"), { cwd: folder }))
		.map((file) => file.replace(/^(?:\.\/)?src\//, "").replace(/\.ts$/, ""));
}

/** Loaded at every start. The others stay what they are: loaded late, or tied to files of their own. */
const INCLUDED = [
	"@hono/node-server",
	"commander",
	"discord-api-spec",
	"eventsource-parser",
	"hono",
	"pino",
	"ws",
	"yaml",
	"zod",
	// Dependencies of pino.
	"@pinojs/redact",
	"atomic-sleep",
	"on-exit-leak-free",
	"pino-std-serializers",
	"process-warning",
	"quick-format-unescaped",
	"safe-stable-stringify",
	"sonic-boom",
	"thread-stream",
	// The lab's relay, which is not installed with the package, and what is of it: its versions differ from nostr-tools'.
	"@nostr-relay/common",
	"@nostr-relay/core",
	"@nostr-relay/validator",
	"@noble/curves",
	"@noble/hashes",
	"lru-cache",
	"rxjs",
	"zod-validation-error",
];

/**
 * An `import` of one of Node's modules reads all of its exports, also those that load more: of `node:http` a whole HTTP client, 20 ms
 * and 13 MB. Asked for directly, a module gives what is named. Not in the entries, which an older Node must be able to read.
 */
const directBuiltins: Plugin = {
	name: "direct-builtins",
	renderChunk: (code, { isEntry }) =>
		isEntry
			? null
			: code
					.replace(
						/^import \* as (\S+) from "(node:[^"]+)";$/gm,
						'const $1 = globalThis.process.getBuiltinModule("$2");',
					)
					.replace(/^import (\w\S*) from "(node:[^"]+)";$/gm, 'const $1 = globalThis.process.getBuiltinModule("$2");')
					.replace(
						/^import \{ ([^}]+) \} from "(node:[^"]+)";$/gm,
						(_, names: string, id: string) =>
							`const { ${names.replaceAll(" as ", ": ")} } = globalThis.process.getBuiltinModule("${id}");`,
					),
};

/**
 * Node searches for a package once per file that imports it; so one file imports the protocol for all others. Forty look-ups take a
 * start 20 ms, and have Node optimise its path functions: 5 MB of the optimiser's code.
 */
const oneImport = (specifier: string): Plugin => ({
	name: "one-import",
	generateBundle() {
		this.emitFile({
			type: "prebuilt-chunk",
			fileName: "chunks/shared-import.js",
			code: `export * from "${specifier}";\n`,
		});
	},
	renderChunk: (code, { isEntry }) =>
		isEntry ? null : code.replaceAll(`from "${specifier}"`, 'from "./shared-import.js"'),
});

/** The published packages that are libraries, each with the sources that its `exports` name. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
	["protocol", "client", "adapter"].map((name) => [name, exportedSources(name)]),
);
export const PUBLISHED = [...Object.keys(LIBRARIES), "daemon"];

/** The daemon contains the private packages, and the libraries that a start would otherwise open file by file. */
const DAEMON = {
	index: "daemon/src/index.ts",
	"cli/main": "daemon/src/cli/main.ts",
	"platforms/main": "platforms/src/main.ts",
	"lab/main": "lab/src/main.ts",
	// Found next to the file that starts it.
	"chunks/checkpoint-worker": "daemon/src/std/sqlite/checkpoint-worker.ts",
	"chunks/script-worker": "daemon/src/services/workflows/nodes/script-worker.ts",
};

/** Small files that import nothing: a browser loads them with the client, too. */
const LEAVES = [
	"protocol/src/clock",
	"protocol/src/log",
	"protocol/src/defaults",
	"protocol/src/keyed-queue",
	"protocol/src/own",
	"protocol/src/retry",
	"adapter/src/question",
	"daemon/src/cli/host",
	"daemon/src/cli/interrupt",
	"daemon/src/std/clip",
	"daemon/src/std/content-type",
	"daemon/src/std/seed",
];
/** Small files that import little besides Node's modules, the protocol and one another. */
const NODE_LEAVES = [
	"adapter/src/nonce",
	"daemon/src/runtime/package",
	"daemon/src/engine/policy",
	"daemon/src/engine/tool",
	"daemon/src/services/workflows/port",
	"daemon/src/std/globs",
	"adapter/src/net/address-guard",
	"daemon/src/std/line-process",
	"daemon/src/std/supervision",
];
/** Every command and every start reads these: the data directory and the configuration. */
const DATA = ["config/channels", "config/config", "data/data-dir", "data/data-lock", "runtime", "data/secrets"];

/** Fails on a name without a source: its file would be loaded separately, unnoticed. */
function sourceIn(names: readonly string[]): RegExp {
	const missing = names.filter((name) => !existsSync(join(ROOT, "packages", `${name}.ts`)));
	if (missing.length > 0) throw new Error(`scripts/bundle.ts names sources that do not exist: ${missing.join(", ")}`);
	return new RegExp(`/packages/(?:${names.join("|")})\\.ts$`);
}

/** Files that many entries need: else each combination of entries would get a separate file, which a start has to open. */
const GROUPS = [
	{
		name: "protocol",
		test: /\/packages\/protocol\/src\/(?!clock|defaults|keyed-queue|log|own|markdown|hostile|retry)/,
	},
	{ name: "gen", test: /\/packages\/client\/src\/gen\// },
	{ name: "chats", test: /\/packages\/platforms\/src\/(?:channels|chats|platforms)\.ts$/ },
	{
		name: "host",
		test: /\/packages\/adapter\/src\/(?:host|info|shapes|markdown\/split|memory\/state|serve\/lines)\.ts$/,
	},
	{
		// Both stores need them, and the one in PostgreSQL is loaded late.
		name: "ledger",
		test: /\/packages\/daemon\/src\/(?:ledger\/|bus\/(?!postgres\/)|std\/(?:sql\/|write\.ts$)|runtime\/data\/tables\.ts$|services\/\w+\/(?:rows|rows-\w+|search-\w+)\.ts$)/,
	},
	{ name: "leaves", test: sourceIn(LEAVES) },
	{ name: "node-leaves", test: sourceIn(NODE_LEAVES) },
	{ name: "data", test: sourceIn(DATA.map((name) => `daemon/src/runtime/${name}`)) },
];

/** Writes `packages/<name>/dist` below `base`. */
export async function bundle(base: string = ROOT): Promise<void> {
	const dist = (name: string): string => join(base, "packages", name, "dist");
	await Promise.all(
		Object.entries(LIBRARIES).map(([name, entries]) =>
			buildWith(
				dist(name),
				Object.fromEntries(entries.map((entry) => [entry, `${name}/src/${entry}.ts`])),
				{},
				[/^@nexus-stream\//],
				[],
			),
		),
	);
	// One copy of the protocol for the daemon and the agents in it: an error that an agent throws is of the daemon's class.
	await buildWith(
		dist("daemon"),
		DAEMON,
		{
			ssr: { noExternal: [...INCLUDED, /^@nexus-stream\/(?!protocol$)/] },
			plugins: [oneImport("@nexus-stream/protocol")],
		},
		[/^@nexus-stream\/protocol$/],
		GROUPS,
	);
	// A global install of a checkout is a link to this file: npm makes it executable once, and a build writes it again.
	chmodSync(join(dist("daemon"), "cli/main.js"), 0o755);
}

/** The programs that tests start as processes (test/children.ts). In the daemon's package, where they find its version and the page. */
const TEST_FOLDER = "packages/daemon/dist-test";
const TEST_ENTRIES = { ...DAEMON, "time/adapter": "../test/time/adapter.ts" };
/** Optional native addons, and libraries that find files of their own at run time. */
const NOT_BUNDLED = ["zlib-sync", "bufferutil", "utf-8-validate", "pino", "prom-client", "quickjs-emscripten"];

/** For tests: with the platforms' libraries, which are most of what a process loads at its start. Built when a source is newer. */
export async function bundleForTests(): Promise<void> {
	const sources = [...globSync("packages/*/src", { cwd: ROOT }), "test/time", "scripts/bundle.ts", "package-lock.json"];
	if (!isStale(`${TEST_FOLDER}/cli/main.js`, sources)) return;
	// Another run may be starting processes from the one that is there.
	const made = join(ROOT, `${TEST_FOLDER}.${process.pid}`);
	await buildWith(
		made,
		TEST_ENTRIES,
		{ ssr: { noExternal: true, external: NOT_BUNDLED } },
		[/^@earendil-works\//, ...NOT_BUNDLED],
		GROUPS,
	);
	rmSync(join(ROOT, TEST_FOLDER), { recursive: true, force: true });
	renameSync(made, join(ROOT, TEST_FOLDER));
}

async function buildWith(
	outDir: string,
	entries: Readonly<Record<string, string>>,
	config: Pick<UserConfig, "ssr" | "plugins">,
	external: (string | RegExp)[],
	groups: typeof GROUPS,
): Promise<void> {
	await build({
		ssr: { ...config.ssr, resolve: { conditions: ["nexus-source", "module", "node", "development|production"] } },
		configFile: false,
		root: ROOT,
		publicDir: false,
		logLevel: "warn",
		plugins: [directBuiltins, ...(config.plugins ?? [])],
		build: {
			ssr: true,
			target: "node24",
			outDir,
			emptyOutDir: false,
			minify: false,
			license: { fileName: "third-party-licences.md" },
			rolldownOptions: {
				external,
				input: Object.fromEntries(Object.entries(entries).map(([name, path]) => [name, join(ROOT, "packages", path)])),
				output: {
					entryFileNames: "[name].js",
					chunkFileNames: "chunks/[name]-[hash].js",
					codeSplitting: { groups },
				},
			},
		},
	});
}
