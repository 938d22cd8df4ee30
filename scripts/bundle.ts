/**
 * The published JavaScript: the sources and the small libraries they always load, in a few files. Hundreds of files, most of them
 * parts of libraries that are never used, would take the daemon half of its start and a tenth of its memory.
 */

import { chmodSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build, type Plugin, type UserConfig } from "vite";
import { ROOT } from "./run.ts";
import { isStale } from "./stale.ts";

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
	// Of pino.
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

/** One build for all of them: an error that a user's agent throws must be of the same class as the daemon's. */
const ENTRIES = {
	index: "src/index.ts",
	"protocol/protocol": "src/protocol/protocol.ts",
	"client/client": "src/client/client.ts",
	"runtime-client/runtime-client": "src/runtime-client/runtime-client.ts",
	"cli/main": "src/cli/main.ts",
	"adapter/main": "src/adapter/main.ts",
	"adapter/kit/kit": "src/adapter/kit/kit.ts",
	// The channel lab's platforms.
	"fakes/main": "test/fakes/main.ts",
	// Found beside the file that starts it.
	"chunks/checkpoint-worker": "src/std/checkpoint-worker.ts",
	"chunks/script-worker": "src/services/workflows/script-worker.ts",
};

/** Small files that import nothing: a browser loads them with the client, too. */
const LEAVES = [
	"adapter/channels",
	"cli/host",
	"engine/pi/detect",
	"std/clock",
	"std/own",
	"std/printable",
	"std/seed",
];
/** Small files that import only Node's modules, or one another. */
const NODE_LEAVES = [
	"adapter/bundled",
	"adapter/nonce",
	"runtime/package",
	"std/address-block",
	"std/address-guard",
	"std/lock",
	"std/supervision",
];
/** What every command and every start reads of the data directory and the configuration. */
const DATA = ["channels", "config", "data-dir", "data-lock", "runtime", "secret-key", "stored-accounts"];

const sourceIn = (names: readonly string[]): RegExp => new RegExp(`/src/(?:${names.join("|")})\\.ts$`);

/** Files that many need: else each way of sharing them would be a file of its own, which a start has to open. */
const GROUPS = [
	{ name: "protocol", test: /\/src\/protocol\// },
	{ name: "gen", test: /\/src\/gen\// },
	{ name: "chats", test: /\/src\/adapter\/\w+\/chat\.ts$/ },
	{ name: "leaves", test: sourceIn(LEAVES) },
	{ name: "node-leaves", test: sourceIn(NODE_LEAVES) },
	{ name: "data", test: sourceIn(DATA.map((name) => `runtime/${name}`)) },
];

/** `outDir` stands directly in the package, as `dist` does. */
export async function bundle(outDir: string = join(ROOT, "dist")): Promise<void> {
	await buildWith(outDir, ENTRIES, { ssr: { noExternal: INCLUDED } }, []);
	// A global install of a checkout is a link to this file: npm makes it executable once, and a build writes it again.
	chmodSync(join(outDir, "cli/main.js"), 0o755);
}

/** What the tests start as processes (test/children.ts). */
const TEST_FOLDER = "dist-test";
const TEST_ENTRIES = { ...ENTRIES, "time/adapter": "test/time/adapter.ts" };
/** Optional native addons, and libraries that find files of their own at run time. */
const NOT_BUNDLED = ["zlib-sync", "bufferutil", "utf-8-validate", "pino", "prom-client", "quickjs-emscripten"];

/** For tests: with the platforms' libraries, which are most of what a process loads at its start. Built when a source is newer. */
export async function bundleForTests(): Promise<void> {
	const sources = ["src", "test/fakes", "test/time", "scripts/bundle.ts", "package-lock.json"];
	if (!isStale(`${TEST_FOLDER}/cli/main.js`, sources)) return;
	// Another run may be starting processes from the one that is there.
	const made = join(ROOT, `${TEST_FOLDER}.${process.pid}`);
	await buildWith(made, TEST_ENTRIES, { ssr: { noExternal: true, external: NOT_BUNDLED } }, [
		/^@earendil-works\//,
		...NOT_BUNDLED,
	]);
	rmSync(join(ROOT, TEST_FOLDER), { recursive: true, force: true });
	renameSync(made, join(ROOT, TEST_FOLDER));
}

async function buildWith(
	outDir: string,
	entries: Readonly<Record<string, string>>,
	config: UserConfig,
	external: (string | RegExp)[],
): Promise<void> {
	await build({
		...config,
		configFile: false,
		root: ROOT,
		publicDir: false,
		logLevel: "warn",
		plugins: [directBuiltins],
		build: {
			ssr: true,
			target: "node24",
			outDir,
			emptyOutDir: false,
			minify: false,
			license: { fileName: "third-party-licences.md" },
			rolldownOptions: {
				external,
				input: Object.fromEntries(Object.entries(entries).map(([name, path]) => [name, join(ROOT, path)])),
				output: {
					entryFileNames: "[name].js",
					chunkFileNames: "chunks/[name]-[hash].js",
					codeSplitting: { groups: GROUPS },
				},
			},
		},
	});
}
