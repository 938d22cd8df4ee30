/** Bundles the adapters once for a whole run of vitest: tests start them hundreds of times, and most of a start is the loading of modules. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";
import { ADAPTER_VARIABLE } from "./time.ts";

export default async function setup(): Promise<(() => void) | undefined> {
	// Once, although each of vitest's projects asks for it.
	if (process.env[ADAPTER_VARIABLE]) return undefined;
	const outDir = mkdtempSync(join(tmpdir(), "nexus-adapter-"));
	process.env[ADAPTER_VARIABLE] = join(outDir, "adapter.js");
	await build({
		configFile: false,
		publicDir: false,
		logLevel: "warn",
		ssr: { noExternal: true },
		build: {
			ssr: join(import.meta.dirname, "adapter.ts"),
			target: "node24",
			outDir,
			emptyOutDir: false,
			minify: false,
			// What libraries would use if it were there.
			rolldownOptions: { external: ["zlib-sync", "bufferutil", "utf-8-validate", "encoding"] },
		},
	});
	return () => rmSync(outDir, { recursive: true, force: true });
}
