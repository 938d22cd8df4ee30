/** The real command as a child process: run to its end, or kept running and watched. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const WAIT_MS = 60_000;

export interface Finished {
	code: number | null;
	out: string;
	err: string;
}

export interface Running {
	readonly child: ChildProcess;
	readonly out: string;
	readonly err: string;
	/** Waits until what it wrote satisfies the condition. */
	until(condition: (seen: { out: string; err: string }) => boolean): Promise<void>;
	/** Sends a signal, if any, and waits for the end. */
	end(signal?: NodeJS.Signals): Promise<Finished>;
	/** Presses Ctrl-C until it ends: two presses too close to one another count as one. */
	interruptUntilEnd(): Promise<Finished>;
}

/** Nothing of this machine's own settings reaches the child, except what it needs to run. */
const cleanEnv = (): NodeJS.ProcessEnv => {
	const kept = ["PATH", "HOME", "XDG_CACHE_HOME", "TMPDIR"];
	return Object.fromEntries(kept.map((name) => [name, process.env[name]]));
};

export interface RunOptions {
	cwd?: string;
	env?: NodeJS.ProcessEnv;
	input?: string;
	/** Another build of the command than its sources. */
	main?: string;
}

export function nexus(args: readonly string[], options: RunOptions = {}): Running {
	const child = spawn(process.execPath, [options.main ?? MAIN, ...args], {
		cwd: options.cwd,
		env: { ...cleanEnv(), ...options.env },
		stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
	});
	const seen = { out: "", err: "" };
	const waiting = new Set<() => void>();
	const collect = (name: "out" | "err") => (text: string) => {
		seen[name] += text;
		for (const look of waiting) look();
	};
	child.stdout?.setEncoding("utf8").on("data", collect("out"));
	child.stderr?.setEncoding("utf8").on("data", collect("err"));
	if (options.input !== undefined) child.stdin?.end(options.input);
	const closed = once(child, "close") as Promise<[number | null]>;
	const end = async (signal?: NodeJS.Signals): Promise<Finished> => {
		if (signal !== undefined) child.kill(signal);
		const [code] = await closed;
		return { code, ...seen };
	};
	return {
		child,
		end,
		async interruptUntilEnd() {
			const again = setInterval(() => child.kill("SIGINT"), 100);
			return end().finally(() => clearInterval(again));
		},
		get out() {
			return seen.out;
		},
		get err() {
			return seen.err;
		},
		async until(condition) {
			const { promise, resolve, reject } = Promise.withResolvers<void>();
			const look = () => condition(seen) && resolve();
			const late = setTimeout(
				() => reject(new Error(`waited too long for: ${String(condition)}\n${JSON.stringify(seen)}`)),
				WAIT_MS,
			);
			waiting.add(look);
			look();
			void closed.then(() => reject(new Error(`ended before: ${String(condition)}\n${JSON.stringify(seen)}`)));
			await promise.finally(() => {
				clearTimeout(late);
				waiting.delete(look);
			});
		},
	};
}

export const run = (args: readonly string[], options?: RunOptions): Promise<Finished> => nexus(args, options).end();

export interface Ready {
	ready: true;
	url: string;
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
): Promise<Running & { ready: Ready }> {
	const daemon = nexus(["up", "--data", data, ...(args.includes("--port") ? [] : ["--port", "0"]), ...args], options);
	await daemon.until(({ out }) => out.includes("\n"));
	return Object.assign(daemon, { ready: JSON.parse(daemon.out) as Ready });
}
