/** Measured while tokens are being made: flood, pace, many readers. */

import { join } from "node:path";
import type { Figure } from "../figure.ts";
import { type Server, startBare, startNexus, withFolder } from "../processes.ts";
import { inTurns, type Round, type Shape, type Side } from "../round.ts";
import { median } from "../statistics.ts";

interface Servers {
	nexus: Server;
	bare: Server;
	/** The bare server with a synced log. */
	logged: Server;
}

async function withServers<T>(work: (servers: Servers, folder: string) => Promise<T>): Promise<T> {
	return withFolder(async (folder) => {
		const started: Server[] = [];
		const begin = async (start: Promise<Server>) => {
			started.push(await start);
			return start;
		};
		try {
			const nexus = await begin(startNexus(folder));
			const bare = await begin(startBare());
			const logged = await begin(startBare({ log: join(folder, "bare.log") }));
			return await work({ nexus, bare, logged }, folder);
		} finally {
			await Promise.all(started.map((server) => server.stop()));
		}
	});
}

const interleaved = <Name extends string>(
	shape: Shape & { rounds: number },
	sidesOf: (servers: Servers) => Record<Name, Side>,
): Promise<Record<Name, Round[]>> => withServers((servers, folder) => inTurns(sidesOf(servers), folder, shape));

const of = (results: readonly Round[], value: (result: Round) => number) => median(results.map(value));
const cpuPerEvent = ({ cpuUs }: Round) => cpuUs;
const eventsPerSecond = ({ events, seconds }: Round) => events / seconds;

const BURST = 32;
const LOGGED = "with a synced log";

export async function flood(): Promise<Figure[]> {
	const shape = { streams: 1, readers: 1, tokens: 200_000, rate: 0, rounds: 5 };
	const results = await interleaved(shape, ({ nexus, bare, logged }) => ({
		single: { server: nexus },
		burst: { server: nexus, burst: BURST },
		bare: { server: bare, path: "/stream" },
		coalesced: { server: bare, path: "/coalesced" },
		logged: { server: logged, path: "/stream" },
	}));
	// An answer that is not whole has no speed.
	const whole = results.burst.every(({ delivered }) => delivered === 100);
	if (!whole) console.error("flood: an engine's arrays did not arrive whole, so they have no figure");
	const burst = whole ? results.burst : [];
	const single = of(results.single, eventsPerSecond);
	const bare = of(results.bare, eventsPerSecond);
	const bareUs = of(results.bare, cpuPerEvent);
	const unit = "events/s";
	return [
		{ name: "flood, one by one", unit, value: single, bare, goal: { of: "ratio", atLeast: 1 } },
		{
			name: `flood, arrays of ${BURST}`,
			unit,
			value: of(burst, eventsPerSecond),
			bare,
			goal: { of: "ratio", atLeast: 1.5 },
		},
		{ name: "flood, one by one, CPU per token", unit: "µs", value: of(results.single, cpuPerEvent), bare: bareUs },
		{ name: `flood, arrays of ${BURST}, CPU per token`, unit: "µs", value: of(burst, cpuPerEvent), bare: bareUs },
		{
			name: "flood, one by one, vs bare + log",
			unit,
			value: single,
			bare: of(results.logged, eventsPerSecond),
			against: LOGGED,
		},
		{
			name: "flood, one by one, vs bare coalesced writes",
			unit,
			value: single,
			bare: of(results.coalesced, eventsPerSecond),
			against: "coalesced",
		},
	];
}

export async function pace(): Promise<Figure[]> {
	const shape = { streams: 1, readers: 1, tokens: 2500, rate: 500, rounds: 3 };
	const results = await interleaved(shape, ({ nexus, bare, logged }) => ({
		nexus: { server: nexus },
		bare: { server: bare, path: "/stream" },
		logged: { server: logged, path: "/stream" },
	}));
	const name = "pace 500/s, latency";
	const unit = "ms";
	const p50 = (rounds: readonly Round[]) => of(rounds, (r) => r.p50Ms);
	const p99 = (rounds: readonly Round[]) => of(rounds, (r) => r.p99Ms);
	const [value50, value99] = [p50(results.nexus), p99(results.nexus)];
	return [
		{ name: `${name} p50`, unit, value: value50, bare: p50(results.bare), goal: { of: "value", atMost: 0.16 } },
		{ name: `${name} p99`, unit, value: value99, bare: p99(results.bare), goal: { of: "value", atMost: 1 } },
		{ name: `${name} p50, vs bare + log`, unit, value: value50, bare: p50(results.logged), against: LOGGED },
		{ name: `${name} p99, vs bare + log`, unit, value: value99, bare: p99(results.logged), against: LOGGED },
	];
}

export async function readers1000(): Promise<Figure[]> {
	const sides = ({ nexus, bare }: Servers) => ({ nexus: { server: nexus }, bare: { server: bare, path: "/fan" } });
	const fast = await interleaved({ streams: 1, readers: 1000, tokens: 500, rate: 0, rounds: 3 }, sides);
	const paced = await interleaved({ streams: 1, readers: 1000, tokens: 100, rate: 20, rounds: 3 }, sides);
	return [
		{
			name: "1 stream → 1,000 readers",
			unit: "events/s",
			value: of(fast.nexus, eventsPerSecond),
			bare: of(fast.bare, eventsPerSecond),
			goal: { of: "ratio", atLeast: 0.9 },
		},
		{
			name: "1 stream at 20/s → 1,000 readers, CPU per event",
			unit: "µs",
			value: of(paced.nexus, cpuPerEvent),
			bare: of(paced.bare, cpuPerEvent),
		},
		{
			name: "1 stream at 20/s → 1,000 readers, latency p99",
			unit: "ms",
			value: of(paced.nexus, (r) => r.p99Ms),
			bare: of(paced.bare, (r) => r.p99Ms),
		},
	];
}
