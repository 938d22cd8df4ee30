/** From the start of the process to its ready line and to a reader's first token, and the memory of a daemon that has nothing to do. */

import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Figure } from "../figure.ts";
import { measuredCheckout, residentMb, type Server, startBare, startNexus, withFolder } from "../processes.ts";
import { median } from "../statistics.ts";

const ROUNDS = 7;
const SETTLE_MS = 2000;

/** JavaScript on both sides: stripping types costs a process time and memory that a built one does not pay. */
const ENGINE = `export default { name: "idle", async *run() { yield { type: "text", delta: "idle" } } };`;
const SERVER = `import { createServer } from "node:http";
const server = createServer((_, response) => response.end('data: {"payload":"idle"}\\n\\n'));
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ url: "http://127.0.0.1:" + server.address().port })));`;

function written(folder: string, name: string, source: string): string {
	const file = join(folder, name);
	writeFileSync(file, source);
	return file;
}

const nexusIn = (folder: string, script = measuredCheckout().built) =>
	startNexus(folder, { script, engine: written(folder, "engine.mjs", ENGINE) });
const bareIn = (folder: string) => startBare({ script: written(folder, "server.mjs", SERVER) });

async function ask({ port, token }: Server, method: string, path: string, body?: object): Promise<IncomingMessage> {
	const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
	const sent = request({ port, host: "127.0.0.1", method, path, headers, agent: false });
	sent.end(body && JSON.stringify(body));
	const [response] = (await once(sent, "response")) as [IncomingMessage];
	if ((response.statusCode ?? 0) >= 300) throw new Error(`${method} ${path}: ${response.statusCode}`);
	return response.setEncoding("utf8");
}

/** Where a new reader finds a token: a run that was asked for, or the bare server's only page. */
async function newStream(server: Server): Promise<string> {
	if (server.token === undefined) return "/";
	let body = "";
	for await (const part of await ask(server, "POST", "/v1/sessions/first/messages", { text: "?" })) body += part;
	return `/v1/runs/${(JSON.parse(body) as { run_id: string }).run_id}/stream`;
}

async function firstTokenMs(server: Server): Promise<number> {
	let text = "";
	for await (const part of await ask(server, "GET", await newStream(server))) {
		text += part;
		if (text.includes('"payload":"idle"')) return performance.now() - server.spawnedAt;
	}
	throw new Error(`no token came: ${text}`);
}

interface Start {
	readyMs: number;
	firstTokenMs: number;
}

function started(start: (folder: string) => Promise<Server>): Promise<Start> {
	return withFolder(async (folder) => {
		const server = await start(folder);
		try {
			return { readyMs: server.readyMs, firstTokenMs: await firstTokenMs(server) };
		} finally {
			await server.stop();
		}
	});
}

export async function startup(): Promise<Figure[]> {
	const built: Start[] = [];
	const source: Start[] = [];
	const bare: Start[] = [];
	for (let turn = 0; turn < ROUNDS; turn++) {
		built.push(await started((folder) => nexusIn(folder)));
		bare.push(await started(bareIn));
		source.push(await started((folder) => nexusIn(folder, measuredCheckout().source)));
	}
	const ready = (starts: readonly Start[]) => median(starts.map(({ readyMs }) => readyMs));
	const token = (starts: readonly Start[]) => median(starts.map((each) => each.firstTokenMs));
	const unit = "ms";
	return [
		{ name: "start to ready", unit, value: ready(built), bare: ready(bare), goal: { of: "value", atMost: 200 } },
		{ name: "start to first token", unit, value: token(built), bare: token(bare), goal: { of: "value", atMost: 250 } },
		{ name: "start to ready, from source", unit, value: ready(source), bare: ready(bare) },
	];
}

const residentOf = ([nexus, bare]: readonly [Server, Server]) => ({
	value: residentMb(nexus.pid),
	bare: residentMb(bare.pid),
});

export async function idle(): Promise<Figure[]> {
	return withFolder(async (folder) => {
		const servers = [await nexusIn(folder), await bareIn(folder)] as const;
		try {
			await sleep(SETTLE_MS);
			const before = residentOf(servers);
			for (const server of servers) for await (const _ of await ask(server, "GET", "/healthz"));
			await sleep(SETTLE_MS);
			const after = residentOf(servers);
			return [
				{ name: "idle memory", unit: "MB", ...before, goal: { of: "value", atMost: 75 } },
				{ name: "idle memory after its first request", unit: "MB", ...after },
			];
		} finally {
			await Promise.all(servers.map((server) => server.stop()));
		}
	});
}
