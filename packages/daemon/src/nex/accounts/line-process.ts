/** One adapter process: lines in with back-pressure, lines out with limits, stderr to the log, and an end that always comes. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { createLineReader, createLineWriter, type LineFault, type LineWriter } from "@nexus-stream/adapter/host";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { OWN_GROUP, watchGroup } from "../../std/process-group.ts";

export interface ProcessLimits {
	/** Longest line on stdout. */
	lineBytesMax: number;
	/** Resident memory; a process above it is killed (Linux). */
	memoryBytesMax: number;
	memoryCheckMs: number;
	/** Longest line of stderr that is logged, and how many a second. */
	stderrCharsMax: number;
	stderrLinesPerSecondMax: number;
	/** From the end of its input to SIGTERM, and from there to SIGKILL. Also how long it may live without its input or output. */
	endGraceMs: number;
	termGraceMs: number;
	/** Longest time that it may read nothing while its pipe is full. */
	unreadMs: number;
	/** A process that says more lines that are none of the protocol is ended. */
	garbageLinesPerMinuteMax: number;
}

export const PROCESS_LIMITS: ProcessLimits = {
	lineBytesMax: 4 * 1024 * 1024,
	memoryBytesMax: 1024 * 1024 * 1024,
	memoryCheckMs: 5000,
	stderrCharsMax: 2000,
	stderrLinesPerSecondMax: 50,
	endGraceMs: 5000,
	termGraceMs: 2000,
	unreadMs: 600_000,
	garbageLinesPerMinuteMax: 1000,
};

export interface ProcessSpec {
	command: readonly string[];
	env: Record<string, string>;
	limits: ProcessLimits;
	clock: Clock;
	/** Named with channel, account and verb. */
	log: Log;
	facts: object;
	/** It is of use even when it does not read. */
	mayIgnoreInput?: boolean;
}

export interface ProcessEvents {
	/** The objects of one piece of output, in order. */
	lines(values: object[]): void;
	garbage(fault: LineFault): void;
	/** Once; nothing comes after it. */
	exited(exit: Exit): void;
}

export interface Exit {
	code: number | null;
	/** For a person: how it ended. */
	detail: string;
}

export interface LineProcess {
	readonly pid: number | undefined;
	/** A value, or the JSON of one. `begun` is called when the process may have read the line; never, when it certainly has not. */
	write(line: object | string, begun?: () => void): void;
	/** Resolves when there is room for another write, one caller after another. */
	turn(): Promise<void>;
	/** No more lines come from it until `resume`: its pipe fills and it waits. */
	pause(): void;
	resume(): void;
	/** End of input: nothing more is written. */
	end(): void;
	/** End of input, then SIGTERM, then SIGKILL. Resolves when it is gone. */
	stop(): Promise<void>;
	kill(why: string): void;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

export function startProcess(spec: ProcessSpec, events: ProcessEvents): LineProcess {
	const { clock, limits } = spec;
	const [file = "", ...args] = spec.command;
	const child: Child = spawn(file, args, { env: spec.env, stdio: ["pipe", "pipe", "pipe"], ...OWN_GROUP });
	const group = watchGroup(child);
	const writer = createLineWriter(child.stdin, (cause) => {
		spec.log.debug({ ...spec.facts, error: cause.message }, "the adapter no longer reads");
		if (!spec.mayIgnoreInput) killAfterGrace("it closed its input");
	});
	let why: string | undefined;
	let gone = false;
	const { promise: end, resolve: ended } = Promise.withResolvers<void>();

	const exit = (code: number | null, detail: string) => {
		if (gone) return;
		gone = true;
		stopWatching();
		cancelKill();
		turns.release();
		group.end();
		for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy();
		// What has an exit code had ended by itself, also when it was given up meanwhile.
		events.exited({ code, detail: code === null || why === STOPPED ? (why ?? detail) : detail });
		ended();
	};
	const kill = (reason: string) => {
		why ??= reason;
		if (!gone) group.signal("SIGKILL");
	};
	let cancelKill = () => {};
	/** Without one of its pipes it is of no use; mostly it is about to end by itself. */
	const killAfterGrace = (reason: string) => {
		cancelKill();
		if (!gone) cancelKill = clock.after(limits.endGraceMs, () => kill(reason));
	};
	const turns = turnstile(writer, () =>
		clock.after(limits.unreadMs, () => kill(`read nothing for ${limits.unreadMs} ms`)),
	);
	const stopWatching = watchMemory(child.pid, spec, kill);
	readLines(child, spec, events);
	logErrors(child, spec);
	child.stdout.on("end", () => killAfterGrace("it closed its output"));
	child.on("error", (cause) => exit(null, `${file}: ${cause.message}`));
	child.on("exit", (code, signal) => {
		// Processes that it started and left behind may have its pipes: they hear that it is over, and do not keep the dead one alive.
		child.stdin.destroy();
		group.signal("SIGTERM");
		clock.after(limits.endGraceMs, () => exit(code, endOf(code, signal)));
	});
	child.on("close", (code, signal) => exit(code, endOf(code, signal)));

	const endInput = () => void writer.flushed().then(() => child.stdin.end());

	return {
		pid: child.pid,
		write: (line, begun) => {
			if (!gone && child.stdin.writable) writer.write(line, begun);
		},
		turn: turns.turn,
		pause: () => void child.stdout.pause(),
		resume: () => void child.stdout.resume(),
		end: endInput,
		async stop() {
			if (gone) return;
			why ??= STOPPED;
			endInput();
			const term = clock.after(limits.endGraceMs, () => group.signal("SIGTERM"));
			const last = clock.after(limits.endGraceMs + limits.termGraceMs, () => kill("stopped by force"));
			await end;
			term();
			last();
		},
		kill,
	};
}

const STOPPED = "stopped";

/** The exit codes of the protocol, for a person. */
const MEANINGS: Readonly<Record<number, string>> = {
	2: "it does not know its arguments",
	3: "the platform refuses the credentials",
	4: "what the account writes to is not there",
	6: "the platform slowed the account down",
	7: "the platform cannot be reached",
	78: "the account's settings are incomplete or wrong",
};

function endOf(code: number | null, signal: NodeJS.Signals | null): string {
	if (signal) return `ended by ${signal}`;
	const meaning = MEANINGS[code ?? 0];
	return `ended with code ${code}${meaning === undefined ? "" : `: ${meaning}`}`;
}

/** Writers that found the pipe full go on one at a time, so that its buffer never holds more than one of their pieces. `watch` limits each wait. */
function turnstile(writer: LineWriter, watch: () => () => void): { turn(): Promise<void>; release(): void } {
	const waiting: (() => void)[] = [];
	let serving = false;
	let released = false;
	let cancelWatch = () => {};
	const serve = async () => {
		serving = true;
		while (waiting.length > 0) {
			if (writer.full) cancelWatch = watch();
			await writer.drained();
			cancelWatch();
			waiting.shift()?.();
			await new Promise((resolve) => setImmediate(resolve));
		}
		serving = false;
	};
	return {
		turn() {
			if (released || (!writer.full && waiting.length === 0)) return Promise.resolve();
			return new Promise((resolve) => {
				waiting.push(resolve);
				if (!serving) void serve();
			});
		},
		/** The process is gone: a destroyed pipe never drains. */
		release() {
			released = true;
			cancelWatch();
			for (const resolve of waiting.splice(0)) resolve();
		},
	};
}

function readLines(child: Child, { limits }: ProcessSpec, events: ProcessEvents): void {
	const reader = createLineReader({ lineBytesMax: limits.lineBytesMax, onFault: events.garbage });
	const pass = (values: object[]) => {
		if (values.length > 0) events.lines(values);
	};
	child.stdout.on("data", (chunk: Buffer) => pass(reader.push(chunk)));
	child.stdout.on("end", () => pass(reader.end()));
	child.stdout.on("error", (cause) => events.garbage({ reason: cause.message, excerpt: "" }));
}

/** Lines are cut, and a flood is counted instead of copied. */
function logErrors(child: Child, { limits, clock, log, facts }: ProcessSpec): void {
	let rest = "";
	let second = 0;
	let lines = 0;
	let left = 0;
	const count = () => {
		if (left > 0) log.warn({ ...facts, lines: left }, "lines of the adapter's stderr were left out");
		lines = 0;
		left = 0;
	};
	const say = (line: string) => {
		const now = Math.floor(clock.now() / 1000);
		if (now !== second) {
			count();
			second = now;
		}
		if (line.trim() === "") return;
		if (++lines > limits.stderrLinesPerSecondMax) left++;
		else passOn(line.slice(0, limits.stderrCharsMax), log, facts);
	};
	child.stderr.setEncoding("utf8");
	child.stderr.on("data", (text: string) => {
		const found = (rest + text).split("\n");
		rest = found.pop()!.slice(0, limits.stderrCharsMax);
		for (const line of found) say(line);
	});
	child.stderr.on("end", () => {
		say(rest);
		count();
	});
	child.stderr.on("error", (cause) => log.warn({ ...facts, error: cause.message }, "the adapter's stderr broke"));
}

const LEVELS = ["debug", "info", "warn", "error"] as const;

/** A JSON line with a level and words keeps both; anything else is logged as it is. */
function passOn(line: string, log: Log, facts: object): void {
	const { level, msg, time: _, ...own } = parsed(line);
	const known = LEVELS.find((name) => name === level);
	if (known === undefined || typeof msg !== "string") log.info({ ...facts, stderr: line }, "adapter");
	else log[known]({ ...own, ...facts }, `adapter: ${msg}`);
}

function parsed(line: string): Record<string, unknown> {
	try {
		return Object(JSON.parse(line)) as Record<string, unknown>;
	} catch {
		return {};
	}
}

/** Nothing happens where there is no /proc. */
function watchMemory(pid: number | undefined, { limits, clock }: ProcessSpec, kill: (why: string) => void): () => void {
	let cancel = () => {};
	const check = () => {
		const bytes = pid === undefined ? undefined : residentBytes(pid);
		if (bytes === undefined) return;
		if (bytes <= limits.memoryBytesMax) cancel = clock.after(limits.memoryCheckMs, check);
		else kill(`used ${Math.round(bytes / 2 ** 20)} MiB of memory, more than memoryBytesMax allows`);
	};
	cancel = clock.after(limits.memoryCheckMs, check);
	return () => cancel();
}

function residentBytes(pid: number): number | undefined {
	try {
		const found = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
		return found ? Number(found[1]) * 1024 : undefined;
	} catch {
		// The process is gone, or this is no Linux.
		return undefined;
	}
}
