/** A child process with all that it starts in turn: they get signals together, their end is forced in steps, and none of them outlives this process. */

import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { Clock } from "@nexus-stream/protocol/clock";

export type LineChild = ChildProcessByStdio<Writable, Readable, Readable>;

export interface LineChildSpec {
	command: readonly string[];
	/** All of it. */
	env: Record<string, string>;
	cwd?: string;
	clock: Clock;
	/** How long the process may take to end after its input has ended, and after SIGTERM. */
	endGraceMs: number;
	termGraceMs: number;
}

export interface ChildExit {
	/** Null: it was killed, or could not be started. */
	code: number | null;
	/** How it ended, in words. */
	detail: string;
	/** The reason of the first `kill` or `stop`. */
	why?: string;
}

export interface SupervisedChild {
	readonly child: LineChild;
	readonly isGone: boolean;
	kill(why: string): void;
	/** Ends its input, then sends SIGTERM, then SIGKILL. Resolves when the process has ended. */
	stop(endInput?: () => void): Promise<void>;
}

/** The reason of a `stop`. */
export const STOPPED = "stopped";

/** `exited` is called once, after the last output, or after a grace period: processes that this one started may keep its pipes open. */
export function superviseChild(spec: LineChildSpec, exited: (exit: ChildExit) => void): SupervisedChild {
	const { env, cwd, clock, endGraceMs, termGraceMs } = spec;
	const [file = "", ...args] = spec.command;
	const child: LineChild = spawn(file, args, { env, cwd, stdio: ["pipe", "pipe", "pipe"], ...OWN_GROUP });
	const group = watchGroup(child);
	const { promise: end, resolve: ended } = Promise.withResolvers<void>();
	let why: string | undefined;
	let isGone = false;
	let cancelGrace = () => {};
	const exit = (code: number | null, detail: string) => {
		if (isGone) return;
		isGone = true;
		cancelGrace();
		group.end();
		for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy();
		exited({ code, detail, why });
		ended();
	};
	child.on("error", (cause) => exit(null, `${file}: ${cause.message}`));
	child.on("exit", (code, signal) => {
		child.stdin.destroy();
		group.signal("SIGTERM");
		if (!isGone) cancelGrace = clock.after(endGraceMs, () => exit(code, endOf(code, signal)), "due");
	});
	child.on("close", (code, signal) => exit(code, endOf(code, signal)));
	const kill = (reason: string) => {
		why ??= reason;
		if (!isGone) group.signal("SIGKILL");
	};
	return {
		child,
		get isGone() {
			return isGone;
		},
		kill,
		async stop(endInput = () => void child.stdin.end()) {
			if (isGone) return;
			why ??= STOPPED;
			endInput();
			const term = clock.after(endGraceMs, () => group.signal("SIGTERM"), "due");
			const last = clock.after(endGraceMs + termGraceMs, () => kill(STOPPED), "due");
			await end;
			term();
			last();
		},
	};
}

const endOf = (code: number | null, signal: NodeJS.Signals | null): string =>
	signal ? `ended by ${signal}` : `ended with code ${code}`;

export interface ErrorLineReader {
	charsMax: number;
	linesPerSecondMax: number;
	line(text: string): void;
	/** Called with the number of lines that a flood had above the limit. */
	omitted?(lines: number): void;
}

/** Passes on the lines of stderr. Long ones are cut. */
export function readErrorLines(
	stderr: Readable,
	clock: Clock,
	{ charsMax, linesPerSecondMax, line, omitted = () => {} }: ErrorLineReader,
): void {
	let rest = "";
	let second = 0;
	let count = 0;
	const report = () => {
		if (count > linesPerSecondMax) omitted(count - linesPerSecondMax);
		count = 0;
	};
	const add = (text: string) => {
		const now = Math.floor(clock.now() / 1000);
		if (now !== second) report();
		second = now;
		if (text.trim() !== "" && ++count <= linesPerSecondMax) line(text.slice(0, charsMax));
	};
	stderr.setEncoding("utf8");
	stderr.on("data", (text: string) => {
		const lines = (rest + text).split("\n");
		rest = lines.pop()!.slice(0, charsMax);
		for (const each of lines) add(each);
	});
	stderr.on("end", () => {
		add(rest);
		report();
	});
	// The exit tells.
	stderr.on("error", () => {});
}

/**
 * For `spawn`: the child leads its own group. A terminal's Ctrl-C does not reach it then, so its parent has to end it. There
 * are no groups on Windows, where only the child itself gets the signals.
 */
export const OWN_GROUP = { detached: process.platform !== "win32" } as const;

const leaders = new Set<number>();

/** Kills the groups that are left when this process ends by a second Ctrl-C or an error. */
const endAll = () => {
	for (const pid of leaders) signalGroup(pid, "SIGKILL");
};

/** Returns how to signal the group, and what to call once nothing of it is of interest any more: what is left of it is killed. */
export function watchGroup(child: ChildProcess): { signal(signal: NodeJS.Signals): void; end(): void } {
	const { pid } = child;
	if (pid === undefined) return { signal() {}, end() {} };
	if (leaders.size === 0) process.on("exit", endAll);
	leaders.add(pid);
	return {
		signal: (signal) => signalGroup(pid, signal),
		end() {
			if (!leaders.delete(pid)) return;
			signalGroup(pid, "SIGKILL");
			if (leaders.size === 0) process.off("exit", endAll);
		},
	};
}

/** Does nothing for a group that has ended. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
	try {
		process.kill(OWN_GROUP.detached ? -leader : leader, signal);
	} catch (cause) {
		const { code } = cause as NodeJS.ErrnoException;
		// EPERM: macOS says it of a group in which only zombies are left.
		if (code !== "ESRCH" && code !== "EPERM") throw cause;
	}
}
