/** Where files are, and which ones no tool may touch: below one folder and nowhere else, whatever `..`, absolute paths and links say. An opened file counts, not its path. */

import type { BigIntStats } from "node:fs";
import { type FileHandle, lstat, readlink, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { NexusError } from "@nexus-stream/protocol";

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

/** Whether the path, or the file that stands there, is one of these. The files may come and go. */
export async function isOneOf(files: readonly string[], real: string, found?: BigIntStats): Promise<boolean> {
	for (const file of files) {
		if ((await realPathTo(file)) === real) return true;
		if (found === undefined) continue;
		// Where upper and lower case are the same, paths alone do not tell.
		const other = await stat(file, { bigint: true }).catch(() => undefined);
		if (other?.ino === found.ino && other.dev === found.dev) return true;
	}
	return false;
}

/** Rejects what is not to be written. */
export async function refuseProtected(
	files: readonly string[],
	asked: string,
	real: string,
	found: BigIntStats | undefined,
): Promise<void> {
	if (real.split(path.sep).some(isGit)) throw new Error(`"${asked}" is inside .git and cannot be written`);
	if (await isOneOf(files, real, found))
		throw new Error(`"${asked}" belongs to the configuration of this agent and cannot be written`);
}

/** Also as file systems spell it that ignore case, invisible characters or dots at the end. */
const isGit = (part: string): boolean =>
	part
		.normalize("NFKC")
		.replace(/\p{Cf}/gu, "")
		.replace(/[. ]+$/, "")
		.toLowerCase() === ".git";

/** Checked when the daemon starts. `key` is what the configuration calls the folder. */
export async function checkToolRoot(root: string, key: string, dataDir: string | undefined): Promise<void> {
	const found = await stat(root).catch(() => undefined);
	if (found?.isDirectory() !== true)
		throw new NexusError("config", `\`${key}\` is not a folder that can be read: ${root}`);
	if (dataDir === undefined) return;
	const [real, data] = await Promise.all([realPathTo(root), realPathTo(dataDir)]);
	if (!isInside(real, data) && !isInside(data, real)) return;
	const how = isInside(real, data) ? "contains" : "lies in";
	throw new NexusError(
		"config",
		`\`${key}\` ${how} the data directory ${dataDir}, which no tool may reach: choose a separate folder, such as ./workspace, or keep the data elsewhere with \`data\``,
	);
}
