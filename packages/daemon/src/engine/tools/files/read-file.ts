/** Reads a text file below one folder and nothing else: no way out by `..`, absolute paths or links. */

import { constants } from "node:fs";
import { type FileHandle, open, realpath } from "node:fs/promises";
import { isInside, isOneOf, openedPathOf, outside, pathBelow, unusable } from "./contained-path.ts";

/** Limit of what one call adds to the model's context. */
export const FILE_BYTES_MAX = 256 * 1024;

export interface ReadOptions {
	fileBytesMax?: number;
	/** Refused, by whatever path or link they are asked for. */
	secretFiles?: readonly string[];
}

export async function readTextFile(
	root: string,
	asked: string,
	{ fileBytesMax = FILE_BYTES_MAX, secretFiles = [] }: ReadOptions = {},
): Promise<string> {
	const realRoot = await realpath(root);
	const wanted = pathBelow(realRoot, asked);
	const real = await realpath(wanted).catch((cause) => {
		throw unusable(asked, cause);
	});
	if (!isInside(realRoot, real)) throw outside(asked);
	// No following of a link put there since; no waiting on a pipe.
	const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((cause) => {
		throw unusable(asked, cause);
	});
	try {
		const opened = await openedPathOf(file, real);
		if (opened === undefined || !isInside(realRoot, opened)) throw outside(asked);
		if (await isOneOf(secretFiles, opened, await file.stat({ bigint: true })))
			throw new Error(`"${asked}" may hold secrets and cannot be read`);
		return textOf(await readBytes(file, asked, fileBytesMax), asked).replace(/^\uFEFF/, "");
	} finally {
		await file.close();
	}
}

export async function readBytes(file: FileHandle, asked: string, fileBytesMax: number): Promise<Buffer> {
	const stat = await file.stat();
	if (stat.isDirectory()) throw new Error(`"${asked}" is a folder: ask for a file in it`);
	if (!stat.isFile()) throw new Error(`"${asked}" is not a regular file`);
	// The size is only a hint (a growing log, /proc): one byte more than allowed tells.
	const buffer = Buffer.alloc(Math.min(stat.size, fileBytesMax) + 1);
	const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
	if (stat.size > fileBytesMax || bytesRead > fileBytesMax) {
		throw new Error(`"${asked}" has ${stat.size} bytes, and at most ${fileBytesMax} can be read`);
	}
	return buffer.subarray(0, bytesRead);
}

/** With its byte order mark, if any, so that writing the text back keeps it. */
export function textOf(bytes: Buffer, asked: string): string {
	if (bytes.includes(0)) throw new Error(`"${asked}" is not a text file`);
	try {
		return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
	} catch (cause) {
		throw new Error(`"${asked}" is not a text file (not UTF-8)`, { cause });
	}
}
