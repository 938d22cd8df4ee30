/** Which test files need what, read from the files themselves. */

import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const IMPORTED = /(?:from|import)\s*\(?"(\.[^"]+)"/g;

const sources = new Map<string, string>();
for (const file of globSync("test/**/*.{ts,tsx}", { cwd: ROOT }))
	sources.set(file, readFileSync(join(ROOT, file), "utf8"));

const testsWith = (has: (file: string) => boolean): string[] =>
	[...sources.keys()].filter((file) => /\.test\.tsx?$/.test(file) && has(file));

/** They replace modules, or count what a module does from its first line: they need copies that no other file has loaded. */
export const replacingModules = (): string[] =>
	testsWith((file) => /\bvi\.mock\(|\bstartCoverage\(/.test(sources.get(file)!));

/** They import this helper, directly or through others. */
export function importing(helper: string): string[] {
	const found = new Map<string, boolean>([[helper, true]]);
	const leadsThere = (file: string): boolean => {
		const known = found.get(file);
		if (known !== undefined) return known;
		found.set(file, false);
		const imports = [...(sources.get(file) ?? "").matchAll(IMPORTED)].map(([, path]) => path!);
		const leads = imports.some((path) => leadsThere(relative(ROOT, join(ROOT, dirname(file), path))));
		found.set(file, leads);
		return leads;
	};
	return testsWith(leadsThere);
}
