/** Lines that an account has to remember, in a file that its processes share, and with the daemon. */

import { randomBytes } from "node:crypto";
import { closeSync, fdatasyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from "node:fs";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { KeepLine, NotedLine } from "../port.ts";

export interface Notes {
	add(line: string): void;
	/** It outlives a power cut, too: at once, or when the promise resolves. */
	addLasting(line: string): void | Promise<void>;
	/** Everything kept, oldest first. */
	all(): readonly string[];
}

/** Two files of this size are kept at most. */
const FILE_BYTES_MAX = 512 * 1024;

/**
 * A line is completely in the file when `add` returns, so it outlives a kill; the file is only appended to, so the processes do not overwrite each
 * other. With a recorder the daemon stores the notes too, so that they outlive the folder; a lasting note goes to the daemon first.
 */
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

const linesOf = (path: string): string[] => (readIfAny(path) ?? "").split("\n").filter((line) => line !== "");

/** Returns undefined when the file does not exist. */
export function readIfAny(path: string): string | undefined {
	try {
		return readFileSync(path, "utf8");
	} catch (cause) {
		if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return undefined;
		throw cause;
	}
}

type Unnamed<Line> = Line extends { id: string } ? Omit<Line, "id"> : never;

/** Asks the daemon to store a line for the account; the line counts once the daemon has confirmed it (ST26). */
export interface LineRecorder {
	/** Resolves once it is on record. Rejects when no answer came in time, or none will come. */
	record(what: Unnamed<KeepLine>): Promise<void>;
	/** Without waiting for the confirmation. */
	tell(what: Unnamed<KeepLine>): void;
	/** Takes a confirmation; false: the line is something else. */
	accept(line: object): boolean;
	/** No more answers will come. */
	end(): void;
}

/** `answerMs`: the longest wait for an answer, less than a platform call may take, of which it is a part. */
export function createRecorder(say: (line: KeepLine) => void, clock: Clock, answerMs: number): LineRecorder {
	const name = randomBytes(6).toString("base64url");
	const waiting = new Map<string, (failure?: Error) => void>();
	let said = 0;
	let ended = false;
	const tell = (what: Unnamed<KeepLine>): string => {
		const id = `${name}-${++said}`;
		say({ ...what, id } as KeepLine);
		return id;
	};
	return {
		tell: (what) => void tell(what),
		async record(what) {
			if (ended) {
				// The daemon still reads. A state is worth saying; a note would tell of a call that never leaves.
				if (what.type === "state") tell(what);
				throw new Error("The daemon answers no more.");
			}
			const id = tell(what);
			const { promise, resolve, reject } = Promise.withResolvers<void>();
			const late = () => settle(new Error(`The daemon did not put it on record within ${answerMs} ms.`));
			const cancel = clock.after(answerMs, late);
			const settle = (failure?: Error) => {
				cancel();
				waiting.delete(id);
				if (failure) reject(failure);
				else resolve();
			};
			waiting.set(id, settle);
			await promise;
		},
		accept(line) {
			const { type, id } = line as Partial<NotedLine>;
			if (type !== "noted") return false;
			waiting.get(id ?? "")?.();
			return true;
		},
		end() {
			ended = true;
			for (const settle of [...waiting.values()]) settle(new Error("The daemon answers no more."));
		},
	};
}
