/** A real daemon as a child process on a fixed port, to be killed and started again. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { NEXUS } from "../children.ts";
import { ownPort } from "../port.ts";
import { until } from "../until.ts";

export const TOKEN = "proof-token-0123456789";
export const AUTHORIZATION = { authorization: `Bearer ${TOKEN}` };

export interface DaemonProcess {
	readonly port: number;
	readonly url: string;
	readonly pid: number;
	start(): Promise<void>;
	/** SIGKILL; resolves once it is gone. False: it had ended before, or ended in another way. */
	kill(): Promise<boolean>;
	stop(): Promise<boolean>;
	/** The end of what it logged. */
	readonly log: string;
}

export async function daemonIn(
	folder: string,
	config: string,
	nodeFlags: readonly string[] = [],
): Promise<DaemonProcess> {
	const port = await ownPort();
	const file = join(folder, "nexus.yaml");
	const data = join(folder, "data");
	mkdirSync(data, { recursive: true });
	writeFileSync(file, config);
	const args = ["up", "--port", String(port), "--data", data, "--token", TOKEN, "--config", file];
	let child: ChildProcess | undefined;
	let log = "";
	const end = async (signal: NodeJS.Signals) => {
		if (!child || child.exitCode !== null || child.signalCode !== null) return false;
		const gone = once(child, "exit");
		child.kill(signal);
		await gone;
		return child.signalCode === signal;
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
			child = spawn(process.execPath, ["--conditions=nexus-source", ...nodeFlags, NEXUS, ...args], {
				stdio: ["ignore", "pipe", "pipe"],
			});
			child.stderr?.setEncoding("utf8").on("data", (text: string) => {
				log = (log + text).slice(-20_000);
			});
			await ready(child, () => log);
		},
		kill: () => end("SIGKILL"),
		stop: () => end("SIGTERM"),
	};
}

/** Its first line says that it listens. */
async function ready(child: ChildProcess, log: () => string): Promise<void> {
	const lines = createInterface({ input: child.stdout! });
	let first: string | undefined;
	lines.once("line", () => (first ??= "line"));
	child.once("exit", (code) => (first ??= `it ended with ${code}`));
	await until("the daemon says that it listens", () => first !== undefined).catch((cause) => {
		first = String(cause);
	});
	if (first !== "line") throw new Error(`the daemon did not become ready: ${first}\n${log()}`);
}

/** Bytes of memory that the process has in use (Linux). */
export function residentBytes(pid: number): number {
	const found = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
	return Number(found?.[1]) * 1024;
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
