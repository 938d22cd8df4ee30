/** A server that is a process: messages as lines, with limits, and an end that takes all that it started with it. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { type JSONRPCMessage, parseJSONRPCMessage, serializeMessage } from "@modelcontextprotocol/client";
import type { Clock } from "@nexus-stream/protocol/clock";
import { printable } from "../../std/printable.ts";
import { OWN_GROUP, watchGroup } from "../../std/process-group.ts";
import type { LinkEvents, McpLimits, McpTransport } from "./port.ts";

export interface StdioSpec {
	command: string;
	args: readonly string[];
	/** All of it. */
	env: Record<string, string>;
	cwd: string;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

const NEWLINE = 0x0a;
const STDERR_CHARS_MAX = 500;
const STDERR_LINES_PER_SECOND_MAX = 20;

const STOPPED = "stopped";

export function stdioLink(spec: StdioSpec, limits: McpLimits, clock: Clock, events: LinkEvents): McpTransport {
	const { promise: over, resolve: ended } = Promise.withResolvers<void>();
	let child: Child | undefined;
	let group: ReturnType<typeof watchGroup> | undefined;
	let why: string | undefined;
	let gone = false;
	let lastWords = "";

	const exit = (detail: string, hasFailed = false) => {
		if (gone) return;
		gone = true;
		// Its pipes may break before it is known that it failed: then it was not the stop that ended it.
		if (hasFailed && why === STOPPED) why = undefined;
		group?.end();
		for (const pipe of [child?.stdin, child?.stdout, child?.stderr]) pipe?.destroy();
		events.lost(why ?? (lastWords === "" ? detail : `${detail}; its last words: ${lastWords}`));
		link.onclose?.();
		ended();
	};
	const kill = (reason: string) => {
		why ??= reason;
		if (!gone) group?.signal("SIGKILL");
	};
	const link: McpTransport = {
		get pid() {
			return child?.pid;
		},
		start: () =>
			new Promise((resolve, reject) => {
				const { command, args, env, cwd } = spec;
				child = spawn(command, args, { env, cwd, stdio: ["pipe", "pipe", "pipe"], ...OWN_GROUP });
				group = watchGroup(child);
				child.on("spawn", resolve);
				child.on("error", (cause) => {
					reject(cause);
					exit(cause.message);
				});
				child.stdin.on("error", (cause) => link.onerror?.(cause));
				child.on("close", (code, signal) => exit(endOf(code, signal), isFailure(code)));
				child.on("exit", (code, signal) => {
					// Processes that it started may hold its pipes: close them, so that they do not keep the dead server alive.
					group?.signal("SIGTERM");
					clock.after(limits.stopMs, () => exit(endOf(code, signal), isFailure(code)), "due");
				});
				readMessages(child.stdout, limits, clock, { message: (message) => link.onmessage?.(message), kill });
				readErrors(child.stderr, clock, (line) => {
					lastWords = line;
					events.said(line);
				});
			}),
		send: (message) => write(child, serializeMessage(message)),
		async close() {
			if (gone || child?.pid === undefined) return;
			why ??= STOPPED;
			child.stdin.end();
			const term = clock.after(limits.stopMs, () => group?.signal("SIGTERM"), "due");
			const last = clock.after(limits.stopMs * 2, () => kill(STOPPED), "due");
			await over;
			term();
			last();
		},
	};
	return link;
}

const isFailure = (code: number | null): boolean => code !== null && code !== 0;

const endOf = (code: number | null, signal: NodeJS.Signals | null): string =>
	signal ? `ended by ${signal}` : `ended with code ${code}`;

/** Resolves when there is room again; `onclose` reports a server that is gone. */
function write(child: Child | undefined, text: string): Promise<void> {
	return new Promise((resolve, reject) => {
		if (!child?.stdin.writable) return reject(new Error("the server takes no more messages"));
		child.stdin.write(text, (cause) => (cause ? reject(cause) : resolve()));
	});
}

interface StdioReader {
	message(message: JSONRPCMessage): void;
	kill(why: string): void;
}

/** Bounded in the size of a message, in messages a second, and in lines that are none. */
function readMessages(stdout: Readable, limits: McpLimits, clock: Clock, { message, kill }: StdioReader): void {
	let rest: Buffer[] = [];
	let restBytes = 0;
	const second = rate(clock, 1000);
	const garbage = rate(clock, 60_000);
	const take = (line: string) => {
		if (line.trim() === "") return;
		const parsed = parsedMessage(line);
		if (parsed === undefined) {
			if (garbage() > limits.garbageLinesMax) kill("it wrote too much that is not a message of the protocol");
		} else if (second() > limits.messagesPerSecondMax) kill("it sent too many messages in a second");
		else message(parsed);
	};
	stdout.on("data", (chunk: Buffer) => {
		let from = 0;
		for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
			const line = Buffer.concat([...rest, chunk.subarray(from, end)]).toString("utf8");
			[rest, restBytes, from] = [[], 0, end + 1];
			take(line);
		}
		if (from < chunk.length) rest.push(chunk.subarray(from));
		restBytes += chunk.length - from;
		if (restBytes <= limits.messageBytesMax) return;
		[rest, restBytes] = [[], 0];
		kill(`it sent a message of more than ${limits.messageBytesMax} bytes`);
	});
	stdout.on("error", () => kill("its output broke"));
}

function parsedMessage(line: string): JSONRPCMessage | undefined {
	try {
		return parseJSONRPCMessage(JSON.parse(line));
	} catch {
		return undefined;
	}
}

/** Counts what happens, from 1 on in each span of time. */
function rate(clock: Clock, spanMs: number): () => number {
	let since = clock.now();
	let count = 0;
	return () => {
		const now = clock.now();
		if (now - since >= spanMs) [since, count] = [now, 0];
		return ++count;
	};
}

function readErrors(stderr: Readable, clock: Clock, said: (line: string) => void): void {
	const count = rate(clock, 1000);
	let rest = "";
	stderr.setEncoding("utf8");
	stderr.on("data", (text: string) => {
		const lines = (rest + text).split("\n");
		rest = lines.pop()!.slice(0, STDERR_CHARS_MAX);
		for (const line of lines) {
			const words = printable(line).trim().slice(0, STDERR_CHARS_MAX);
			if (words !== "" && count() <= STDERR_LINES_PER_SECOND_MAX) said(words);
		}
	});
	stderr.on("error", () => {});
}
