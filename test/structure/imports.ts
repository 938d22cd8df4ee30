/** Reads which files import which, from the text of the sources: no compiler, so it costs milliseconds. */

import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

/**
 * Source → what it imports, as written: `../bus/bus.ts`, `node:fs`, `hono`. A source is named by its package and its path in it:
 * `daemon/bus/bus.ts` is `packages/daemon/src/bus/bus.ts`.
 */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

export const ROOT = join(import.meta.dirname, "../..");
export const PACKAGES = readdirSync(join(ROOT, "packages")).toSorted();

export interface Manifest {
	name: string;
	private?: boolean;
	exports?: Record<string, { "nexus-source": string }>;
	dependencies?: Record<string, string>;
	devDependencies?: Record<string, string>;
	peerDependencies?: Record<string, string>;
}

export const manifests: ReadonlyMap<string, Manifest> = new Map(
	PACKAGES.map((name) => [
		name,
		JSON.parse(readFileSync(join(ROOT, "packages", name, "package.json"), "utf8")) as Manifest,
	]),
);

/** Blanks comments and the inside of template literals, and leaves strings as they are: a string may hold `//`, a comment may hold quotes. */
export function withoutComments(source: string): string {
	const token = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|[^`\\])*`/g;
	return source.replace(token, (text) => (text.startsWith("/") ? " " : text.startsWith("`") ? "``" : text));
}

const FROM = /^[ \t]*(?:import|export)\s+(?:type\s+)?[\w\s{},*$]+?\s+from\s*["']([^"']+)["']/gm;
const BARE = /^[ \t]*import\s*["']([^"']+)["']/gm;
const CALL = /\bimport\(\s*["']([^"']+)["']\s*\)/g;

/** Types included: an import of a type binds two files just as well. */
export function importsOf(source: string): string[] {
	const text = withoutComments(source);
	return [FROM, BARE, CALL].flatMap((form) => [...text.matchAll(form)].map((match) => match[1] ?? ""));
}

/** Every TypeScript file below a folder. */
export function sourcesBelow(folder: string): Map<string, string> {
	const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
	const files = names.map((name) => name.replaceAll("\\", "/")).filter((name) => /\.tsx?$/.test(name));
	return new Map(files.sort().map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

/** The sources of all packages. */
export const packageSources = (): Map<string, string> =>
	new Map(
		PACKAGES.flatMap((name) =>
			[...sourcesBelow(join(ROOT, "packages", name, "src"))].map(([file, source]): [string, string] => [
				`${name}/${file}`,
				source,
			]),
		),
	);

/** Where an import leads among the sources; undefined for a package that is not of this repository. */
export function targetOf(file: string, specifier: string): string | undefined {
	if (specifier.startsWith(".")) return posix.normalize(posix.join(posix.dirname(file), specifier));
	for (const [folder, { name, exports = {} }] of manifests) {
		if (specifier !== name && !specifier.startsWith(`${name}/`)) continue;
		const entry = `.${specifier.slice(name.length)}`;
		for (const [pattern, { "nexus-source": source }] of Object.entries(exports)) {
			const [before = "", after] = pattern.split("*");
			if (pattern === entry) return posix.join(folder, source.replace("./src/", ""));
			if (after !== undefined && entry.startsWith(before))
				return posix.join(folder, source.replace("./src/", "").replace("*", entry.slice(before.length)));
		}
		return `${folder}/${entry}`;
	}
	return undefined;
}
