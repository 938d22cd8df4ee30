/** The processes of the channel lab: the fake platforms, and the real adapters in front of them. */

import { type ChildProcess, spawn } from "node:child_process";
import { globSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { NexusError, toNexusError } from "@nexus-stream/protocol";
import { systemClock, within } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { own } from "@nexus-stream/protocol/own";
import { type Bus, createBus, sqliteStorage } from "../../bus/bus.ts";
import type { LabState } from "../../edge/edge.ts";
import { sqliteLedger } from "../../ledger/ledger.ts";
import { type ChannelConfig, createOutbound, type DeliverRequest, type Outbound } from "../../nex/nex.ts";
import { openSqlite } from "../../std/sqlite/sqlite.ts";

export const LAB_ACCOUNT = "lab";
const START_MS = 30_000;
/** Adapters that are started at a time: each start is a process that loads its platform's library. */
const WARMING_MAX = 2;
const WARM_MS = 60_000;

export interface BenchOptions {
	bus: Bus;
	dataDir: string;
	log: Log;
	/** How the channels are set up for real: what is tuned there is seen in the lab. */
	tuned?: Readonly<Record<string, ChannelConfig>>;
	/** The program that hosts the fake platforms; the bundled one when left out. */
	host?: string;
}

interface Ready {
	url: string;
	channels: Record<string, { settings: Record<string, string>; target: DeliverRequest["target"] }>;
}

/** The ready line of the host, by platform. */
export type HostState = {
	channels: Record<string, Omit<LabState["channels"][number], "channel" | "ready" | "delivery" | "pausedUntil">>;
};

export interface Bench {
	readonly channels: Ready["channels"];
	readonly outbound: Outbound;
	/** Deliveries that only served to start the adapters. */
	warming(): string[];
	isReady(channel: string): boolean;
	/** Resolves when these can show an answer from its first word on, or will not in good time. */
	ready(channels: readonly string[]): Promise<void>;
	ask<T>(method: "GET" | "POST", path: string, body?: unknown): Promise<T>;
	stop(): Promise<void>;
}

export async function startBench(options: BenchOptions, onLost: (code: number | null) => void): Promise<Bench> {
	const { bus, dataDir, log, tuned = {} } = options;
	const program = options.host === undefined ? hostCommand(import.meta.url) : [options.host];
	const host = spawn(process.execPath, program, { stdio: ["pipe", "pipe", "inherit"] });
	const { url, channels } = await readyOf(host);
	host.once("exit", onLost);
	const file = openSqlite(":memory:", "process");
	const adapters: Readonly<Record<string, ChannelConfig>> = Object.fromEntries(
		Object.entries(channels).map(([channel, { settings }]) => [channel, labChannel(settings, own(tuned, channel))]),
	);
	// Deliveries of the lab live in memory: nothing of them is needed after it.
	const ledger = sqliteLedger(file);
	const committer = createBus({ storage: sqliteStorage(file), clock: systemClock, log });
	const folder = join(dataDir, "lab");
	forgetNotes(folder);
	const outbound = createOutbound({ bus, committer, ledger, dataDir: folder, adapters, log });
	const { cancel, ...warming } = warmUp(channels, outbound, log);
	return {
		channels,
		outbound,
		...warming,
		ask: (method, path, body) => ask(url, method, path, body),
		async stop() {
			host.off("exit", onLost);
			cancel();
			await outbound.stop(0);
			await committer.close();
			file.close();
			host.kill();
		},
	};
}

/** The fakes number their messages from 1 at each start, so adapters must not recognise messages of earlier fakes. */
function forgetNotes(folder: string): void {
	for (const notes of globSync("**/state.json*", { cwd: folder })) rmSync(join(folder, notes), { force: true });
}

/** Settings of an account that change how an answer looks. */
const LOOKS = ["drafts"];

function labChannel(settings: Record<string, string>, tuned: ChannelConfig | undefined): ChannelConfig {
	const [account] = Object.values(tuned?.accounts ?? {});
	const looks = Object.entries(account?.settings ?? {}).filter(([name]) => LOOKS.includes(name));
	const { streaming, blocks, typing } = tuned ?? {};
	return {
		accounts: { [LAB_ACCOUNT]: { settings: { ...settings, ...Object.fromEntries(looks) } } },
		streaming: { tools: true, ...streaming },
		blocks,
		typing,
	};
}

/** An adapter starts with its first delivery. Without one ahead of time the first answer would be over before anything is to be seen of it. */
function warmUp(
	channels: Ready["channels"],
	outbound: Outbound,
	log: Log,
): Pick<Bench, "warming" | "isReady" | "ready"> & { cancel(): void } {
	const warming = new Set<string>();
	const isReady = new Set<string>();
	const waiting = Object.keys(channels).map((channel) => ({ channel, ...Promise.withResolvers<void>() }));
	const queue = [...waiting];
	let isCancelled = false;
	const warm = async (): Promise<void> => {
		for (let next = queue.shift(); next; next = queue.shift()) {
			const { channel, resolve } = next;
			const account = { channel, id: LAB_ACCOUNT };
			try {
				const { id } = await outbound.deliver({ account, target: channels[channel]!.target, text: "Ready." });
				warming.add(id);
				await outbound.settled(id);
			} catch (cause) {
				if (!isCancelled) log.warn({ channel, err: cause }, "the lab's adapter could not be started ahead of time");
			}
			isReady.add(channel);
			resolve();
		}
	};
	for (let lane = 0; lane < WARMING_MAX; lane++) void warm();
	return {
		cancel() {
			isCancelled = true;
			queue.length = 0;
		},
		warming: () => [...warming],
		isReady: (channel) => isReady.has(channel),
		async ready(wanted) {
			// The platform that a caller waits for starts first.
			queue.sort((one, other) => Number(wanted.includes(other.channel)) - Number(wanted.includes(one.channel)));
			const all = Promise.all(waiting.filter(({ channel }) => wanted.includes(channel)).map(({ promise }) => promise));
			await within(systemClock, WARM_MS, all);
		},
	};
}

/** Arguments of Node: from source the package `lab`; the build puts it next to the daemon's own files. */
const hostCommand = (here: string): string[] =>
	here.endsWith(".ts")
		? ["--conditions=nexus-source", fileURLToPath(import.meta.resolve("@nexus-stream/lab"))]
		: [fileURLToPath(new URL("../lab/main.js", here))];

async function readyOf(host: ChildProcess): Promise<Ready> {
	const { promise, resolve, reject } = Promise.withResolvers<string>();
	const fail = (why: string) => reject(new NexusError("unavailable", `the channel lab did not start: ${why}`));
	const cancel = systemClock.after(START_MS, () => fail(`not within ${START_MS} ms`), "due");
	host.once("error", (cause) => fail(cause.message));
	host.once("exit", (code) => fail(`its process ended with ${code}`));
	createInterface({ input: host.stdout! }).once("line", resolve);
	try {
		return JSON.parse(await promise) as Ready;
	} catch (cause) {
		host.kill();
		throw cause;
	} finally {
		cancel();
	}
}

async function ask<T>(url: string, method: "GET" | "POST", path: string, body?: unknown): Promise<T> {
	const failed = (why: string, cause?: unknown) =>
		new NexusError("unavailable", `the channel lab does not answer (${why}); try again`, { cause });
	try {
		const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
		const response = await fetch(url + path, init);
		if (!response.ok) throw failed(String(response.status));
		return (await response.json()) as T;
	} catch (cause) {
		throw cause instanceof NexusError ? cause : failed(toNexusError(cause).message, cause);
	}
}
