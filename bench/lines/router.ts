/** The cost of delivering a run: processor time per token with a delivery, less that of the same run without one. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Figure } from "../figure.ts";
import { adapterCommand } from "../outbound.ts";
import { cpuSeconds, type Server, startNexus, withFolder } from "../processes.ts";
import { median } from "../statistics.ts";

interface Shape {
	name: string;
	/** Parallel runs, each with its own delivery to the one adapter process. */
	runs: number;
	tokens: number;
	/** Per second and run; 0 = as fast as it goes. */
	rate: number;
	rounds: number;
}

const SHAPES: readonly Shape[] = [
	{ name: "flood, 1 run", runs: 1, tokens: 300_000, rate: 0, rounds: 5 },
	{ name: "200 runs × 50/s", runs: 200, tokens: 150, rate: 50, rounds: 3 },
];

const POLL_MS = 50;
const TIMEOUT_MS = 60_000;
const CHANNELS = `channels: { bench: { command: ${JSON.stringify(adapterCommand())}, accounts: { main: {} } } }\n`;

interface Api {
	post<T>(path: string, body: object): Promise<T>;
	get<T>(path: string): Promise<T>;
}

function apiOf({ port, token }: Server): Api {
	const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
	const ask = async <T>(path: string, init: RequestInit): Promise<T> => {
		const answer = await fetch(`http://127.0.0.1:${port}/v1${path}`, { ...init, headers });
		if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
		return (await answer.json()) as T;
	};
	return {
		post: (path, body) => ask(path, { method: "POST", body: JSON.stringify(body) }),
		get: (path) => ask(path, { method: "GET" }),
	};
}

/** Both kinds of round ask equally often, so that the questions do not show in the difference. */
async function until(what: string, done: () => Promise<boolean>): Promise<void> {
	const deadline = performance.now() + TIMEOUT_MS;
	while (!(await done())) {
		if (performance.now() > deadline) throw new Error(`${what}: not within ${TIMEOUT_MS} ms`);
		await sleep(POLL_MS);
	}
}

let rounds = 0;

/** Microseconds per token. */
async function round(server: Server, folder: string, shape: Shape, delivered: boolean): Promise<number> {
	const api = apiOf(server);
	const id = `r${++rounds}`;
	const go = join(folder, id);
	const text = `tokens=${shape.tokens} rate=${shape.rate} go=${go}`;
	const begin = async (_: unknown, index: number) => {
		const { run_id } = await api.post<{ run_id: string }>(`/sessions/${id}-${index}/messages`, { text });
		const where = { channel: "bench", account: "main", target: { to: `${id}-${index}` } };
		if (delivered) await api.post("/deliveries", { run_id, ...where });
		return run_id;
	};
	const runs = await Promise.all(Array.from({ length: shape.runs }, begin));
	const states = async () => {
		const { deliveries } = await api.get<{ deliveries: { state: string; mode?: string }[] }>(
			`/deliveries?limit=${shape.runs}`,
		);
		return deliveries;
	};
	if (delivered) await until("begin", async () => (await states()).every(({ mode }) => mode === "stream"));
	const before = cpuSeconds(server.pid);
	writeFileSync(go, "");
	const last = runs.at(-1) ?? "";
	await until("run", async () => (await api.get<{ status: string }>(`/runs/${last}`)).status === "completed");
	if (delivered) await until("delivery", async () => (await states()).every(({ state }) => state === "complete"));
	return ((cpuSeconds(server.pid) - before) * 1e6) / (shape.runs * shape.tokens);
}

async function measure(shape: Shape): Promise<Figure> {
	return withFolder(async (folder) => {
		const server = await startNexus(folder, { more: CHANNELS });
		try {
			await round(server, folder, shape, true);
			const alone: number[] = [];
			const delivered: number[] = [];
			for (let turn = 0; turn < shape.rounds; turn++) {
				alone.push(await round(server, folder, shape, false));
				delivered.push(await round(server, folder, shape, true));
			}
			const bare = median(alone);
			return {
				name: `router, ${shape.name}, CPU per token of the delivery`,
				unit: "µs",
				value: median(delivered) - bare,
				bare,
				against: "the run alone",
			};
		} finally {
			await server.stop();
		}
	});
}

export async function router(): Promise<Figure[]> {
	const figures: Figure[] = [];
	for (const shape of SHAPES) figures.push(await measure(shape));
	return figures;
}
