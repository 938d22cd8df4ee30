/** One adapter process: lines in with back-pressure, lines out with limits, stderr to the log, and an exit that is always reported. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { createLineReader, createLineWriter, type LineFault, type LineWriter } from "@nexus-stream/adapter/host";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { OWN_GROUP, watchGroup } from "../../std/process-group.ts";
import type { ProcessLimits } from "../limits.ts";

export interface ProcessSpec {
	command: readonly string[];
	env: Record<string, string>;
	limits: ProcessLimits;
	clock: Clock;
	log: Log;
	/** Channel, account and verb, for the log. */
	facts: object;
	/** The process is useful even when it does not read its input. */
	mayIgnoreInput?: boolean;
}

export interface ProcessEvents {
	/** The objects of one chunk of output, in order. */
	lines(values: object[]): void;
	garbage(fault: LineFault): void;
	/** Called once, as the last event. */
	exited(exit: Exit): void;
}

export interface Exit {
	code: number | null;
	/** How it ended, in words. */
	detail: string;
}

export interface LineProcess {
	readonly pid: number | undefined;
	/** Writes a value, or the JSON of one. `begun` is called when the process may have read the line, and never if it certainly has not. */
	write(line: object | string, begun?: () => void): void;
	/** Resolves when the pipe has room for another write; callers are served one at a time. */
	turn(): Promise<void>;
	/** Stops reading its output until `resume`: its pipe fills and the process waits. */
	pause(): void;
	resume(): void;
	/** Ends its input after the lines written so far. */
	end(): void;
	/** Ends its input, then sends SIGTERM, then SIGKILL. Resolves when the process has ended. */
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
		// A process with an exit code ended by itself, even if a kill was already under way.
		events.exited({ code, detail: code === null || why === STOPPED ? (why ?? detail) : detail });
		ended();
	};
	const kill = (reason: string) => {
		why ??= reason;
		if (!gone) group.signal("SIGKILL");
	};
	let cancelKill = () => {};
	/** Without one of its pipes the process is useless; usually it is about to end by itself. */
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
	watchExit(child, spec, group, exit);

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

/** Reports the exit when the pipes are closed, or after a grace period: processes that this one started may keep its pipes open. */
function watchExit(
	child: Child,
	{ command, clock, limits }: ProcessSpec,
	group: ReturnType<typeof watchGroup>,
	exit: (code: number | null, detail: string) => void,
): void {
	child.on("error", (cause) => exit(null, `${command[0] ?? ""}: ${cause.message}`));
	child.on("exit", (code, signal) => {
		child.stdin.destroy();
		group.signal("SIGTERM");
		clock.after(limits.endGraceMs, () => exit(code, endOf(code, signal)));
	});
	child.on("close", (code, signal) => exit(code, endOf(code, signal)));
}

/** The exit codes of the adapter protocol, in words. */
const MEANINGS: Readonly<Record<number, string>> = {
	2: "it does not know its arguments",
	3: "the platform refuses the credentials",
	4: "the account's target does not exist",
	6: "the platform limited the account's rate",
	7: "the platform cannot be reached",
	78: "the account's settings are incomplete or wrong",
};

function endOf(code: number | null, signal: NodeJS.Signals | null): string {
	if (signal) return `ended by ${signal}`;
	const meaning = MEANINGS[code ?? 0];
	return `ended with code ${code}${meaning === undefined ? "" : `: ${meaning}`}`;
}

/** Lets writers that found the pipe full continue one at a time, so that its buffer never holds more than one of their chunks. `watch` limits each wait. */
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
		/** Ends all waits: the pipe of a process that has ended never drains. */
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

/** Copies stderr to the log. Long lines are cut; of a flood only the number of lines is logged. */
function logErrors(child: Child, { limits, clock, log, facts }: ProcessSpec): void {
	let rest = "";
	let second = 0;
	let lines = 0;
	let omitted = 0;
	const reset = () => {
		if (omitted > 0) log.warn({ ...facts, lines: omitted }, "lines of the adapter's stderr were not logged");
		lines = 0;
		omitted = 0;
	};
	const add = (line: string) => {
		const now = Math.floor(clock.now() / 1000);
		if (now !== second) {
			reset();
			second = now;
		}
		if (line.trim() === "") return;
		if (++lines > limits.stderrLinesPerSecondMax) omitted++;
		else logLine(line.slice(0, limits.stderrCharsMax), log, facts);
	};
	child.stderr.setEncoding("utf8");
	child.stderr.on("data", (text: string) => {
		const found = (rest + text).split("\n");
		rest = found.pop()!.slice(0, limits.stderrCharsMax);
		for (const line of found) add(line);
	});
	child.stderr.on("end", () => {
		add(rest);
		reset();
	});
	child.stderr.on("error", (cause) => log.warn({ ...facts, error: cause.message }, "the adapter's stderr broke"));
}

const LEVELS = ["debug", "info", "warn", "error"] as const;

/** A JSON line keeps its level and message; any other line is logged verbatim. */
function logLine(line: string, log: Log, facts: object): void {
	const { level, msg, time: _, ...fields } = parsed(line);
	const levelName = LEVELS.find((name) => name === level);
	if (levelName === undefined || typeof msg !== "string") log.info({ ...facts, stderr: line }, "adapter");
	else log[levelName]({ ...fields, ...facts }, `adapter: ${msg}`);
}

function parsed(line: string): Record<string, unknown> {
	try {
		return Object(JSON.parse(line)) as Record<string, unknown>;
	} catch {
		return {};
	}
}

/** Kills a process that uses too much memory. Does nothing where there is no /proc. */
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
		// The process has ended, or the system is not Linux.
		return undefined;
	}
}
