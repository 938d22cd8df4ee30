/** Reads which files import which, from the text of the sources: no compiler, so it costs milliseconds. */

import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

/** Path below `src`, with forward slashes → what it imports, as written: `../bus/bus.ts`, `node:fs`, `hono`. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

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

/** Where a relative import leads, below the same root; undefined for a package. */
export function targetOf(file: string, specifier: string): string | undefined {
	return specifier.startsWith(".") ? posix.normalize(posix.join(posix.dirname(file), specifier)) : undefined;
}
