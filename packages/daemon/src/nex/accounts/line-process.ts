/** One adapter process: lines in with back-pressure, lines out with limits, stderr to the log, and an exit that is always reported. */

import { readFileSync } from "node:fs";
import { createLineReader, createLineWriter, type LineFault, type LineWriter } from "@nexus-stream/adapter/serve/lines";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../../bus/bus.ts";
import { type LineChild, readErrorLines, STOPPED, superviseChild } from "../../std/line-process.ts";
import type { ProcessLimits } from "../limits.ts";

export interface ProcessSpec {
	command: readonly string[];
	env: Record<string, string>;
	limits: ProcessLimits;
	clock: Clock;
	log: Log;
	/** Channel, account and verb, for the log. */
	facts: object;
	/** Nothing is written to the process while the lease has lapsed. Default: always held. */
	lease?: Bus["lease"] | undefined;
	/** The process acts by itself on lines that it read before, so it ends when the lease lapses. */
	endsWithLease?: boolean;
	/** The process is useful even when it does not read its input. */
	mayIgnoreInput?: boolean;
}

interface ProcessEvents {
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

const LAPSED = "the store has not answered this daemon for too long";

export type LineProcess = ReturnType<typeof startProcess>;

export function startProcess(spec: ProcessSpec, events: ProcessEvents) {
	const { clock, limits, log, facts } = spec;
	const supervised = superviseChild({ ...spec, ...limits }, ({ code, detail, why }) => {
		stopWatching();
		ignoreLapse();
		cancelKill();
		turns.release();
		// A process with an exit code ended by itself, even if a kill was already under way.
		const words = code === null || why === STOPPED ? (why ?? detail) : detailOf(code, detail);
		events.exited({ code, detail: words });
	});
	const { child, kill } = supervised;
	let cancelKill = () => {};
	/** Without one of its pipes the process is useless; usually it is about to end by itself. */
	const killAfterGrace = (reason: string) => {
		cancelKill();
		if (!supervised.isGone) cancelKill = clock.after(limits.endGraceMs, () => kill(reason));
	};
	const writer = createLineWriter(child.stdin, (cause) => {
		log.debug({ ...facts, error: cause.message }, "the adapter no longer reads");
		if (!spec.mayIgnoreInput) killAfterGrace("it closed its input");
	});
	const turns = turnstile(writer, () =>
		clock.after(limits.unreadMs, () => kill(`read nothing for ${limits.unreadMs} ms`)),
	);
	const ignoreLapse = (spec.endsWithLease && spec.lease?.onLapse(() => kill(LAPSED))) || (() => {});
	const stopWatching = watchMemory(child.pid, spec, kill);
	readLines(child, spec, events);
	child.stdout.on("end", () => killAfterGrace("it closed its output"));
	readErrorLines(child.stderr, clock, {
		charsMax: limits.stderrCharsMax,
		linesPerSecondMax: limits.stderrLinesPerSecondMax,
		line: (text) => logLine(text, log, facts),
		omitted: (lines) => log.warn({ ...facts, lines }, "lines of the adapter's stderr were not logged"),
	});
	child.stderr.on("error", (cause) => log.warn({ ...facts, error: cause.message }, "the adapter's stderr broke"));

	/** Ends its input after the lines written so far. */
	const endInput = () => void writer.flushed().then(() => child.stdin.end());

	return {
		pid: child.pid,
		/** Writes a value, or the JSON of one. `begun` is called when the process may have read the line, and never if it certainly has not. */
		write(line: object | string, begun?: () => void): void {
			// Another daemon may act on the same chats by now: its process must not be followed by lines of this one (I7).
			if (spec.lease?.isHeld === false) kill(LAPSED);
			// Not after the process has ended, which destroys its pipes.
			else if (child.stdin.writable) writer.write(line, begun);
		},
		/** Resolves when the pipe has room for another write; callers are served one at a time. */
		turn: turns.turn,
		/** Stops reading its output until `resume`: its pipe fills and the process waits. */
		pause: () => void child.stdout.pause(),
		resume: () => void child.stdout.resume(),
		end: endInput,
		/** Ends its input, then sends SIGTERM, then SIGKILL. Resolves when the process has ended. */
		stop: () => supervised.stop(endInput),
		kill,
	};
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

const detailOf = (code: number, detail: string): string =>
	MEANINGS[code] === undefined ? detail : `${detail}: ${MEANINGS[code]}`;

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

function readLines(child: LineChild, { limits }: ProcessSpec, events: ProcessEvents): void {
	const reader = createLineReader({ lineBytesMax: limits.lineBytesMax, onFault: events.garbage });
	const pass = (values: object[]) => {
		if (values.length > 0) events.lines(values);
	};
	child.stdout.on("data", (chunk: Buffer) => pass(reader.push(chunk)));
	child.stdout.on("end", () => pass(reader.end()));
	child.stdout.on("error", (cause) => events.garbage({ reason: cause.message, excerpt: "" }));
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
