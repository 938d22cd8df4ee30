/** A server that is a process: messages as lines, with limits, and an end that takes all that it started with it. */

import type { Readable } from "node:stream";
import { type JSONRPCMessage, parseJSONRPCMessage, serializeMessage } from "@modelcontextprotocol/client";
import { createLineReader } from "@nexus-stream/adapter/serve/lines";
import type { Clock } from "@nexus-stream/protocol/clock";
import { printable } from "../../std/clip.ts";
import {
	type ChildExit,
	type LineChild,
	readErrorLines,
	STOPPED,
	type SupervisedChild,
	superviseChild,
} from "../../std/line-process.ts";
import type { LinkEvents, McpLimits, McpTransport } from "./port.ts";

export interface StdioSpec {
	command: string;
	args: readonly string[];
	/** All of it. */
	env: Record<string, string>;
	cwd: string;
}

const STDERR_CHARS_MAX = 500;
const STDERR_LINES_PER_SECOND_MAX = 20;

export function stdioLink(spec: StdioSpec, limits: McpLimits, clock: Clock, events: LinkEvents): McpTransport {
	const { command, args, env, cwd } = spec;
	const { stopMs } = limits;
	let server: SupervisedChild | undefined;
	let lastWords = "";
	const exited = ({ code, detail, why }: ChildExit) => {
		// Its pipes may break before it is known that it failed: then it was not the stop that ended it.
		const isStop = why !== STOPPED || code === null || code === 0;
		const words = lastWords === "" ? detail : `${detail}; its last words: ${lastWords}`;
		events.lost(isStop ? (why ?? words) : words);
		link.onclose?.();
	};
	const link: McpTransport = {
		get pid() {
			return server?.child.pid;
		},
		start: () =>
			new Promise((resolve, reject) => {
				const place = { command: [command, ...args], env, cwd, clock, endGraceMs: stopMs, termGraceMs: stopMs };
				server = superviseChild(place, exited);
				const { child, kill } = server;
				child.on("spawn", resolve);
				child.on("error", reject);
				child.stdin.on("error", (cause) => link.onerror?.(cause));
				readMessages(child.stdout, limits, clock, { message: (message) => link.onmessage?.(message), kill });
				readErrorLines(child.stderr, clock, {
					charsMax: STDERR_CHARS_MAX,
					linesPerSecondMax: STDERR_LINES_PER_SECOND_MAX,
					line(text) {
						lastWords = printable(text).trim();
						events.said(lastWords);
					},
				});
			}),
		send: (message) => write(server?.child, serializeMessage(message)),
		close: async () => server?.stop(),
	};
	return link;
}

/** Resolves when there is room again; `onclose` reports a server that is gone. */
function write(child: LineChild | undefined, text: string): Promise<void> {
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
	const second = rate(clock, 1000);
	const minute = rate(clock, 60_000);
	const garbage = () => {
		if (minute() > limits.garbageLinesMax) kill("it wrote too much that is not a message of the protocol");
	};
	const reader = createLineReader({
		lineBytesMax: limits.messageBytesMax,
		onFault: ({ isTooLong }) =>
			isTooLong ? kill(`it sent a message of more than ${limits.messageBytesMax} bytes`) : garbage(),
	});
	// The SDK handles a notification a microtask later: without a turn for each message a result would overtake the progress before it.
	let handed = Promise.resolve();
	stdout.on("data", (chunk: Buffer) => {
		for (const line of reader.push(chunk)) {
			const parsed = parsedMessage(line);
			if (parsed === undefined) garbage();
			else if (second() > limits.messagesPerSecondMax) kill("it sent too many messages in a second");
			else handed = handed.then(() => message(parsed));
		}
	});
	stdout.on("error", () => kill("its output broke"));
}

function parsedMessage(line: object): JSONRPCMessage | undefined {
	try {
		return parseJSONRPCMessage(line);
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
