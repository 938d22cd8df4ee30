/**
 * The published JavaScript: the sources and the small libraries they always load, in a few files. Hundreds of files, most of them
 * parts of libraries that are never used, would take the daemon half of its start and a tenth of its memory.
 */

import { join } from "node:path";
import { build } from "vite";
import { ROOT } from "./run.ts";

/** Loaded at every start. The others stay what they are: loaded late, or tied to files of their own. */
const INCLUDED = [
	"@hono/node-server",
	"commander",
	"discord-api-spec",
	"eventsource-parser",
	"hono",
	"ws",
	"yaml",
	"zod",
];

/** One build for all of them: an error that a user's agent throws must be of the same class as the daemon's. */
const ENTRIES = {
	index: "src/index.ts",
	"protocol/protocol": "src/protocol/protocol.ts",
	"cli/main": "src/cli/main.ts",
	"adapter/main": "src/adapter/main.ts",
	"adapter/kit/kit": "src/adapter/kit/kit.ts",
	// The channel lab's platforms.
	"fakes/main": "test/fakes/main.ts",
	// Found beside the file that starts it.
	"chunks/checkpoint-worker": "src/std/checkpoint-worker.ts",
};

/** `outDir` stands directly in the package, as `dist` does. */
export async function bundle(outDir: string = join(ROOT, "dist")): Promise<void> {
	await build({
		configFile: false,
		root: ROOT,
		publicDir: false,
		logLevel: "warn",
		ssr: { noExternal: INCLUDED },
		build: {
			ssr: true,
			target: "node24",
			outDir,
			emptyOutDir: false,
			minify: false,
			license: { fileName: "third-party-licences.md" },
			rolldownOptions: {
				input: Object.fromEntries(Object.entries(ENTRIES).map(([name, path]) => [name, join(ROOT, path)])),
				output: { entryFileNames: "[name].js", chunkFileNames: "chunks/[name]-[hash].js" },
			},
		},
	});
}
