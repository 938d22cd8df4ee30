/** Reads a text file below one folder and nothing else: no way out by `..`, absolute paths or links. */

import { constants } from "node:fs";
import { type FileHandle, lstat, open, readlink, realpath } from "node:fs/promises";
import path from "node:path";

/** What one call may bring into the model's context. */
export const FILE_BYTES_MAX = 256 * 1024;

/** Errors speak of the path as it was asked for; where a link leads is nobody's business. */
export async function readTextFile(
	root: string,
	asked: string,
	fileBytesMax: number = FILE_BYTES_MAX,
): Promise<string> {
	const realRoot = await realpath(root);
	const real = await insidePath(realRoot, asked);
	// No following of a link put there since; no waiting on a pipe.
	const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((cause) => {
		throw unreadable(asked, cause);
	});
	try {
		const opened = await placeOf(file, real);
		if (opened === undefined || !isInside(realRoot, opened)) throw outside(asked);
		return await readAsText(file, asked, fileBytesMax);
	} finally {
		await file.close();
	}
}

async function insidePath(realRoot: string, asked: string): Promise<string> {
	if (asked.includes("\0")) throw new Error("a path cannot contain a zero byte");
	const wanted = path.resolve(realRoot, asked);
	if (!isInside(realRoot, wanted)) throw outside(asked);
	const real = await realpath(wanted).catch((cause) => {
		throw unreadable(asked, cause);
	});
	if (!isInside(realRoot, real)) throw outside(asked);
	return real;
}

/** Where the opened file is. Its path may lead elsewhere by now: a folder on the way can be swapped for a link and back. */
async function placeOf(file: FileHandle, real: string): Promise<string | undefined> {
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

function isInside(root: string, target: string): boolean {
	const way = path.relative(root, target);
	return way !== ".." && !way.startsWith(`..${path.sep}`) && !path.isAbsolute(way);
}

async function readAsText(file: FileHandle, asked: string, fileBytesMax: number): Promise<string> {
	const stat = await file.stat();
	if (stat.isDirectory()) throw new Error(`"${asked}" is a folder: ask for a file in it`);
	if (!stat.isFile()) throw new Error(`"${asked}" is not a regular file`);
	// The size is only a hint (a growing log, /proc): one byte more than allowed tells.
	const buffer = Buffer.alloc(Math.min(stat.size, fileBytesMax) + 1);
	const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
	if (stat.size > fileBytesMax || bytesRead > fileBytesMax) {
		throw new Error(`"${asked}" has ${stat.size} bytes, and at most ${fileBytesMax} can be read`);
	}
	const bytes = buffer.subarray(0, bytesRead);
	if (bytes.includes(0)) throw new Error(`"${asked}" is not a text file`);
	try {
		return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
	} catch (cause) {
		throw new Error(`"${asked}" is not a text file (not UTF-8)`, { cause });
	}
}

const outside = (asked: string): Error => new Error(`"${asked}" is outside the folder that may be read`);

function unreadable(asked: string, cause: unknown): Error {
	const code = (cause as NodeJS.ErrnoException).code;
	if (code === "ENOENT" || code === "ENOTDIR") return new Error(`there is no file "${asked}"`, { cause });
	return new Error(`"${asked}" cannot be read (${code})`, { cause });
}
