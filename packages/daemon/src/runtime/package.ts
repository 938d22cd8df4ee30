/** The installed package: its version and the built page. The same from `src` and from `dist`. */

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const inPackage = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

export function packageVersion(): string {
	return (JSON.parse(readFileSync(inPackage("package.json"), "utf8")) as { version: string }).version;
}

/** Undefined in a working copy whose page was not built. */
export function pageDir(): string | undefined {
	const dir = inPackage("dist/web");
	return existsSync(dir) ? dir : undefined;
}
