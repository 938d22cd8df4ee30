/** Daemons that share one database file: in this process, or in one of their own. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import type { Daemon, DaemonOptions } from "../../packages/daemon/src/runtime/runtime.ts";
import { daemonForTest } from "../runtime/daemon.ts";
import { freshFolder } from "../runtime/folder.ts";
import { engine } from "./engine.ts";

export const LEASE_MS = 3000;
export const TOKEN = "cluster-token-0123456789";

export interface DaemonChild {
	url: string;
	data: string;
	pid: number;
	/** The exit code, or the signal that ended it. */
	ended: Promise<unknown>;
	signal(name: NodeJS.Signals): void;
}

export function cluster(more: DaemonOptions = {}) {
	const folder = freshFolder();
	let count = 0;
	const optionsOf = (): DaemonOptions => ({
		data: join(folder, `data-${++count}`),
		sharedStore: join(folder, "shared.db"),
		token: TOKEN,
		cluster: { leaseMs: LEASE_MS },
		stopDeadlineMs: 500,
		...more,
	});
	return {
		folder,
		path: join(folder, "shared.db"),
		join: (): Promise<Daemon> => daemonForTest({ ...optionsOf(), grpc: { port: "off" }, engine }),
		async joinProcess(): Promise<DaemonChild> {
			const script = join(import.meta.dirname, "daemon-process.ts");
			const options = JSON.stringify({ ...optionsOf(), log: { level: "error" } });
			const child = spawn(process.execPath, ["--conditions=nexus-source", script, options], {
				stdio: ["ignore", "pipe", "inherit"],
			});
			const ended = once(child, "exit").then(([code, signal]) => code ?? signal);
			onTestFinished(async () => {
				child.kill("SIGCONT");
				child.kill("SIGKILL");
				await ended;
			});
			const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
			const facts = JSON.parse(line) as { url: string; data: string };
			return { ...facts, pid: child.pid!, ended, signal: (name) => void child.kill(name) };
		},
	};
}

export type Answer = Record<string, unknown> & { run_id?: string; event_id?: string };

/** A request with the token: a POST when it has a body. */
export async function call<T = Answer>({ url }: { url: string }, path: string, body?: unknown): Promise<T> {
	const response = await fetch(url + path, {
		method: body === undefined ? "GET" : "POST",
		headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
		body: body === undefined ? undefined : JSON.stringify(body),
	});
	const text = await response.text();
	if (!response.ok && response.status !== 404) throw new Error(`${path}: ${response.status} ${text}`);
	return JSON.parse(text) as T;
}

export const send = (daemon: { url: string }, session: string, text: string): Promise<Answer> =>
	call(daemon, `/v1/sessions/${session}/messages`, { text });
