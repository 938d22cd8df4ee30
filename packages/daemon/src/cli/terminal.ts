/** The output of a command: answers on stdout, everything about them on stderr, plain unless a person looks. */

import { randomUUID } from "node:crypto";
import type { LinkState } from "@nexus-stream/client";
import { exitCodeOf, NexusError, toNexusError } from "@nexus-stream/protocol";
import { clipCharacters, printable, printableJson } from "../std/clip.ts";
import type { Host, OutputStream } from "./host.ts";

export interface Terminal {
	/** The answer. What could steer a terminal is left out, as in `note`: whatever comes from outside passes here. */
	out(text: string): void;
	/** A value, or the JSON of one, as one line. */
	json(value: object | string): void;
	/** Makes the answer so far end with this many line feeds: 1 = a fresh line, 2 = an empty line between. */
	feed(lines: 1 | 2): void;
	/** About the answer; begins on a fresh line. */
	note(line: string): void;
	/** About the answer; a person sees it in the place of the status before. */
	status(line: string): void;
	dim(text: string): string;
	bold(text: string): string;
	paint(colour: Colour, text: string): string;
	readonly columns: number;
	/** A person reads stdout. */
	readonly interactive: boolean;
}

export type Colour = "red" | "green" | "yellow";

const CODE: Record<Colour, number> = { red: 31, green: 32, yellow: 33 };

export function createTerminal(stdout: OutputStream, stderr: OutputStream, env: Host["env"]): Terminal {
	// https://no-color.org: any value but the empty one counts.
	const colour = stdout.isTTY && stderr.isTTY && !env.NO_COLOR && env.TERM !== "dumb";
	/** Stands for our own escape sequences until all others are gone; a secret, so that text from outside cannot contain it. */
	const mark = randomUUID();
	const marks = new RegExp(`${mark}(\\d+);`, "g");
	const wrap = (open: number, close: number, text: string) =>
		colour ? `${mark}${open};${text}${mark}${close};` : text;
	const shown = (text: string) => printable(text).replace(marks, "\x1b[$1m");
	/** The line feeds at the end of what stands on stdout; as if there were two before the first word. */
	let feeds = 2;
	/** The cursor stands behind a status. */
	let isStatus = false;
	const endStatus = () => {
		if (isStatus) stderr.write("\n");
		isStatus = false;
	};
	const out = (given: string) => {
		const text = shown(given);
		if (text === "") return;
		endStatus();
		stdout.write(text);
		const ending = /\n*$/.exec(text)![0].length;
		feeds = Math.min(2, ending === text.length ? feeds + ending : ending);
	};
	const feed = (lines: number) => out("\n".repeat(Math.max(0, lines - feeds)));
	const note = (line: string) => {
		const shared = stdout.isTTY && stderr.isTTY;
		endStatus();
		if (shared) feed(1);
		stderr.write(`${shown(line)}\n`);
		if (shared) feeds = 1;
	};
	return {
		out,
		json: (value) => out(`${printableJson(typeof value === "string" ? value : JSON.stringify(value))}\n`),
		feed,
		note,
		status(line) {
			if (!stderr.isTTY || env.TERM === "dumb") return note(line);
			if (!isStatus && stdout.isTTY) feed(1);
			// To the beginning of the line, and everything in it away.
			stderr.write(`\r\x1b[2K${shown(line)}`);
			isStatus = true;
		},
		dim: (text) => wrap(2, 22, text),
		bold: (text) => wrap(1, 22, text),
		paint: (name, text) => wrap(CODE[name], 39, text),
		// A terminal without a size says 0.
		columns: stdout.columns || 120,
		interactive: stdout.isTTY === true,
	};
}

/** `nexus send … | head` closes the pipe early: that is a normal way to stop reading, not a failure. */
export function endOnClosedPipe(host: Host): void {
	for (const stream of [host.stdout, host.stderr])
		stream.on("error", (cause: NodeJS.ErrnoException) => {
			// The terminal was closed: the output has no reader, and the signal ends the command.
			if (cause.code === "EIO") return;
			if (cause.code !== "EPIPE") throw cause;
			host.exit(0);
		});
}

/** An error with what to do about it. */
export class Hinted extends NexusError {
	readonly hint: string;

	constructor(cause: NexusError, hint: string) {
		super(cause.code, cause.message, { cause });
		this.hint = hint;
	}
}

/** The last words of a command: a line for each mistake, a hint when there is one, and the exit code of the table. */
export function reportFailure(cause: unknown, terminal: Terminal, env: Host["env"]): number {
	const error = toNexusError(cause);
	for (const line of error.message.split("\n")) terminal.note(`nexus: ${line}`);
	if (error instanceof Hinted) terminal.note(`  hint: ${error.hint}`);
	if (error.code === "internal" && env.NEXUS_DEBUG && error.stack) terminal.note(error.stack);
	return exitCodeOf(error.code);
}

/** The one answer of a command: a line, or with `json` the value itself. */
export const tell = (terminal: Terminal, json: boolean | undefined, value: object, line: string): void =>
	json ? terminal.json(value) : terminal.out(`${line}\n`);

/** Notes that the command reconnects after a lost connection. */
export const noteDrop = (terminal: Terminal) => (because: string) =>
	terminal.note(terminal.dim(`reconnecting (${because})`));

/** The same of a stream: once per drop, before the first try to come back. */
export const noteDrops =
	(terminal: Terminal) =>
	({ phase, attempt, error }: LinkState): void => {
		if (phase === "waiting" && attempt === 1) noteDrop(terminal)(error?.message ?? "the connection was cut");
	};

/** Text from a model or a stranger, safe to show on one line: no control characters, no line breaks. */
export function oneLine(text: string, width: number): string {
	return clipCharacters(printable(text.replace(/\s+/gu, " ")).trim(), width);
}
