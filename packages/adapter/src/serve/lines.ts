/** JSON lines in and out: split on LF only, limited in length, whole characters over chunk borders; garbage is reported and skipped. */

import type { Writable } from "node:stream";
import { wordsOf } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";

export const LINE_BYTES_MAX = 4 * 1024 * 1024;

const LF = 0x0a;

/** A line that is not a JSON object, or is too long. The lines after it are still read. */
export interface LineFault {
	reason: string;
	/** How the line begins, for a log. */
	excerpt: string;
	isTooLong?: true;
}

export interface LineReader {
	/** The objects that this chunk completes. */
	push(chunk: Buffer): object[];
	/** The object of a last line without LF, if there is one. */
	end(): object[];
}

export interface LineReaderOptions {
	lineBytesMax?: number;
	onFault(fault: LineFault): void;
}

const EXCERPT_CHARS = 120;

export function createLineReader({ lineBytesMax = LINE_BYTES_MAX, onFault }: LineReaderOptions): LineReader {
	let pending: Buffer[] = [];
	let pendingBytes = 0;
	let skipping = false;

	const tooLong = (start: Buffer) => {
		const excerpt = start.subarray(0, EXCERPT_CHARS).toString("utf8");
		onFault({ reason: `a line is longer than ${lineBytesMax} bytes; it was skipped`, excerpt, isTooLong: true });
	};

	function parse(lines: string, found: object[]): void {
		for (const line of lines.split("\n")) {
			const value = parseLine(line, onFault);
			if (value) found.push(value);
		}
	}

	/** Takes in what comes before the first LF of a chunk that continues a line. */
	function close(rest: Buffer, found: object[]): void {
		if (skipping) skipping = false;
		else if (pendingBytes + rest.length > lineBytesMax) tooLong(pending[0] ?? rest);
		else parse(Buffer.concat([...pending, rest]).toString("utf8"), found);
		pending = [];
		pendingBytes = 0;
	}

	function keep(rest: Buffer): void {
		if (skipping || rest.length === 0) return;
		pending.push(rest);
		pendingBytes += rest.length;
		if (pendingBytes <= lineBytesMax) return;
		tooLong(pending[0] ?? rest);
		pending = [];
		pendingBytes = 0;
		skipping = true;
	}

	return {
		push(chunk) {
			const found: object[] = [];
			const first = chunk.indexOf(LF);
			if (first < 0) {
				keep(chunk);
				return found;
			}
			const last = chunk.lastIndexOf(LF);
			close(chunk.subarray(0, first), found);
			// Everything between the first and the last LF is whole lines: one decoding for all of them.
			if (last > first) {
				const middle = chunk.subarray(first + 1, last);
				if (middle.length <= lineBytesMax) parse(middle.toString("utf8"), found);
				else for (const line of splitBytes(middle)) close(line, found);
			}
			keep(chunk.subarray(last + 1));
			return found;
		},
		end() {
			const found: object[] = [];
			if (pendingBytes > 0) close(Buffer.alloc(0), found);
			return found;
		},
	};
}

function* splitBytes(bytes: Buffer): Generator<Buffer> {
	let start = 0;
	for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, start)) {
		yield bytes.subarray(start, at);
		start = at + 1;
	}
	yield bytes.subarray(start);
}

function parseLine(line: string, onFault: (fault: LineFault) => void): object | undefined {
	if (line.trim() === "") return undefined;
	const excerpt = line.slice(0, EXCERPT_CHARS);
	try {
		const value: unknown = JSON.parse(line);
		if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
		onFault({ reason: "a line is not a JSON object", excerpt });
	} catch (cause) {
		onFault({ reason: `a line is not JSON: ${wordsOf(cause)}`, excerpt });
	}
	return undefined;
}

/** Standard input as objects, from `start` on; ended by its end, by SIGTERM, or by Ctrl-C at a terminal. */
export function readInput(
	log: Log,
	lineBytesMax: number,
): { start(take: (line: object) => void): void; ended: Promise<void> } {
	const reader = createLineReader({ lineBytesMax, onFault: (fault) => log.warn(fault, "skipped a line of the input") });
	const { promise: ended, resolve: finish } = Promise.withResolvers<void>();
	process.once("SIGTERM", () => finish());
	// Ctrl-C reaches the whole process group; the daemon closes our input when it is ready to stop.
	process.on("SIGINT", () => process.stdin.isTTY && finish());
	return {
		ended,
		start(take) {
			const takeAll = (lines: object[]) => {
				for (const line of lines) takeOne(line, take, log);
			};
			process.stdin.on("data", (chunk: Buffer) => takeAll(reader.push(chunk)));
			process.stdin.on("end", () => {
				takeAll(reader.end());
				finish();
			});
			process.stdin.on("error", (cause) => {
				log.error({ error: cause.message }, "the input failed");
				finish();
			});
		},
	};
}

/** Reports a line with wrong fields like any other invalid line. */
function takeOne(line: object, take: (line: object) => void, log: Log): void {
	try {
		take(line);
	} catch (cause) {
		log.warn({ reason: String(cause), excerpt: JSON.stringify(line).slice(0, 120) }, "skipped a line of the input");
	}
}

export interface LineWriter {
	/** A value, or the JSON of one. `begun` is called when the line may have reached the other side; never, when it certainly has not. */
	write(line: object | string, begun?: () => void): void;
	/** The other side reads slower than we write: hold back what is not yet begun. */
	readonly full: boolean;
	/** Resolves at once unless full. */
	drained(): Promise<void>;
	/** Resolves when everything is handed to the operating system. */
	flushed(): Promise<void>;
}

/** So much may wait for the operating system before the writer is full: the next lines are made while the other side reads these. */
const IN_FLIGHT_CHARS_MAX = 128 * 1024;

/** Lines of one tick leave in one write. `onBroken` is called once when the output is closed. */
export function createLineWriter(output: Writable, onBroken: (cause: Error) => void): LineWriter {
	let buffer = "";
	let inFlight = 0;
	let broken = false;
	const waiting: (() => void)[] = [];
	/** Callbacks of lines that may reach the reader: lines not written yet, and lines behind a full pipe. */
	let unwritten: (() => void)[] = [];
	let behind: (() => void)[] = [];
	const isFull = () => !broken && inFlight >= IN_FLIGHT_CHARS_MAX;
	const release = () => {
		if (!isFull()) for (const resolve of waiting.splice(0)) resolve();
	};
	output.on("error", (cause) => {
		if (broken) return;
		broken = true;
		release();
		onBroken(cause);
	});
	const push = () => {
		const text = buffer;
		buffer = "";
		if (text === "" || broken) return;
		const callbacks = unwritten;
		unwritten = [];
		const first = inFlight === 0;
		inFlight += text.length;
		output.write(text, (error) => {
			inFlight -= text.length;
			// The lines behind this piece are written now, all at once.
			if (!error) for (const begun of behind.splice(0)) begun();
			release();
		});
		if (first) for (const begun of callbacks) begun();
		else behind = [...behind, ...callbacks];
	};
	return {
		write(line, begun) {
			if (begun) unwritten.push(begun);
			if (buffer === "") queueMicrotask(push);
			buffer += typeof line === "string" ? `${line}\n` : `${JSON.stringify(line)}\n`;
		},
		get full() {
			return isFull();
		},
		drained: () => (isFull() ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve()),
		flushed: () =>
			new Promise((resolve) => {
				push();
				if (broken) resolve();
				else output.write("", () => resolve());
			}),
	};
}
