/** The pipe to an adapter process: how much goes through, how late it arrives, and what waits behind a child that reads slowly. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { startProcess } from "../../packages/daemon/src/nex/accounts/line-process.ts";
import { createLines } from "../../packages/daemon/src/nex/delivery/stream/stream-pusher.ts";
import { PROCESS_LIMITS } from "../../packages/daemon/src/nex/limits.ts";
import { systemClock } from "../../packages/protocol/src/clock.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import type { Arrival } from "../adapter.ts";
import type { Figure } from "../figure.ts";
import { adapterCommand, type OutboundSide, withOutbound, writeRun } from "../outbound.ts";
import { FILLER, paced } from "../pace.ts";
import { median, percentile } from "../statistics.ts";

const TOKENS = 300_000;
const ROUNDS = 5;
const COALESCED_BYTES = 65_536;
/** As many as one commit of the Bus holds at most. */
const BATCH = 512;

const PACE = { streams: 8, rate: 500, tokens: 1000 };
const PACE_ROUNDS = 3;
const WARM_TOKENS = 100;
const SLOW_READ_MS = 50;
const SLOW = [`readMs=${SLOW_READ_MS}`];
const STUCK = ["readMs=50", "readBytes=4096"];
const BEHIND_TOKENS = 200_000;

const NAMES = { delivery: "dlv_01KA4XJ5T5M1V6E4WX2Q8N7B3C", runId: "run_01KA4XJ5T5M1V6E4WX2Q8N7B3C" };
const startLine = (delivery: string) => ({
	type: "stream_start",
	runId: NAMES.runId,
	sessionLabel: "bench",
	target: { to: "1" },
	delivery,
	offset: 1,
});
const tokenLine = (delivery: string, text: string, offset: number) => ({
	type: "token",
	text,
	delivery,
	runId: NAMES.runId,
	offset,
});
const endLine = (delivery: string, offset: number) => ({
	type: "stream_end",
	runId: NAMES.runId,
	final: true,
	delivery,
	offset,
});
const json = (line: object) => `${JSON.stringify(line)}\n`;

interface BareChild {
	/** A promise when the pipe is full. */
	write(data: string | Buffer): Promise<void> | undefined;
	arrival(): Promise<Arrival>;
	stop(): Promise<void>;
}

/** The same child without anything of ours in front of it. */
function startBareChild(settings: readonly string[] = []): BareChild {
	const [file, ...args] = adapterCommand(...settings);
	const child = spawn(file!, [...args, "stream"], { stdio: ["pipe", "pipe", "inherit"] });
	const waiting: ((arrival: Arrival) => void)[] = [];
	createInterface({ input: child.stdout }).on("line", (line) => {
		const status = JSON.parse(line) as { type: string; detail?: string };
		if (status.type === "call") waiting.shift()?.(JSON.parse(status.detail ?? ""));
	});
	return {
		write: (data) => (child.stdin.write(data) ? undefined : once(child.stdin, "drain").then(() => {})),
		arrival: () => new Promise((resolve) => waiting.push(resolve)),
		async stop() {
			child.stdin.end();
			await once(child, "exit");
		},
	};
}

/** All lines of an answer, in pieces of whole lines that only have to be written. */
function serialised(tokens: number): Buffer[] {
	const pieces: Buffer[] = [];
	let text = json(startLine(NAMES.delivery));
	for (let n = 0; n < tokens; n++) {
		text += json(tokenLine(NAMES.delivery, FILLER, n + 2));
		if (text.length < COALESCED_BYTES) continue;
		pieces.push(Buffer.from(text));
		text = "";
	}
	return [...pieces, Buffer.from(text + json(endLine(NAMES.delivery, tokens + 2)))];
}

async function bareFlood(child: BareChild, pieces: readonly Buffer[]): Promise<Arrival> {
	const arrived = child.arrival();
	for (const piece of pieces) await child.write(piece);
	return arrived;
}

/** The daemon's side of a child, without the log: every token is written as one line. */
function startLineProcess() {
	const linesOf = createLines({ fields: NAMES, reasoning: false, parts: false, tokenCharsMax: FILLER.length });
	let arrive: (arrival: Arrival) => void = () => {};
	const child = startProcess(
		{
			command: [...adapterCommand(), "stream"],
			env: {},
			limits: PROCESS_LIMITS,
			clock: systemClock,
			log: silentLog,
			facts: {},
		},
		{
			lines(values) {
				for (const value of values as { type: string; detail?: string }[]) {
					if (value.type === "call") arrive(JSON.parse(value.detail ?? "") as Arrival);
				}
			},
			garbage({ reason }) {
				throw new Error(reason);
			},
			exited() {},
		},
	);
	return {
		async flood(tokens: number): Promise<Arrival> {
			const arrived = new Promise<Arrival>((resolve) => (arrive = resolve));
			child.write(startLine(NAMES.delivery));
			for (let n = 0; n < tokens; n++) {
				const event = { event: { type: "token" as const, text: FILLER }, offset: n + 2, position: n * FILLER.length };
				for (const line of linesOf([event])) child.write(line);
				if (n % BATCH === 0) await child.turn();
			}
			child.write(endLine(NAMES.delivery, tokens + 2));
			return arrived;
		},
		stop: () => child.stop(),
	};
}

async function writtenAnswer({ bus }: OutboundSide, tokens: number): Promise<string> {
	const run = await writeRun(bus);
	for (let n = 0; n < tokens; n++) await run.say(FILLER);
	await run.end();
	return run.runId;
}

const perSecond = ({ tokens, seconds }: Arrival): number => {
	if (tokens !== TOKENS) throw new Error(`${tokens} of ${TOKENS} tokens arrived`);
	return tokens / seconds;
};

function throughput(): Promise<Figure[]> {
	return withOutbound(
		() => ({ bench: [] }),
		async (side) => {
			const line = startLineProcess();
			const bare = startBareChild();
			const pieces = serialised(TOKENS);
			const runId = await writtenAnswer(side, TOKENS);
			const results = { line: [] as number[], nex: [] as number[], bare: [] as number[] };
			for (let round = 0; round <= ROUNDS; round++) {
				const each = {
					line: perSecond(await line.flood(TOKENS)),
					bare: perSecond(await bareFlood(bare, pieces)),
					nex: perSecond(await (await side.deliver("bench", runId)).arrived),
				};
				// The first round warms up.
				if (round > 0) for (const name of ["line", "bare", "nex"] as const) results[name].push(each[name]);
			}
			await Promise.all([line.stop(), bare.stop()]);
			const goal = { of: "ratio", atLeast: 0.7 } as const;
			const against = "serialised before, coalesced";
			const figure = (name: string, values: number[]): Figure => ({
				name,
				unit: "tokens/s",
				value: median(values),
				bare: median(results.bare),
				against,
				goal,
			});
			return [
				figure("pipe to a child, a line per token", results.line),
				figure("pipe to a child, an answer from the log", results.nex),
			];
		},
	);
}

interface Latency {
	p50Ms: number;
	p99Ms: number;
}

const latencyOf = (arrivals: readonly Arrival[], tokens: number): Latency => {
	const all = arrivals.flatMap(({ latenciesUs }) => latenciesUs.map((us) => us / 1000));
	if (all.length !== PACE.streams * tokens) throw new Error(`${all.length} tokens arrived`);
	return { p50Ms: percentile(all, 50), p99Ms: percentile(all, 99) };
};

const eachStream = <T>(work: (index: number) => Promise<T>): Promise<T[]> =>
	Promise.all(Array.from({ length: PACE.streams }, (_, index) => work(index)));

type Measure = (tokens?: number) => Promise<Latency>;

const pacedDeliveries =
	({ bus, deliver }: OutboundSide, channel: string): Measure =>
	async (tokens = PACE.tokens) => {
		const arrivals = await eachStream(async () => {
			const run = await writeRun(bus);
			const { arrived } = await deliver(channel, run.runId);
			for await (const token of paced({ ...PACE, tokens })) await run.say(token);
			await run.end();
			return arrived;
		});
		return latencyOf(arrivals, tokens);
	};

const pacedBare =
	(child: BareChild): Measure =>
	async (tokens = PACE.tokens) => {
		const arrivals = await eachStream(async (index) => {
			const delivery = `${NAMES.delivery}${index}`;
			const arrived = child.arrival();
			await child.write(json(startLine(delivery)));
			let offset = 1;
			for await (const token of paced({ ...PACE, tokens })) {
				await child.write(json(tokenLine(delivery, token, ++offset)));
			}
			await child.write(json(endLine(delivery, ++offset)));
			return arrived;
		});
		return latencyOf(arrivals, tokens);
	};

const PACED = `${PACE.streams} deliveries × ${PACE.rate}/s`;

function latency(): Promise<Figure[]> {
	return withOutbound(
		() => ({ bench: [], slow: SLOW }),
		async (side) => {
			const children = { bare: startBareChild(), bareSlow: startBareChild(SLOW) };
			const measures = {
				nex: pacedDeliveries(side, "bench"),
				bare: pacedBare(children.bare),
				slow: pacedDeliveries(side, "slow"),
				bareSlow: pacedBare(children.bareSlow),
			};
			const results: Record<keyof typeof measures, Latency[]> = { nex: [], bare: [], slow: [], bareSlow: [] };
			const names = Object.keys(measures) as (keyof typeof measures)[];
			// The start of a process is not part of the figure.
			for (const name of names) await measures[name](WARM_TOKENS);
			for (let round = 0; round < PACE_ROUNDS; round++) {
				for (const name of names) results[name].push(await measures[name]());
			}
			await Promise.all([children.bare.stop(), children.bareSlow.stop()]);
			const p50 = (all: Latency[]) => median(all.map(({ p50Ms }) => p50Ms));
			const p99 = (all: Latency[]) => median(all.map(({ p99Ms }) => p99Ms));
			return [
				{ name: `pipe, ${PACED}, latency p50`, unit: "ms", value: p50(results.nex), bare: p50(results.bare) },
				{ name: `pipe, ${PACED}, latency p99`, unit: "ms", value: p99(results.nex), bare: p99(results.bare) },
				{
					name: `pipe, ${PACED}, a child that reads every ${SLOW_READ_MS} ms, latency p99`,
					unit: "ms",
					value: p99(results.slow),
					bare: p99(results.bareSlow),
					goal: { of: "value", atMost: 60 },
				},
			];
		},
	);
}

/** Megabytes that are still reachable. Memory outside of the heap is given back a moment after its owner is collected. */
async function heldMb(): Promise<number> {
	setFlagsFromString("--expose-gc");
	const collect = runInNewContext("gc") as () => void;
	for (let times = 0; times < 3; times++) {
		collect();
		await sleep(20);
	}
	const { heapUsed, external } = process.memoryUsage();
	return (heapUsed + external) / 1e6;
}

/** A child that is far behind, and another account's while it is. */
function behind(): Promise<Figure[]> {
	return withOutbound(
		(folder) => ({ bench: [], stuck: [...STUCK, `hurry=${join(folder, "hurry")}`] }),
		async (side) => {
			const measure = pacedDeliveries(side, "bench");
			await measure(WARM_TOKENS);
			const run = await writeRun(side.bus);
			const { arrived, settled } = await side.deliver("stuck", run.runId);
			let done = false;
			void settled.finally(() => (done = true)).catch(() => {});
			for (let n = 0; n < BATCH; n++) await run.say(FILLER);
			const before = { held: await heldMb(), resident: process.memoryUsage().rss / 1e6 };
			for (let n = BATCH; n < BEHIND_TOKENS; n++) await run.say(FILLER);
			await run.end();
			const after = { held: await heldMb(), resident: process.memoryUsage().rss / 1e6 };
			const neighbour = await measure();
			if (done) throw new Error("the slow child was not behind");
			writeFileSync(join(side.folder, "hurry"), "");
			const { tokens, lines } = await arrived;
			await settled;
			const name = `pipe, ${BEHIND_TOKENS.toLocaleString("en-US")} tokens behind a slow child`;
			return [
				{
					name: `${name}, delivered`,
					unit: "%",
					value: (tokens / BEHIND_TOKENS) * 100,
					goal: { of: "value", atLeast: 100, atMost: 100 },
				},
				{
					name: `${name}, memory held`,
					unit: "MB more",
					value: after.held - before.held,
					goal: { of: "value", atMost: 5 },
				},
				{ name: `${name}, resident memory`, unit: "MB more", value: after.resident - before.resident },
				{ name: `${name}, tokens a line`, unit: "tokens", value: tokens / lines },
				{
					name: `${name}, another account's latency p99`,
					unit: "ms",
					value: neighbour.p99Ms,
					goal: { of: "value", atMost: 60 },
				},
			];
		},
	);
}

export async function pipe(): Promise<Figure[]> {
	return [...(await throughput()), ...(await latency()), ...(await behind())];
}
