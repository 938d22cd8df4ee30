/** The command inside this process, with its own streams, signals and exit; and a daemon for it to talk to. */

import { EventEmitter } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { onTestFinished } from "vitest";
import type { Host, OutputStream } from "../../packages/daemon/src/cli/host.ts";
import { createProgram } from "../../packages/daemon/src/cli/program.ts";
import { type Daemon, loadConfig, startDaemon } from "../../packages/daemon/src/runtime/runtime.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { NexusError } from "../../packages/protocol/src/protocol.ts";
import { freshFolder } from "../runtime/folder.ts";
import { type Finished, type Running, watch } from "./running.ts";

export interface RunOptions {
	cwd?: string;
	env?: NodeJS.ProcessEnv;
	/** All of stdin; nothing by default. */
	input?: string;
	/** A person sits at it, and types. */
	tty?: boolean;
}

/** A command that its test leaves running ends with the test. */
export function nexus(args: readonly string[], options: RunOptions = {}): Running & { type(keys: string): void } {
	const { cwd = process.cwd(), env = {}, input = "", tty = false } = options;
	const signals = new EventEmitter();
	const closed = Promise.withResolvers<number | null>();
	let over = false;
	const finish = (code: number | null) => {
		over = true;
		closed.resolve(code);
	};
	const { running, wrote } = watch(closed.promise, (signal) => {
		// As for a process: a signal without a listener ends it.
		if (signal === "SIGKILL" || !signals.emit(signal, signal)) finish(null);
	});
	const output = (name: "out" | "err"): OutputStream => {
		const write = (text: string | Uint8Array) => {
			if (!over) wrote(name, Buffer.from(text as string).toString());
			return true;
		};
		return Object.assign(new PassThrough(), { write, isTTY: tty });
	};
	const stdin = Object.assign(new PassThrough(), { isTTY: tty, setRawMode: () => {} });
	if (!tty) stdin.end(input);
	const host: Host = {
		stdin,
		stdout: output("out"),
		stderr: output("err"),
		env,
		cwd() {
			// A killed command finds no daemon any more, so that it does not reconnect endlessly.
			if (over) throw new NexusError("aborted", "this command has ended");
			return cwd;
		},
		on: signals.on.bind(signals),
		exit: finish,
	};
	createProgram(host)
		.run([process.execPath, "nexus", ...args])
		.then(() => finish(Number(host.exitCode ?? 0)), closed.reject);
	onTestFinished(() => finish(null));
	return Object.assign(running, { type: (keys: string) => void stdin.write(keys) });
}

export const run = (args: readonly string[], options?: RunOptions): Promise<Finished> => nexus(args, options).end();

/** Parses the output of a command with `--json`. */
export const jsonLines = <T = Record<string, unknown>>(out: string): T[] =>
	out
		.split("\n")
		.filter((line) => line !== "")
		.map((line) => JSON.parse(line) as T);

/** Runs that a test leaves behind are not waited for. */
const STOP_MS = 100;

/** A daemon on a free port, configured as `nexus up` is: by the `nexus.yaml` of its folder and the environment. */
export async function daemonHere(data: string, { cwd = process.cwd(), env = {} }: RunOptions = {}): Promise<Daemon> {
	const config = await loadConfig({ data, port: "0" }, { cwd, env });
	return startDaemon({
		...config,
		// A key in the environment of the tests chooses none.
		engine: config.engine ?? "demo",
		stopDeadlineMs: STOP_MS,
		logger: silentLog,
	});
}

/** A folder with this `nexus.yaml`, a daemon that uses it until the test ends, and the command next to it. */
export async function daemonWith(config = "", cwd = freshFolder()) {
	const data = join(cwd, "data");
	writeFileSync(join(cwd, "nexus.yaml"), config);
	let daemon = await daemonHere(data, { cwd });
	onTestFinished(() => daemon.close());
	const start = (args: readonly string[], options: RunOptions = {}) =>
		nexus([...args, "--data", data], { cwd, ...options });
	return {
		cwd,
		data,
		daemon: () => daemon,
		start,
		on: (...args: string[]) => start(args).end(),
		async restart() {
			await daemon.close();
			daemon = await daemonHere(data, { cwd });
		},
	};
}
