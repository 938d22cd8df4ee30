/** What is measured while tokens are being made: flood, pace, many streams, many readers. */

import { join } from "node:path";
import type { Job, Outcome, Subscription } from "../client.ts";
import type { Figure } from "../figure.ts";
import { cpuSeconds, load, type Server, startBare, startNexus, withFolder } from "../processes.ts";
import { median } from "../statistics.ts";

interface Load {
	streams: number;
	readers: number;
	tokens: number;
	/** Per second and stream; 0 = as fast as it goes. */
	rate: number;
	rounds: number;
}

interface Round extends Outcome {
	/** Per cent of the tokens that arrived. */
	delivered: number;
	/** Microseconds of processor time per event. */
	cpuUs: number;
}

const STAMPED_RATE_MIN = 1;
const MARGIN_MS = 60_000;
/** The daemon frames a stream with a begin and an end. */
const FRAMING_EVENTS = 2;

let rounds = 0;

async function round(
	server: Server,
	folder: string,
	{ streams, readers, tokens, rate }: Load,
	path?: string,
): Promise<Round> {
	const id = `r${++rounds}`;
	const go = join(folder, id);
	const bare = `${path}?tokens=${tokens}&rate=${rate}&go=${encodeURIComponent(go)}&readers=${readers}`;
	const subscriptions = Array.from({ length: streams }, (_, index): Subscription => {
		if (path) return { path: `${bare}&group=${id}-${index}`, readers };
		const message = { session: `${id}-${index}`, text: `tokens=${tokens} rate=${rate} go=${go}` };
		return { message, path: "/v1/runs/{run}/stream", readers };
	});
	const timeoutMs = (rate > 0 ? (tokens / rate) * 1000 : 0) + MARGIN_MS;
	const job: Job = { ...server, subscriptions, latency: rate >= STAMPED_RATE_MIN, go, timeoutMs };
	let before = Number.NaN;
	const outcome = await load(job, () => {
		before = cpuSeconds(server.pid);
	});
	const framing = path ? 0 : streams * readers * FRAMING_EVENTS;
	const events = outcome.events - framing;
	const delivered = (events / (streams * readers * tokens)) * 100;
	if (delivered !== 100) console.error(`${path ?? "nexus"}: ${delivered} % of the tokens were delivered`);
	return { ...outcome, events, delivered, cpuUs: ((cpuSeconds(server.pid) - before) * 1e6) / events };
}

/** Daemon and baselines in turns, so that whatever else the machine does falls on all of them. */
async function interleaved(shape: Load, paths: readonly string[]): Promise<{ nexus: Round[]; bare: Round[][] }> {
	return withFolder(async (folder) => {
		const servers = [await startNexus(folder), await startBare()] as const;
		try {
			// The first round warms up both.
			const warm = { ...shape, tokens: Math.min(shape.tokens, shape.rate || shape.tokens) };
			await round(servers[0], folder, warm);
			await round(servers[1], folder, warm, paths[0]);
			const nexus: Round[] = [];
			const bare: Round[][] = paths.map(() => []);
			for (let turn = 0; turn < shape.rounds; turn++) {
				nexus.push(await round(servers[0], folder, shape));
				for (const [index, path] of paths.entries()) bare[index]?.push(await round(servers[1], folder, shape, path));
			}
			return { nexus, bare };
		} finally {
			await Promise.all(servers.map((server) => server.stop()));
		}
	});
}

const of = (results: readonly Round[] = [], value: (result: Round) => number) => median(results.map(value));
const eventsPerSecond = ({ events, seconds }: Round) => events / seconds;

export async function flood(): Promise<Figure[]> {
	const shape = { streams: 1, readers: 1, tokens: 200_000, rate: 0, rounds: 5 };
	const { nexus, bare } = await interleaved(shape, ["/stream", "/coalesced"]);
	const value = of(nexus, eventsPerSecond);
	return [
		{
			name: "flood, 1 client",
			unit: "events/s",
			value,
			bare: of(bare[0], eventsPerSecond),
			goal: { of: "ratio", atLeast: 1.5 },
		},
		{ name: "flood, beside bare coalesced writes", unit: "events/s", value, bare: of(bare[1], eventsPerSecond) },
	];
}

export async function pace(): Promise<Figure[]> {
	const { nexus, bare } = await interleaved({ streams: 1, readers: 1, tokens: 2500, rate: 500, rounds: 3 }, [
		"/stream",
	]);
	return [
		{
			name: "pace 500/s, latency p50",
			unit: "ms",
			value: of(nexus, (r) => r.p50Ms),
			bare: of(bare[0], (r) => r.p50Ms),
			goal: { of: "ratio", atMost: 3 },
		},
		{
			name: "pace 500/s, latency p99",
			unit: "ms",
			value: of(nexus, (r) => r.p99Ms),
			bare: of(bare[0], (r) => r.p99Ms),
			goal: { of: "value", atMost: 2 },
		},
	];
}

export async function streams1000(): Promise<Figure[]> {
	const { nexus, bare } = await interleaved({ streams: 1000, readers: 1, tokens: 500, rate: 50, rounds: 3 }, [
		"/stream",
	]);
	const name = "1,000 streams × 50/s × 10 s";
	return [
		{
			name: `${name}, delivered`,
			unit: "%",
			value: Math.min(...nexus.map((r) => r.delivered)),
			bare: Math.min(...(bare[0] ?? []).map((r) => r.delivered)),
			goal: { of: "value", atLeast: 100, atMost: 100 },
		},
		{
			name: `${name}, latency p50`,
			unit: "ms",
			value: of(nexus, (r) => r.p50Ms),
			bare: of(bare[0], (r) => r.p50Ms),
			goal: { of: "value", atMost: 5 },
		},
		{
			name: `${name}, latency p99`,
			unit: "ms",
			value: of(nexus, (r) => r.p99Ms),
			bare: of(bare[0], (r) => r.p99Ms),
			goal: { of: "value", atMost: 50 },
		},
		{
			name: `${name}, CPU per token`,
			unit: "µs",
			value: of(nexus, (r) => r.cpuUs),
			bare: of(bare[0], (r) => r.cpuUs),
			goal: { of: "ratio", atMost: 1.3 },
		},
	];
}

export async function readers1000(): Promise<Figure[]> {
	const fast = await interleaved({ streams: 1, readers: 1000, tokens: 500, rate: 0, rounds: 3 }, ["/fan"]);
	const paced = await interleaved({ streams: 1, readers: 1000, tokens: 100, rate: 20, rounds: 3 }, ["/fan"]);
	return [
		{
			name: "1 stream → 1,000 readers",
			unit: "events/s",
			value: of(fast.nexus, eventsPerSecond),
			bare: of(fast.bare[0], eventsPerSecond),
			goal: { of: "ratio", atLeast: 0.9 },
		},
		{
			name: "1 stream at 20/s → 1,000 readers, CPU per event",
			unit: "µs",
			value: of(paced.nexus, (r) => r.cpuUs),
			bare: of(paced.bare[0], (r) => r.cpuUs),
		},
		{
			name: "1 stream at 20/s → 1,000 readers, latency p99",
			unit: "ms",
			value: of(paced.nexus, (r) => r.p99Ms),
			bare: of(paced.bare[0], (r) => r.p99Ms),
		},
	];
}
