/**
 * Lines that the processes of one account share. A line is completely in the file when `add` returns, so it outlives a kill; the file is only
 * appended to, so the processes do not overwrite each other.
 */

import { closeSync, fdatasyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from "node:fs";
import type { LineRecorder } from "./recorder.ts";

export interface Notes {
	add(line: string): void;
	/** It outlives a power cut, too: at once, or when the promise resolves. */
	addLasting(line: string): void | Promise<void>;
	/** Everything kept, oldest first. */
	all(): readonly string[];
}

/** Two files of this size are kept at most. */
const FILE_BYTES_MAX = 512 * 1024;

/** With a recorder the daemon stores the notes too, so that they outlive the folder; a lasting note goes to the daemon first. */
export function openNotes(path: string, recorder?: LineRecorder, fileBytesMax = FILE_BYTES_MAX): Notes {
	const older = `${path}.1`;
	let known: { stamp: string; lines: readonly string[] } = { stamp: "", lines: [] };
	const append = (line: string, lasting: boolean) => {
		if ((sizeOf(path) ?? 0) > fileBytesMax) renameSync(path, older);
		const file = openSync(path, "a", 0o600);
		try {
			// A power cut may have left half a line: this one begins on a new line.
			writeSync(file, `\n${line}`);
			if (lasting) fdatasyncSync(file);
		} finally {
			closeSync(file);
		}
	};
	return {
		add(line) {
			recorder?.tell({ type: "note", text: line });
			append(line, false);
		},
		addLasting(line) {
			// Not every daemon's store outlives a power cut.
			const write = () => append(line, true);
			return recorder ? recorder.record({ type: "note", text: line }).then(write) : write();
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
