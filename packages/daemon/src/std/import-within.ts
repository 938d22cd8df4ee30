/** Loads a module of the user's; one whose top level takes too long is refused, so that a start never hangs without a word. */

import { readFileSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { systemClock, within } from "@nexus-stream/protocol/clock";

/** A person who waits for a start reads the error within ten seconds. */
const MODULE_LOAD_MS = 8_000;

export async function importWithin(path: string, loadMs = MODULE_LOAD_MS): Promise<Record<string, unknown>> {
	const loading = import(pathToFileURL(path).href).catch((cause: unknown) => {
		throw withHint(cause, path);
	});
	const settled = loading.catch(() => {});
	if (await within(systemClock, loadMs, settled, "due")) return await loading;
	throw new Error(`its top level is still waiting after ${loadMs} ms`);
}

/** Node's errors about `import` and `export` in a file that it reads as CommonJS. */
const IS_ES_SYNTAX =
	/^Unexpected token 'export'|^Cannot use import statement outside a module|^Cannot use 'import\.meta'/;

/** `npm init` writes `"type": "commonjs"`: then Node reads a .ts or .js file as CommonJS, and its error does not say so. */
function withHint(cause: unknown, path: string): unknown {
	if (!(cause instanceof SyntaxError) || !IS_ES_SYNTAX.test(cause.message)) return cause;
	const declared = commonJsPackage(dirname(path));
	if (declared === undefined) return cause;
	const name = basename(path, extname(path));
	const extension = extname(path) === ".ts" ? ".mts" : ".mjs";
	const remedy = `change that line to "type": "module", or rename the file to ${name}${extension}`;
	return new Error(`${cause.message}: "type": "commonjs" in ${declared} makes Node read it as CommonJS; ${remedy}`, {
		cause,
	});
}

/** The package.json that decides about the files of a folder, if it says `commonjs`. */
function commonJsPackage(folder: string): string | undefined {
	const file = join(folder, "package.json");
	let text: string;
	try {
		text = readFileSync(file, "utf8");
	} catch {
		const above = dirname(folder);
		return above === folder ? undefined : commonJsPackage(above);
	}
	try {
		return (JSON.parse(text) as { type?: unknown }).type === "commonjs" ? file : undefined;
	} catch {
		// Node itself reports a package.json that it cannot read.
		return undefined;
	}
}
