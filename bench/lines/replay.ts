/** How fast a finished log of 100,000 frames is read again. */

import type { Subscription } from "../client.ts";
import type { Figure } from "../figure.ts";
import { load, type Server, startBare, startNexus, withFolder } from "../processes.ts";
import { median } from "../statistics.ts";

const FRAMES = 100_000;
/** The log's own begin and end are frames too. */
const TOKENS = FRAMES - 2;
const ROUNDS = 5;
const TIMEOUT_MS = 60_000;

/** NDJSON has no empty lines to count; its bytes tell that it is whole. */
async function framesPerSecond(server: Server, path: string): Promise<number> {
	const subscriptions: Subscription[] = [{ path, readers: 1 }];
	const { events, bytes, seconds } = await load({ ...server, subscriptions, latency: false, timeoutMs: TIMEOUT_MS });
	const whole = path.includes("/frames") ? bytes > FRAMES * 100 : events === FRAMES;
	if (!whole) throw new Error(`${path}: ${events} events, ${bytes} bytes`);
	return FRAMES / seconds;
}

async function record(server: Server): Promise<string> {
	const headers = { authorization: `Bearer ${server.token}`, "content-type": "application/json" };
	const base = `http://127.0.0.1:${server.port}/v1`;
	const body = JSON.stringify({ text: `tokens=${TOKENS} rate=0` });
	const answer = await fetch(`${base}/sessions/replay/messages`, { method: "POST", headers, body });
	const { run_id: run } = (await answer.json()) as { run_id: string };
	const stream = await fetch(`${base}/runs/${run}/stream`, { headers });
	for await (const _ of stream.body ?? []);
	return run;
}

export async function replay(): Promise<Figure[]> {
	return withFolder(async (folder) => {
		const first = await startNexus(folder);
		const run = await record(first);
		await first.stop();
		const bare = await startBare();
		const nexus = await startNexus(folder);
		try {
			const stream = `/v1/runs/${run}/frames`;
			const cold = await framesPerSecond(nexus, `/v1/runs/${run}/stream?after=0`);
			const sse: number[] = [];
			const ndjson: number[] = [];
			const bareSse: number[] = [];
			for (let turn = 0; turn < ROUNDS; turn++) {
				sse.push(await framesPerSecond(nexus, `/v1/runs/${run}/stream?after=0`));
				ndjson.push(await framesPerSecond(nexus, stream));
				bareSse.push(await framesPerSecond(bare, `/replay?rhythm=tokens=${FRAMES}`));
			}
			const goal = { of: "value", atLeast: 600_000 } as const;
			const against = "from memory, encoded";
			return [
				{
					name: "replay of 100,000 frames, SSE",
					unit: "frames/s",
					value: median(sse),
					bare: median(bareSse),
					against,
					goal,
				},
				{ name: "replay of 100,000 frames, NDJSON", unit: "frames/s", value: median(ndjson), goal },
				{ name: "replay, first after a restart, SSE", unit: "frames/s", value: cold },
			];
		} finally {
			await Promise.all([nexus.stop(), bare.stop()]);
		}
	});
}
