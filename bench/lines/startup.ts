/** From the start of the process to its ready line, and the memory of a daemon that has nothing to do. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Figure } from "../figure.ts";
import { BUILT, residentMb, type Server, SOURCE, startBare, startNexus, withFolder } from "../processes.ts";
import { median } from "../statistics.ts";

const ROUNDS = 7;
const SETTLE_MS = 2000;

/** JavaScript on both sides: stripping types costs a process time and memory that a built one does not pay. */
const ENGINE = `export default { name: "idle", async *run() { yield { type: "text", delta: "idle" } } };`;
const SERVER = `import { createServer } from "node:http";
const server = createServer((_, response) => response.end());
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ url: "http://127.0.0.1:" + server.address().port })));`;

function written(folder: string, name: string, source: string): string {
	const file = join(folder, name);
	writeFileSync(file, source);
	return file;
}

const nexusIn = (folder: string, script: string) =>
	startNexus(folder, { script, engine: written(folder, "engine.mjs", ENGINE) });
const bareIn = (folder: string) => startBare({ script: written(folder, "server.mjs", SERVER) });

function readyMs(start: (folder: string) => Promise<Server>): Promise<number> {
	return withFolder(async (folder) => {
		const server = await start(folder);
		await server.stop();
		return server.readyMs;
	});
}

export async function startup(): Promise<Figure[]> {
	const built: number[] = [];
	const source: number[] = [];
	const bare: number[] = [];
	for (let turn = 0; turn < ROUNDS; turn++) {
		built.push(await readyMs((folder) => nexusIn(folder, BUILT)));
		bare.push(await readyMs(bareIn));
		source.push(await readyMs((folder) => nexusIn(folder, SOURCE)));
	}
	return [
		{
			name: "start to ready",
			unit: "ms",
			value: median(built),
			bare: median(bare),
			goal: { of: "value", atMost: 300 },
		},
		{ name: "start to ready, from source", unit: "ms", value: median(source), bare: median(bare) },
	];
}

export async function idle(): Promise<Figure[]> {
	return withFolder(async (folder) => {
		const servers = [await nexusIn(folder, BUILT), await bareIn(folder)] as const;
		try {
			await sleep(SETTLE_MS);
			const [value = Number.NaN, bare = Number.NaN] = servers.map((server) => residentMb(server.pid));
			return [{ name: "idle memory", unit: "MB", value, bare, goal: { of: "value", atMost: 80 } }];
		} finally {
			await Promise.all(servers.map((server) => server.stop()));
		}
	});
}
