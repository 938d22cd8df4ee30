/** The files that the checks of this folder read, and the one table of the folders where they are. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Paths from the root of the repository; `*` stands for one folder. */
export const FOLDERS = {
	published: ["src", "packages/*/src"],
	tests: ["test", "packages/*/test"],
	generated: ["src/gen", "packages/*/gen", "packages/*/src/gen"],
	/** Recorded or published by others. */
	foreign: ["test/fixtures", "packages/*/test/fixtures", "test/*/fixtures", "proto/google", "proto/grpc"],
} as const;

const IGNORED = new Set(["node_modules", "package-lock.json"]);

export const isBelow = (file: string, folders: readonly string[]): boolean =>
	folders.some((folder) => new RegExp(`^${folder.replaceAll("*", "[^/]+")}/`).test(file));

export const isPublished = (file: string): boolean =>
	isBelow(file, FOLDERS.published) && !isBelow(file, FOLDERS.generated);

/** All files below the root by path, with forward slashes, without dot files, dependencies and build output. */
export function filesBelow(root: string, extensions: RegExp): Map<string, string> {
	const found: string[] = [];
	const visit = (folder: string) => {
		for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
			if (IGNORED.has(entry.name) || /^(?:\.|dist)/.test(entry.name)) continue;
			const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
			if (entry.isDirectory()) visit(path);
			else if (extensions.test(entry.name)) found.push(path);
		}
	};
	visit("");
	return new Map(found.sort().map((path) => [path, readFileSync(join(root, path), "utf8")]));
}

/**
 * Where a published file stands, as the budgets name it: `nex/account.ts`, `web/app.ts`. The same in `src/nex/`, in
 * `packages/daemon/src/nex/` and, for a package that is one folder, in `packages/web/src/`.
 */
export function placeOf(file: string): string {
	const [, name, rest] = /^packages\/([^/]+)\/src\/(.*)$/.exec(file) ?? [];
	if (name === undefined) return file.replace(/^src\//, "");
	return name === "daemon" ? rest! : `${name}/${rest}`;
}
