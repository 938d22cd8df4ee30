/** Streams of StreamScenario compared with SSE on the same daemon, and with a connect-node server that keeps nothing. */

import type { Figure } from "../figure.ts";
import { BARE_GRPC, type Server, startBare, startNexus, withFolder } from "../processes.ts";
import { inTurns, type Round } from "../round.ts";
import { median } from "../statistics.ts";

const PACED = { streams: 1000, readers: 1, tokens: 300, rate: 50, rounds: 3 };
const FLOOD = { streams: 1, readers: 1, tokens: 200_000, rate: 0, rounds: 3 };
const CONNECT = "connect-node";

const of = (rounds: readonly Round[], value: (round: Round) => number) => median(rounds.map(value));
const cpuUs = (round: Round) => round.cpuUs;
const tokensPerSecond = ({ events, seconds }: Round) => events / seconds;
const messagesPerCpuSecond = ({ events, messages, cpuUs: us }: Round) => (messages / (events * us)) * 1e6;

export function grpc(): Promise<Figure[]> {
	return withFolder(async (folder) => {
		const started: Server[] = [];
		try {
			started.push(await startNexus(folder), await startBare({ script: BARE_GRPC }));
			const [nexus, bare] = started as [Server, Server];
			return [...(await paced(nexus, bare, folder)), ...(await flood(nexus, bare, folder))];
		} finally {
			await Promise.all(started.map((server) => server.stop()));
		}
	});
}

async function paced(nexus: Server, bare: Server, folder: string): Promise<Figure[]> {
	const sides = { sse: { server: nexus }, grpc: { server: nexus, grpc: true }, bare: { server: bare, grpc: true } };
	// All of them end together, which no thousand streams of a day do: measured is what comes before.
	const rounds = await inTurns(sides, folder, PACED, async () => {});
	const name = `${PACED.streams.toLocaleString("en-US")} StreamScenario × ${PACED.rate}/s`;
	const beside = (value: (round: Round) => number) => ({
		value: of(rounds.grpc, value),
		bare: of(rounds.bare, value),
		against: CONNECT,
	});
	const sse = (value: (round: Round) => number) => ({
		value: of(rounds.grpc, value),
		bare: of(rounds.sse, value),
		against: "SSE",
	});
	return [
		{ name: `${name}, delivered`, unit: "%", ...beside((r) => r.delivered), goal: { of: "value", atLeast: 100 } },
		{ name: `${name}, CPU per token`, unit: "µs", ...sse(cpuUs), goal: { of: "ratio", atMost: 1.5 } },
		{ name: `${name}, latency p50`, unit: "ms", ...sse((r) => r.p50Ms) },
		{ name: `${name}, latency p99`, unit: "ms", ...sse((r) => r.p99Ms), goal: { of: "value", atMost: 60 } },
		{ name: `${name}, latency p50, vs bare`, unit: "ms", ...beside((r) => r.p50Ms) },
		{ name: `${name}, latency p99, vs bare`, unit: "ms", ...beside((r) => r.p99Ms) },
		{
			name: `${name}, tokens per second of CPU`,
			unit: "tokens",
			...beside((r) => 1e6 / r.cpuUs),
			goal: { of: "ratio", atLeast: 0.8 },
		},
		{ name: `${name}, messages per second of CPU`, unit: "messages", ...beside(messagesPerCpuSecond) },
		{ name: `${name}, tokens in a message`, unit: "tokens", ...beside((r) => r.events / r.messages) },
		{ name: `${name}, load client busy`, unit: "%", ...sse((r) => r.clientBusy) },
	];
}

async function flood(nexus: Server, bare: Server, folder: string): Promise<Figure[]> {
	const rounds = await inTurns(
		{ grpc: { server: nexus, grpc: true }, bare: { server: bare, grpc: true } },
		folder,
		FLOOD,
	);
	const value = of(rounds.grpc, tokensPerSecond);
	const goal = { of: "ratio", atLeast: 0.8 } as const;
	const beside = { value, bare: of(rounds.bare, tokensPerSecond), against: CONNECT };
	return [{ name: "1 StreamScenario, flood", unit: "tokens/s", ...beside, goal }];
}
