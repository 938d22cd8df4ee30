/** The processes of a measurement: the daemon, the bare server and the load client, each a child that is always ended. */

import { type ChildProcess, fork, spawn } from "node:child_process";
import { on, once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ClientMessage, Job, Outcome } from "./client.ts";
import type { Memory } from "./memory.ts";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

export interface Checkout {
	folder: string;
	/** The commands `nexus`: built, and from source. */
	built: string;
	source: string;
}

/** With the daemon in a package, or in the whole repository as it was before. */
export function checkoutIn(folder: string): Checkout {
	const daemon = join(folder, "packages/daemon");
	const home = existsSync(daemon) ? daemon : folder;
	return { folder, built: join(home, "dist/cli/main.js"), source: join(home, "src/cli/main.ts") };
}

export const HERE = checkoutIn(path(".."));
let measured = HERE;

/** The checkout whose daemon is measured from now on. */
export const measure = (checkout: Checkout): void => {
	measured = checkout;
};
export const measuredCheckout = (): Checkout => measured;
const BARE = path("./bare.ts");
export const BARE_GRPC = path("./bare-grpc.ts");

const READY_TIMEOUT_MS = 20_000;
const STOP_TIMEOUT_MS = 15_000;

export interface Server {
	port: number;
	/** Where it answers gRPC; 0 when it does not. */
	grpcPort: number;
	token?: string;
	pid: number;
	/** When it was spawned, on the clock of `performance.now()`. */
	spawnedAt: number;
	/** From spawn to the ready line. */
	readyMs: number;
	/** After a garbage collection; only of a server that was started for it. */
	memory(): Promise<Memory>;
	stop(): Promise<void>;
}

const children = new Set<ChildProcess>();
const folders = new Set<string>();

const owned = (child: ChildProcess) => {
	children.add(child);
	child.once("exit", () => children.delete(child));
};

/** For a measurement that is broken off: nothing of it is left running, and no folder. */
export function endAll(): void {
	for (const child of children) child.kill("SIGKILL");
	for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

/** A folder that lives as long as one measurement. */
export async function withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
	const folder = mkdtempSync(join(tmpdir(), "nexus-bench-"));
	folders.add(folder);
	try {
		return await work(folder);
	} finally {
		rmSync(folder, { recursive: true, force: true });
		folders.delete(folder);
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

const MEMORY_TIMEOUT_MS = 20_000;

async function memoryOf(child: ChildProcess, file: string): Promise<Memory> {
	rmSync(file, { force: true });
	child.kill("SIGUSR2");
	for (const until = performance.now() + MEMORY_TIMEOUT_MS; !existsSync(file); await sleep(10)) {
		if (performance.now() > until) throw new Error(`no memory figures after ${MEMORY_TIMEOUT_MS} ms`);
	}
	return JSON.parse(readFileSync(file, "utf8")) as Memory;
}

/** `memory` is the file that the server writes its memory figures to. */
async function start(script: string, args: readonly string[], memory?: string): Promise<Server> {
	const preload = memory === undefined ? [] : ["--expose-gc", "--import", new URL("./memory.ts", import.meta.url).href];
	const env = memory === undefined ? process.env : { ...process.env, BENCH_MEMORY: memory };
	const spawnedAt = performance.now();
	const child = spawn(
		process.execPath,
		[...(script.endsWith(".ts") ? ["--conditions=nexus-source"] : []), ...preload, script, ...args],
		{ stdio: ["ignore", "pipe", "pipe"], env },
	);
	owned(child);
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
		const { url, grpc } = JSON.parse(ready[0]) as { url: string; grpc?: string };
		return {
			port: Number(new URL(url).port),
			grpcPort: grpc === undefined ? 0 : Number(new URL(grpc).port),
			pid: child.pid ?? 0,
			spawnedAt,
			readyMs: performance.now() - spawnedAt,
			memory: () => memoryOf(child, memory ?? ""),
			stop: () => stop(child),
		};
	} catch (cause) {
		await stop(child);
		throw new Error(`${script} did not become ready: ${String(cause)}\n${complaint}`, { cause });
	}
}

export interface BareChoices {
	script?: string;
	/** Everything that is sent is appended and synced here first. */
	log?: string;
	memory?: string;
}

export const startBare = ({ script = BARE, log, memory }: BareChoices = {}): Promise<Server> =>
	start(script, log === undefined ? [] : [log], memory);

const TOKEN = "bench-token-0123456789";

/** Thousands of readers from one address are the point here, not an attack. */
const config = (engine: string, more: string) => `engine: { module: ${JSON.stringify(engine)} }
durability: process
log: { level: warn }
broker: { runsMax: 20000 }
edge: { heartbeatMs: 600000, connectionsPerClientMax: 16384 }
${more}`;

export interface NexusChoices {
	script?: string;
	engine?: string;
	/** More lines of its config. */
	more?: string;
	memory?: string;
}

export async function startNexus(folder: string, choices: NexusChoices = {}): Promise<Server> {
	const { script = measured.built, engine = path("./engine.ts"), more = "", memory } = choices;
	const file = join(folder, "nexus.yaml");
	writeFileSync(file, config(engine, more));
	const data = join(folder, "data");
	const args = ["up", "--port", "0", "--data", data, "--token", TOKEN, "--config", file];
	const server = await start(script, args, memory);
	return { ...server, token: TOKEN };
}

/** The turning points of a job. */
export interface JobEvents {
	/** Everyone is there, the signal is given. */
	going?(): void;
	/** Everything has arrived; the streams stay open until it returns. */
	held?(): Promise<void>;
}

/** Runs one job in a fresh client, so that no measurement pays for the garbage of another. */
export async function load(job: Job, events: JobEvents = {}): Promise<Outcome> {
	const client = fork(path("./client.ts"));
	owned(client);
	try {
		client.send(job);
		for await (const [message] of on(client, "message") as AsyncIterable<[ClientMessage]>) {
			if ("going" in message) events.going?.();
			else if ("held" in message) {
				await events.held?.();
				writeFileSync(job.hold?.end ?? "", "");
			} else if ("failed" in message) throw new Error(`load client: ${message.failed}`);
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
