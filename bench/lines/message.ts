/** The cost of a message to the daemon: accepted over HTTP, run by an engine that says one token, settled. */

import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Figure } from "../figure.ts";
import { textOf } from "../pace.ts";
import { cpuSeconds, type Server, startNexus, withFolder } from "../processes.ts";
import { median } from "../statistics.ts";

const CONCURRENCY = 16;
const COLD = 200;
const WARM = 4000;
const MESSAGES = 4000;
const ROUNDS = 5;
const POLL_MS = 5;
const TIMEOUT_MS = 30_000;
const TEXT = textOf({ tokens: 1, rate: 0 });

interface Cost {
	cpuMs: number;
	perSecond: number;
}

type Ask = <T>(method: string, path: string, body?: object) => Promise<T>;

function askerOf({ port, token }: Server, agent: Agent): Ask {
	const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
	return <T>(method: string, path: string, body?: object) =>
		new Promise<T>((resolve, reject) => {
			const sent = request({ agent, port, host: "127.0.0.1", method, path: `/v1${path}`, headers }, (response) => {
				let text = "";
				response.setEncoding("utf8").on("data", (part: string) => {
					text += part;
				});
				response.on("end", () => {
					if ((response.statusCode ?? 0) < 300) resolve(JSON.parse(text) as T);
					else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
				});
			});
			sent.on("error", reject);
			sent.end(body && JSON.stringify(body));
		});
}

async function settled(ask: Ask, run: string): Promise<void> {
	const deadline = performance.now() + TIMEOUT_MS;
	for (;;) {
		const { status } = await ask<{ status: string }>("GET", `/runs/${run}`);
		if (status === "completed") return;
		if (status !== "running" || performance.now() > deadline) throw new Error(`${run} is ${status}`);
		await sleep(POLL_MS);
	}
}

let sessions = 0;

/** Each message is a session's first. What waits behind the last runs is part of the cost; that all have settled is checked after it. */
async function round({ pid }: Server, ask: Ask, messages: number): Promise<Cost> {
	const before = cpuSeconds(pid);
	const started = performance.now();
	const runs: string[] = [];
	const say = async () => {
		let last = "";
		for (let n = 0; n < messages / CONCURRENCY; n++) {
			const path = `/sessions/m${++sessions}/messages`;
			const { run_id } = await ask<{ run_id: string }>("POST", path, { text: TEXT });
			runs.push(run_id);
			last = run_id;
		}
		await settled(ask, last);
	};
	await Promise.all(Array.from({ length: CONCURRENCY }, say));
	const seconds = (performance.now() - started) / 1000;
	const cpuMs = ((cpuSeconds(pid) - before) * 1000) / runs.length;
	for (const run of runs) await settled(ask, run);
	return { cpuMs, perSecond: runs.length / seconds };
}

export async function message(): Promise<Figure[]> {
	return withFolder(async (folder) => {
		const server = await startNexus(folder);
		const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY });
		try {
			const ask = askerOf(server, agent);
			const cold = await round(server, ask, COLD);
			await round(server, ask, WARM);
			const costs: Cost[] = [];
			for (let turn = 0; turn < ROUNDS; turn++) costs.push(await round(server, ask, MESSAGES));
			const name = "message accepted, run and settled";
			return [
				{
					name: `${name}, CPU`,
					unit: "ms",
					value: median(costs.map(({ cpuMs }) => cpuMs)),
					goal: { of: "value", atMost: 0.25 },
				},
				{ name: `${name}, rate`, unit: "messages/s", value: median(costs.map(({ perSecond }) => perSecond)) },
				{ name: `${name}, CPU of the first ${COLD}`, unit: "ms", value: cold.cpuMs },
			];
		} finally {
			agent.destroy();
			await server.stop();
		}
	});
}
