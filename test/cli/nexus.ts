/** The real command as a child process: run to its end, or kept running and watched. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { type Finished, type Running, watch } from "./running.ts";

const MAIN = fileURLToPath(new URL("../../packages/daemon/src/cli/main.ts", import.meta.url));

export type Child = Running & { readonly child: ChildProcess };

/** Nothing of this machine's own settings reaches the child, except what it needs to run. */
const cleanEnv = (): NodeJS.ProcessEnv => {
	const kept = ["PATH", "HOME", "XDG_CACHE_HOME", "TMPDIR", "NODE_COMPILE_CACHE"];
	return Object.fromEntries(kept.map((name) => [name, process.env[name]]));
};

export interface RunOptions {
	cwd?: string;
	env?: NodeJS.ProcessEnv;
	input?: string;
	/** Another build of the command than its sources. */
	main?: string;
}

/** A child that its test leaves running is killed when the test ends. */
export function nexus(args: readonly string[], options: RunOptions = {}): Child {
	const child = spawn(
		process.execPath,
		[...(options.main === undefined ? ["--conditions=nexus-source", MAIN] : [options.main]), ...args],
		{
			cwd: options.cwd,
			env: { ...cleanEnv(), ...options.env },
			stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
		},
	);
	const closed = once(child, "close").then(([code]) => code as number | null);
	const { running, wrote } = watch(closed, (signal) => child.kill(signal));
	child.stdout?.setEncoding("utf8").on("data", (text: string) => wrote("out", text));
	child.stderr?.setEncoding("utf8").on("data", (text: string) => wrote("err", text));
	if (options.input !== undefined) child.stdin?.end(options.input);
	onTestFinished(async () => void (await running.end("SIGKILL")));
	return Object.assign(running, { child });
}

export const run = (args: readonly string[], options?: RunOptions): Promise<Finished> => nexus(args, options).end();

interface Ready {
	ready: true;
	url: string;
	grpc: string;
	sign_in_url: string;
	pid: number;
	engine: string;
	data: string;
}

/** Starts `nexus up` on a free port and waits for its ready line. */
export async function up(
	data: string,
	args: readonly string[] = [],
	options: RunOptions = {},
): Promise<Child & { ready: Ready }> {
	const daemon = nexus(["up", "--data", data, ...(args.includes("--port") ? [] : ["--port", "0"]), ...args], options);
	await daemon.until(({ out }) => out.includes("\n"));
	return Object.assign(daemon, { ready: JSON.parse(daemon.out) as Ready });
}
