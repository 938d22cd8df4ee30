/** Where files are: below one folder and nowhere else, whatever `..`, absolute paths and links say. An opened file counts, not its path. */

import { type FileHandle, lstat, readlink, realpath } from "node:fs/promises";
import path from "node:path";

/** `target` is `root`, or below it. */
export function isInside(root: string, target: string): boolean {
	const way = path.relative(root, target);
	return way !== ".." && !way.startsWith(`..${path.sep}`) && !path.isAbsolute(way);
}

/** The path as it was asked for, in full; refused when its words alone lead outside. */
export function pathBelow(realRoot: string, requested: string): string {
	if (requested.includes("\0")) throw new Error("a path cannot contain a zero byte");
	const wanted = path.resolve(realRoot, requested);
	if (!isInside(realRoot, wanted)) throw outside(requested);
	return wanted;
}

/** Where an opened file or folder is. Its path may lead elsewhere by now: a folder on the way can be swapped for a link and back. */
export async function openedPathOf(file: FileHandle, real: string): Promise<string | undefined> {
	if (process.platform === "linux") {
		const place = await readlink(`/proc/self/fd/${file.fd}`).catch(() => undefined);
		if (place !== undefined) return place;
	}
	// The best there is without /proc: it is the file that stands there now.
	const again = await realpath(real).catch(() => undefined);
	if (again !== real) return undefined;
	const [opened, named] = await Promise.all([file.stat({ bigint: true }), lstat(real, { bigint: true })]);
	return opened.ino === named.ino && opened.dev === named.dev ? real : undefined;
}

/** The real path of what is there or will be: links are followed as far as something exists. */
export async function realPathTo(target: string): Promise<string> {
	const rest: string[] = [];
	for (let at = target; ; at = path.dirname(at)) {
		const real = await realpath(at).catch((cause: NodeJS.ErrnoException) => {
			if (cause.code === "ENOENT" || cause.code === "ENOTDIR") return undefined;
			throw cause;
		});
		if (real !== undefined) return path.join(real, ...rest);
		if (path.dirname(at) === at) return target;
		rest.unshift(path.basename(at));
	}
}

/** Errors name the requested path and never reveal the target of a link. */
export const outside = (requested: string): Error => new Error(`"${requested}" is outside the folder that may be used`);

export function unusable(requested: string, cause: unknown): Error {
	const code = (cause as NodeJS.ErrnoException).code;
	if (code === "ENOENT" || code === "ENOTDIR") return new Error(`there is no file "${requested}"`, { cause });
	return new Error(`"${requested}" cannot be used (${code ?? "unknown"})`, { cause });
}
