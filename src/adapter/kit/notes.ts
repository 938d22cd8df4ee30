/**
 * Lines that the processes of one account share: each is in the file, whole, when `add` returns, so that it outlives any kill; none of them
 * undoes another's, because nothing is ever rewritten.
 */

import { closeSync, fdatasyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from "node:fs";

export interface Notes {
	/** `lasting`: it outlives a power cut, too. */
	add(line: string, lasting?: boolean): void;
	/** Everything kept, oldest first. */
	all(): readonly string[];
}

/** Two files of this size are kept at most. */
const FILE_BYTES_MAX = 512 * 1024;

export function openNotes(path: string, fileBytesMax = FILE_BYTES_MAX): Notes {
	const older = `${path}.1`;
	let known: { stamp: string; lines: readonly string[] } = { stamp: "", lines: [] };
	return {
		add(line, lasting = false) {
			if ((sizeOf(path) ?? 0) > fileBytesMax) renameSync(path, older);
			const file = openSync(path, "a", 0o600);
			try {
				// Whatever a power cut left of the last line, this one begins anew.
				writeSync(file, `\n${line}`);
				if (lasting) fdatasyncSync(file);
			} finally {
				closeSync(file);
			}
		},
		all() {
			const stamp = `${sizeOf(older)} ${sizeOf(path)}`;
			if (stamp !== known.stamp) known = { stamp, lines: [...linesOf(older), ...linesOf(path)] };
			return known.lines;
		},
	};
}

const sizeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.size;

function linesOf(path: string): string[] {
	try {
		return readFileSync(path, "utf8")
			.split("\n")
			.filter((line) => line !== "");
	} catch (cause) {
		if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return [];
		throw cause;
	}
}
