/** A real daemon as a child process on a fixed port, to be killed and started again. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
export const TOKEN = "proof-token-0123456789";
export const AUTHORIZATION = { authorization: `Bearer ${TOKEN}` };
const READY_TIMEOUT_MS = 60_000;

export interface DaemonProcess {
	readonly port: number;
	readonly url: string;
	readonly pid: number;
	start(): Promise<void>;
	/** SIGKILL; resolves once it is gone. */
	kill(): Promise<void>;
	stop(): Promise<void>;
	/** The end of what it logged. */
	readonly log: string;
}

/**
 * Below the range that outgoing connections take theirs from: a client that connects to a port in that range while nobody
 * listens may be connected to itself.
 */
async function freePort(): Promise<number> {
	for (let tries = 0; tries < 100; tries++) {
		const port = 20_000 + Math.floor(Math.random() * 10_000);
		const server = createServer();
		const free = await new Promise<boolean>((resolve) => {
			server.once("error", () => resolve(false));
			server.listen(port, "127.0.0.1", () => resolve(true));
		});
		if (!free) continue;
		server.close();
		await once(server, "close");
		return port;
	}
	throw new Error("no free port between 20000 and 30000");
}

export async function daemonIn(
	folder: string,
	config: string,
	nodeFlags: readonly string[] = [],
): Promise<DaemonProcess> {
	const port = await freePort();
	const file = join(folder, "nexus.yaml");
	const data = join(folder, "data");
	mkdirSync(data, { recursive: true });
	writeFileSync(file, config);
	const args = ["up", "--port", String(port), "--data", data, "--token", TOKEN, "--config", file];
	let child: ChildProcess | undefined;
	let log = "";
	const end = async (signal: NodeJS.Signals) => {
		if (!child || child.exitCode !== null || child.signalCode !== null) return;
		const gone = once(child, "exit");
		child.kill(signal);
		await gone;
	};
	return {
		port,
		url: `http://127.0.0.1:${port}`,
		get pid() {
			return child?.pid ?? 0;
		},
		get log() {
			return log;
		},
		async start() {
			child = spawn(process.execPath, [...nodeFlags, MAIN, ...args], { stdio: ["ignore", "pipe", "pipe"] });
			child.stderr?.setEncoding("utf8").on("data", (text: string) => {
				log = (log + text).slice(-20_000);
			});
			await ready(child, () => log);
		},
		kill: () => end("SIGKILL"),
		stop: () => end("SIGTERM"),
	};
}

async function ready(child: ChildProcess, log: () => string): Promise<void> {
	const signal = AbortSignal.timeout(READY_TIMEOUT_MS);
	const lines = createInterface({ input: child.stdout! });
	const exit = once(child, "exit", { signal }).then(([code]) => Promise.reject(new Error(`it ended with ${code}`)));
	try {
		await Promise.race([once(lines, "line", { signal }), exit]);
	} catch (cause) {
		throw new Error(`the daemon did not become ready:\n${log()}`, { cause });
	} finally {
		exit.catch(() => {});
	}
}

/** Bytes of memory that the process has in use (Linux). */
export function residentBytes(pid: number): number {
	const found = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
	return Number(found?.[1]) * 1024;
}

/** Waits for a condition, not for a time. */
export async function until(
	what: string,
	condition: () => boolean | Promise<boolean>,
	deadlineMs = 60_000,
): Promise<void> {
	const deadline = performance.now() + deadlineMs;
	while (!(await condition())) {
		if (performance.now() > deadline) throw new Error(`not within ${deadlineMs} ms: ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 10));
	}
}

/** A JSON answer; anything but 2xx is an error with the body in it. */
export async function call<T>(url: string, body?: unknown): Promise<T> {
	const headers = { ...AUTHORIZATION, "content-type": "application/json" };
	const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
	const answer = await fetch(url, init);
	const text = await answer.text();
	if (!answer.ok) throw new Error(`${url}: ${answer.status} ${text}`);
	return JSON.parse(text) as T;
}

export async function framesOf(url: string, run: string): Promise<string[]> {
	const answer = await fetch(`${url}/v1/runs/${run}/frames`, { headers: AUTHORIZATION });
	if (!answer.ok) throw new Error(`${run}: ${answer.status} ${await answer.text()}`);
	return (await answer.text()).split("\n").slice(0, -1);
}
