/** Writes text files below one folder and nowhere else, each whole or not at all. */

import { randomUUID } from "node:crypto";
import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, realpath, rename, unlink } from "node:fs/promises";
import path from "node:path";
import { isInside, openedPathOf, outside, pathBelow, realPathTo, unusable } from "./contained-path.ts";
import { readBytes, textOf } from "./read-file.ts";

export interface WriteOptions {
	/** Limit of the written text, and of the changed file. */
	fileBytesMax: number;
	/** Rejects when this file is not to be written. `found` is what stands there now. */
	guard(real: string, found: BigIntStats | undefined): Promise<void>;
}

/** Replaces the file, or makes it together with its folders. */
export async function writeTextFile(
	root: string,
	asked: string,
	text: string,
	options: WriteOptions,
): Promise<{ created: boolean; bytes: number }> {
	const bytes = bytesOf(text, asked, options.fileBytesMax);
	return await inFolder(root, asked, options, true, async (folder, name) => {
		const old = await openOld(folder, name, asked);
		try {
			const found = await old?.stat({ bigint: true });
			await options.guard(path.join(folder.real, name), found);
			if (found && !found.isFile()) throw notAFile(asked, found);
			await replace(folder, name, bytes, found);
			return { created: found === undefined, bytes: bytes.length };
		} finally {
			await old?.close();
		}
	});
}

/** Replaces the file by what `change` makes of its text. */
export async function editTextFile(
	root: string,
	asked: string,
	change: (text: string) => string,
	options: WriteOptions,
): Promise<void> {
	await inFolder(root, asked, options, false, async (folder, name) => {
		const old = await openOld(folder, name, asked);
		if (old === undefined) throw new Error(`there is no file "${asked}"`);
		try {
			const found = await old.stat({ bigint: true });
			await options.guard(path.join(folder.real, name), found);
			const text = textOf(await readBytes(old, asked, options.fileBytesMax), asked);
			const bytes = bytesOf(change(text), asked, options.fileBytesMax);
			await replace(folder, name, bytes, found, async () => {
				const now = await lstat(path.join(folder.at, name), { bigint: true }).catch(() => undefined);
				const isSame = now?.ino === found.ino && now.mtimeNs === found.mtimeNs && now.size === found.size;
				if (!isSame) throw new Error(`"${asked}" has changed meanwhile: read it again`);
			});
		} finally {
			await old.close();
		}
	});
}

interface Folder {
	handle: FileHandle;
	real: string;
	/** A path to the opened folder itself, wherever its name leads by now. */
	at: string;
}

/** Opens the file's folder step by step without following links, so that none that is put there meanwhile leads outside. */
async function inFolder<T>(
	root: string,
	asked: string,
	{ guard }: WriteOptions,
	makesFolders: boolean,
	use: (folder: Folder, name: string) => Promise<T>,
): Promise<T> {
	const realRoot = await realpath(root);
	const real = await realPathTo(pathBelow(realRoot, asked));
	if (!isInside(realRoot, real)) throw outside(asked);
	if (real === realRoot || /[/\\]$/.test(asked)) throw new Error(`"${asked}" is a folder: name a file in it`);
	// Before the first folder is made.
	await guard(real, undefined);
	const folder = path.dirname(real);
	let at = await openFolder(realRoot, realRoot);
	try {
		for (const name of path.relative(realRoot, folder).split(path.sep).filter(Boolean)) {
			const next = await enter(at, name, makesFolders).catch((cause) => {
				throw unusable(asked, cause);
			});
			await at.handle.close();
			at = next;
		}
		const place = await openedPathOf(at.handle, folder);
		if (place === undefined || !isInside(realRoot, place)) throw outside(asked);
		return await use({ ...at, real: place }, path.basename(real));
	} finally {
		await at.handle.close();
	}
}

async function openFolder(way: string, real: string): Promise<Folder> {
	const handle = await open(way, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
	return { handle, real, at: process.platform === "linux" ? `/proc/self/fd/${handle.fd}` : real };
}

async function enter(folder: Folder, name: string, makesFolders: boolean): Promise<Folder> {
	const way = path.join(folder.at, name);
	const real = path.join(folder.real, name);
	try {
		return await openFolder(way, real);
	} catch (cause) {
		if (!makesFolders || (cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
		await mkdir(way);
		return await openFolder(way, real);
	}
}

/** Opens the current file without following a link or waiting on a pipe. */
async function openOld({ at }: Folder, name: string, asked: string): Promise<FileHandle | undefined> {
	const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
	return await open(path.join(at, name), flags).catch((cause: NodeJS.ErrnoException) => {
		if (cause.code === "ENOENT") return undefined;
		if (cause.code === "ELOOP") throw new Error(`"${asked}" is a link that leads nowhere`, { cause });
		throw unusable(asked, cause);
	});
}

const PERMISSIONS = 0o777;
const NEW_FILE = 0o644;

/** A reader sees the old file or the new one, never a part of it. `check` is asked at the last moment. */
async function replace(
	{ at }: Folder,
	name: string,
	bytes: Buffer,
	old: BigIntStats | undefined,
	check: () => Promise<void> = async () => {},
): Promise<void> {
	const beside = path.join(at, `.nexus-${randomUUID()}`);
	const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
	const file = await open(beside, flags, NEW_FILE);
	try {
		try {
			if (old) await file.chmod(Number(old.mode) & PERMISSIONS);
			await file.writeFile(bytes);
			await file.sync();
		} finally {
			await file.close();
		}
		await check();
		await rename(beside, path.join(at, name));
	} catch (cause) {
		await unlink(beside).catch(() => {});
		throw cause;
	}
}

function bytesOf(text: string, asked: string, fileBytesMax: number): Buffer {
	if (!text.isWellFormed()) throw new Error(`"${asked}" would hold half a character: check the text`);
	const bytes = Buffer.from(text, "utf8");
	if (bytes.length <= fileBytesMax) return bytes;
	throw new Error(`"${asked}" would have ${bytes.length} bytes, and at most ${fileBytesMax} can be written`);
}

const notAFile = (asked: string, found: BigIntStats): Error =>
	new Error(found.isDirectory() ? `"${asked}" is a folder: name a file in it` : `"${asked}" is not a regular file`);
