/** A real daemon in front of the built page, with an engine that tests can predict and hold. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { NEXUS } from "../children.ts";
import { ownPort } from "../port.ts";
import { removeFolder } from "../runtime/folder.ts";

const ENGINE = fileURLToPath(new URL("./scripted-engine.ts", import.meta.url));
const BUILT_PAGE = fileURLToPath(new URL("../../packages/daemon/dist/web/index.html", import.meta.url));
export const TOKEN = "test-token-0123456789abcdef";

/** The address of a daemon that another process started. */
export interface DaemonAddress {
	readonly url: string;
	readonly data: string;
}

export interface Daemon extends DaemonAddress {
	/** Sends a message without a browser and waits for the end of its run. */
	send(session: string, text: string): Promise<void>;
	/** Lets an answer go on that the engine holds under this name (see scripted-engine.ts). */
	release(gate: string): void;
}

/** A daemon that a test may kill, because no other test uses it. */
export interface OwnDaemon extends Daemon {
	/** As it was printed at the last start. */
	readonly signInUrl: string;
	/** As a crash would: no handler runs. */
	kill(): Promise<void>;
	/** A new process on the same port and the same data. */
	restart(): Promise<void>;
	/** A new process on the same port, with none of the data. */
	forget(): Promise<void>;
	/** Ends it and removes its data. */
	close(): Promise<void>;
}

interface Ready {
	url: string;
	sign_in_url: string;
}

export const gatesOf = (data: string): string => join(data, "gates");

export const daemonAt = ({ url, data }: DaemonAddress): Daemon => ({
	url,
	data,
	send: (session, text) => sendMessage(url, session, text),
	release: (gate) => writeFileSync(join(gatesOf(data), gate), ""),
});

/** `more` is added to its configuration. Port 0: another process may take the port while the daemon is down. */
export async function startDaemon(more: object = {}, port?: number): Promise<OwnDaemon> {
	if (!existsSync(BUILT_PAGE)) throw new Error("the page is not built: run `npm run build:web` first");
	const data = mkdtempSync(join(tmpdir(), "nexus-browser-"));
	mkdirSync(gatesOf(data));
	const config = join(data, "nexus.yaml");
	// JSON is YAML, too.
	writeFileSync(config, JSON.stringify({ engine: { module: ENGINE }, ...more }));
	let { child, ready } = await launch(data, config, port ?? (await ownPort()));
	const { url } = ready;
	const end = async (signal: NodeJS.Signals) => {
		if (child.exitCode !== null || child.signalCode !== null) return;
		child.kill(signal);
		await once(child, "exit");
	};
	const restart = async () => {
		await end("SIGKILL");
		({ child, ready } = await launch(data, config, Number(new URL(url).port)));
	};
	return {
		...daemonAt({ url, data }),
		get signInUrl() {
			return ready.sign_in_url;
		},
		kill: () => end("SIGKILL"),
		restart,
		async forget() {
			await end("SIGKILL");
			for (const name of readdirSync(data)) if (/^(?:nexus\.db|store\.json)/.test(name)) rmSync(join(data, name));
			await restart();
		},
		async close() {
			// Adapters of a killed daemon would live on for a moment.
			await end("SIGTERM");
			removeFolder(data);
		},
	};
}

async function launch(data: string, config: string, port: number): Promise<{ child: ChildProcess; ready: Ready }> {
	const args = ["up", "--port", String(port), "--data", data, "--token", TOKEN, "--config", config];
	const env = { ...process.env, NEXUS_TEST_GATES: gatesOf(data) };
	const child = spawn(process.execPath, [NEXUS, ...args], { stdio: ["ignore", "pipe", "pipe"], env });
	let errors = "";
	child.stderr.setEncoding("utf8").on("data", (text: string) => {
		errors += text;
	});
	for await (const line of createInterface({ input: child.stdout })) {
		const ready = JSON.parse(line) as Partial<Ready>;
		if (ready.url && ready.sign_in_url) return { child, ready: { url: ready.url, sign_in_url: ready.sign_in_url } };
	}
	throw new Error(`the daemon did not start:\n${errors}`);
}

async function sendMessage(url: string, session: string, text: string): Promise<void> {
	const authorization = `Bearer ${TOKEN}`;
	const response = await fetch(`${url}/v1/sessions/${session}/messages`, {
		method: "POST",
		headers: { authorization, "content-type": "application/json" },
		body: JSON.stringify({ text }),
	});
	const { run_id: run } = (await response.json()) as { run_id: string };
	// A run's stream closes after its final end.
	await fetch(`${url}/v1/runs/${run}/stream`, { headers: { authorization } }).then((stream) => stream.text());
}
