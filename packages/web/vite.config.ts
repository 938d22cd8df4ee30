/** Builds the page into the daemon's `dist/web`, with hashed assets and nothing inline, so that a strict CSP can hold. */

import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
	root: here("."),
	base: "/",
	resolve: { conditions: ["nexus-source", "module", "browser", "development|production"] },
	oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
	build: {
		outDir: here("../daemon/dist/web"),
		emptyOutDir: true,
		target: "es2022",
		// The first browsers that know light-dark().
		cssTarget: ["chrome123", "firefox120", "safari17.5"],
		// An inlined asset would be a data: URL in a style sheet.
		assetsInlineLimit: 0,
		modulePreload: { polyfill: false },
	},
});
