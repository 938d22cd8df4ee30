/** Paths that no tool may touch in any configured folder: the daemon's own files, and the internals of a Git repository. */

import type { BigIntStats } from "node:fs";
import { stat } from "node:fs/promises";
import path from "node:path";
import { NexusError } from "@nexus-stream/protocol";
import { isInside, realPathTo } from "./contained-path.ts";

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
