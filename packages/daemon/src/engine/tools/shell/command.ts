/** Runs one shell command in a separate process group. Every process it started is dead before the result is returned. */

import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { type Clock, within } from "@nexus-stream/protocol/clock";
import { sleep } from "@nexus-stream/protocol/retry";
import { watchGroup } from "../../../std/line-process.ts";

export interface CommandOptions {
	cwd: string;
	env: Readonly<Record<string, string>>;
	/** Put before the shell: `[bwrap, …]`. */
	wrapper: readonly string[];
	outputBytesMax: number;
	/** Between asking to end and killing. */
	killGraceMs: number;
	signal: AbortSignal;
	clock: Clock;
}

export interface CommandResult {
	output: string;
	/** Null when a signal ended it. */
	exitCode: number | null;
	endedBy: NodeJS.Signals | null;
	/** It was stopped before it had ended by itself. */
	stopped: boolean;
}

const SHELL = ["bash", "--noprofile", "--norc", "-c"];

/** The same as one line for a shell that is not ours: it becomes the wrapper, and reads nothing of the command itself. */
export const wrappedCommand = (wrapper: readonly string[], command: string): string =>
	`exec ${[...wrapper, ...SHELL, command].map(quoted).join(" ")}`;

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** In the environment of all that a command starts, so that what has left its group is found as well. */
const MARK = "TOOL_COMMAND_ID";

/** Rejects only when the command could not be started. */
export async function runCommand(command: string, options: CommandOptions): Promise<CommandResult> {
	const { cwd, env, wrapper, outputBytesMax, signal, clock } = options;
	const [program, ...args] = [...wrapper, ...SHELL, command];
	const mark = `${MARK}=${randomUUID()}`;
	const marked = { ...env, [MARK]: mark.slice(MARK.length + 1) };
	const child = spawn(program!, args, { cwd, env: marked, detached: true, stdio: ["ignore", "pipe", "pipe"] });
	// A daemon that ends in the middle takes it along.
	const group = watchGroup(child);
	const output = new HeadTail(outputBytesMax);
	for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => output.add(chunk));
	const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
	const exited = exitOf(child, program!);
	const disarm = endOnAbort(child, exited, options);
	try {
		const ended = await exited;
		await killAll(child.pid!, mark, clock);
		// All holders of the pipes are dead: the written output arrives at once.
		await within(clock, PIPES_MS, closed);
		return { output: output.text(), ...ended, stopped: signal.aborted };
	} finally {
		disarm();
		group.end();
		child.stdout.destroy();
		child.stderr.destroy();
	}
}

const PIPES_MS = 500;

function exitOf(child: ChildProcess, program: string): Promise<Pick<CommandResult, "exitCode" | "endedBy">> {
	return new Promise((resolve, reject) => {
		child.once("exit", (exitCode, endedBy) => resolve({ exitCode, endedBy }));
		child.once("error", (cause: NodeJS.ErrnoException) => {
			const why = cause.code === "ENOENT" ? "it was not found" : cause.message;
			reject(new Error(`${program} could not be started: ${why}`, { cause }));
		});
	});
}

/** Asks the group to end, and kills it if it does not. */
function endOnAbort(
	child: ChildProcess,
	exited: Promise<unknown>,
	{ signal, clock, killGraceMs }: CommandOptions,
): () => void {
	let cancel = () => {};
	const end = () => {
		signalGroup(child.pid, "SIGTERM");
		cancel = clock.after(killGraceMs, () => signalGroup(child.pid, "SIGKILL"), "due");
		void exited.then(cancel, cancel);
	};
	if (signal.aborted) end();
	else signal.addEventListener("abort", end, { once: true });
	return () => {
		signal.removeEventListener("abort", end);
		cancel();
	};
}

/** False when there is no such group any more. */
function signalGroup(group: number | undefined, signal: NodeJS.Signals): boolean {
	try {
		return group !== undefined && process.kill(-group, signal);
	} catch {
		return false;
	}
}

const KILL_ROUNDS_MAX = 200;
const KILL_EVERY_MS = 5;

/** Kills the processes that the shell left: a killed one takes a moment to end, and a fork bomb takes several rounds. */
async function killAll(group: number, mark: string, clock: Clock): Promise<void> {
	for (let round = 0; round < KILL_ROUNDS_MAX; round++) {
		const inGroup = signalGroup(group, "SIGKILL");
		const survivors = survivorsOf(group, mark);
		if (survivors === undefined ? !inGroup : survivors.length === 0) return;
		for (const pid of survivors ?? []) signalOne(pid);
		await sleep(clock, KILL_EVERY_MS, undefined, "due");
	}
}

function signalOne(pid: number): void {
	try {
		process.kill(pid, "SIGKILL");
	} catch {
		// It has ended by itself.
	}
}

/** Undefined where there is no /proc to ask. */
function survivorsOf(group: number, mark: string): number[] | undefined {
	const pids = processes();
	return pids?.filter((pid) => {
		const found = statOf(pid);
		return found !== undefined && !found.isGone && (found.group === group || hasMark(pid, mark));
	});
}

function processes(): number[] | undefined {
	if (process.platform !== "linux") return undefined;
	try {
		return readdirSync("/proc")
			.filter((name) => /^\d+$/.test(name))
			.map(Number)
			.filter((pid) => pid !== process.pid);
	} catch {
		return undefined;
	}
}

/** `pid (name) state ppid pgrp …`; a name may hold anything, so what counts stands behind the last bracket. */
function statOf(pid: number): { group: number; isGone: boolean } | undefined {
	try {
		const text = readFileSync(`/proc/${pid}/stat`, "utf8");
		const [state, , group] = text.slice(text.lastIndexOf(")") + 2).split(" ");
		// A zombie does nothing; its parent has to collect it.
		return { group: Number(group), isGone: state === "Z" || state === "X" };
	} catch {
		return undefined;
	}
}

function hasMark(pid: number, mark: string): boolean {
	try {
		return readFileSync(`/proc/${pid}/environ`).includes(mark);
	} catch {
		// Another user's process, or one that has ended.
		return false;
	}
}

/** The beginning and the end of an output, whatever its length: memory is bounded, and what is left out is counted. */
export class HeadTail {
	readonly #headMax: number;
	readonly #tailMax: number;
	readonly #head: Buffer[] = [];
	#headBytes = 0;
	#tail: Buffer[] = [];
	#tailBytes = 0;
	#total = 0;

	constructor(bytesMax: number) {
		this.#headMax = Math.ceil(bytesMax / 2);
		this.#tailMax = bytesMax - this.#headMax;
	}

	add(chunk: Buffer): void {
		this.#total += chunk.length;
		const fits = Math.min(chunk.length, this.#headMax - this.#headBytes);
		if (fits > 0) {
			this.#head.push(chunk.subarray(0, fits));
			this.#headBytes += fits;
		}
		if (fits === chunk.length) return;
		this.#tail.push(chunk.subarray(fits));
		this.#tailBytes += chunk.length - fits;
		// Pieces share memory with what they were cut from: copied together once there is twice as much as is kept.
		if (this.#tailBytes > 2 * this.#tailMax + TAIL_SLACK) this.#cutTail();
	}

	#cutTail(): void {
		const all = Buffer.concat(this.#tail);
		this.#tail = [Buffer.from(all.subarray(Math.max(0, all.length - this.#tailMax)))];
		this.#tailBytes = this.#tail[0]!.length;
	}

	text(): string {
		this.#cutTail();
		const head = Buffer.concat(this.#head);
		const tail = this.#tail[0]!;
		if (head.includes(0) || tail.includes(0)) return `(binary output of ${this.#total} bytes, not shown)`;
		const left = this.#total - head.length - tail.length;
		if (left === 0) return Buffer.concat([head, tail]).toString("utf8");
		// As a stream, the decoder leaves out a character that was cut at the end.
		const begin = new TextDecoder("utf-8", { ignoreBOM: true }).decode(head, { stream: true });
		const end = tail.subarray(firstCharacter(tail)).toString("utf8");
		return `${begin}\n… ${left} bytes left out …\n${end}`;
	}
}

const TAIL_SLACK = 64 * 1024;

/** Where the first whole character begins. */
function firstCharacter(bytes: Buffer): number {
	let at = 0;
	while (at < 3 && (bytes[at]! & 0xc0) === 0x80) at += 1;
	return at;
}
