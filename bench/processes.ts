/** The processes of a measurement: the daemon, the bare server and the load client, each a child that is always ended. */

import { type ChildProcess, fork, spawn } from "node:child_process";
import { on, once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { ClientMessage, Job, Outcome } from "./client.ts";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
export const BUILT = path("../dist/cli/main.js");
export const SOURCE = path("../src/cli/main.ts");
const BARE = path("./bare.ts");

const READY_TIMEOUT_MS = 20_000;
const STOP_TIMEOUT_MS = 15_000;

export interface Server {
	port: number;
	token?: string;
	pid: number;
	/** From spawn to the ready line. */
	readyMs: number;
	stop(): Promise<void>;
}

/** A folder that lives as long as one measurement. */
export async function withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
	const folder = mkdtempSync(join(tmpdir(), "nexus-bench-"));
	try {
		return await work(folder);
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

async function stop(child: ChildProcess) {
	if (child.exitCode !== null || child.signalCode !== null) return;
	const gone = once(child, "exit");
	child.kill("SIGTERM");
	const hard = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
	await gone;
	clearTimeout(hard);
}

async function start(script: string, args: readonly string[]): Promise<Server> {
	const started = performance.now();
	const child = spawn(process.execPath, [script, ...args], { stdio: ["ignore", "pipe", "pipe"] });
	let complaint = "";
	child.stderr.setEncoding("utf8").on("data", (text: string) => {
		complaint = (complaint + text).slice(-4000);
	});
	const lines = createInterface({ input: child.stdout });
	const signal = AbortSignal.timeout(READY_TIMEOUT_MS);
	try {
		const ready = await Promise.race([
			once(lines, "line", { signal }) as Promise<[string]>,
			once(child, "exit", { signal }).then(() => Promise.reject(new Error("it ended"))),
		]);
		const { url } = JSON.parse(ready[0]) as { url: string };
		const readyMs = performance.now() - started;
		return { port: Number(new URL(url).port), pid: child.pid ?? 0, readyMs, stop: () => stop(child) };
	} catch (cause) {
		await stop(child);
		throw new Error(`${script} did not become ready: ${String(cause)}\n${complaint}`, { cause });
	}
}

export const startBare = (script = BARE): Promise<Server> => start(script, []);

const TOKEN = "bench-token-0123456789";

/** A thousand readers of one client are the point here, not an attack. */
const config = (engine: string, more: string) => `engine: { module: ${JSON.stringify(engine)} }
durability: process
log: { level: warn }
broker: { runsMax: 5000 }
edge: { heartbeatMs: 600000 }
${more}`;

export interface NexusChoices {
	script?: string;
	engine?: string;
	/** More lines of its config. */
	more?: string;
}

export async function startNexus(folder: string, choices: NexusChoices = {}): Promise<Server> {
	const { script = BUILT, engine = path("./engine.ts"), more = "" } = choices;
	const file = join(folder, "nexus.yaml");
	writeFileSync(file, config(engine, more));
	const data = join(folder, "data");
	const server = await start(script, ["up", "--port", "0", "--data", data, "--token", TOKEN, "--config", file]);
	return { ...server, token: TOKEN };
}

/** Runs one job in a fresh client, so that no measurement pays for the garbage of another. */
export async function load(job: Job, onGo: () => void = () => {}): Promise<Outcome> {
	const client = fork(path("./client.ts"));
	try {
		client.send(job);
		for await (const [message] of on(client, "message") as AsyncIterable<[ClientMessage]>) {
			if ("going" in message) onGo();
			else if ("failed" in message) throw new Error(`load client: ${message.failed}`);
			else return message;
		}
		throw new Error("the load client ended without an answer");
	} finally {
		await stop(client);
	}
}

const TICKS_PER_SECOND = 100;

/** Seconds of processor time that a process and its threads have used; NaN where the system does not tell. */
export function cpuSeconds(pid: number): number {
	try {
		const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
			.replace(/^.*\) /s, "")
			.split(" ");
		return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
	} catch {
		return Number.NaN;
	}
}

/** Megabytes (10⁶) of memory in use. */
export function residentMb(pid: number): number {
	try {
		const found = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
		return (Number(found?.[1]) * 1024) / 1e6;
	} catch {
		return Number.NaN;
	}
}
