/** Garbage, and readers that do not read, against the gRPC port of one daemon: it answers, stays small, and serves the others. */

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, type ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StreamScenarioResponse } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { fuzzCalls } from "../edge/grpc/fuzz.ts";
import { type Ended, readStream } from "../edge/grpc/kit.ts";
import { atEffort, effort, FULL_EFFORT } from "../effort.ts";
import { removeFolder } from "../runtime/folder.ts";
import { seed } from "../seed.ts";
import { until } from "../until.ts";
import { AUTHORIZATION, residentBytes, TOKEN } from "./daemon.ts";
import { addApps, clientsOf, type RuntimeProcess, runtimeIn, textOf } from "./runtime.ts";

/** Seconds and memory are measured in a full proof only: they depend on what else the machine does. */
const isFull = effort >= FULL_EFFORT;
const INPUTS = isFull ? 100_000 : 600;
const STALLED = atEffort(50, 6);
const STALLED_MS = isFull ? 4000 : 1000;
/** Far more than the buffers between the two take. */
const TOKENS = atEffort(200_000, 60_000);
const MESSAGES = 60;
const MESSAGE_BYTES = 48 * 1024;
/** Half of what it would cost to keep for every stalled reader what it did not take. */
const GROWTH_BYTES_MAX = (STALLED * 2 * 2 ** 20) / 2;
const FUZZ_GROWTH_BYTES_MAX = 64 * 2 ** 20;
/** V8 lets a heap drift by hundreds of megabytes before it collects; with a small one what is measured is what is kept. */
const SMALL_HEAP = ["--max-old-space-size=160", "--max-semi-space-size=8"];

const folder = mkdtempSync(join(tmpdir(), "nexus-hostile-grpc-"));
let daemon: RuntimeProcess;

beforeAll(async () => {
	// The last event of a job has its whole text.
	const jobs = "jobs: { progressMs: 50, inlineBytesMax: 8000000 }";
	const config = `edge: { stalledReaderMs: ${STALLED_MS}, grpcResetsPerSecondMax: 100000 }\n${jobs}\n`;
	daemon = await runtimeIn(folder, config, SMALL_HEAP);
	await daemon.start();
	await addApps(daemon.url, "sender", "inbox");
});

afterAll(async () => {
	await daemon?.stop();
	removeFolder(folder);
});

const megabytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MB`;

const OPEN = 'nexus_streams_open{wire="grpc"}';

/** RESOURCE_EXHAUSTED is what gRPC makes of this reset. Connect's client says INTERNAL where the stream's error comes before its close. */
const isStall = (error: ConnectError | undefined): boolean =>
	error?.code === Code.ResourceExhausted || error?.rawMessage.includes("ENHANCE_YOUR_CALM") === true;

async function metric(name: string): Promise<number> {
	const text = await (await fetch(`${daemon.url}/metrics`, { headers: AUTHORIZATION })).text();
	const line = text.split("\n").find((each) => each.startsWith(`${name} `));
	return Number(line?.slice(name.length));
}

describe("proof: readers of gRPC that do not read", () => {
	it("I6, Z8: cost nothing, disturb no other stream, and end with RESOURCE_EXHAUSTED", async () => {
		const clients = clientsOf(daemon.grpc);
		const prompt = `/demo tokens=${TOKENS} rate=${isFull ? TOKENS / 4 : TOKENS}`;
		/** The whole of each stream, by a client that reads; rejects when it is not whole. */
		const race = async (beside: (streams: Streams) => void = () => {}) => {
			const begun = performance.now();
			const { job } = await clients.ai.submitScenarioJob({ scenario: textOf(prompt) });
			const { jobId } = job!;
			await until("its run is known", async () => (await clients.ai.getScenarioJob({ jobId })).job!.runId !== "");
			const { runId } = (await clients.ai.getScenarioJob({ jobId })).job!;
			beside({ runId, jobId });
			const abort = new AbortController();
			let messages = 0;
			const established = Promise.withResolvers<void>();
			const options = { signal: abort.signal, onHeader: () => established.resolve() };
			const inbox = readStream(clientsOf(daemon.grpc).apps.subscribeAppMessages({ appId: "inbox" }, options), () => {
				messages++;
			});
			await established.promise;
			const [text, job2] = await Promise.all([
				readStream(clientsOf(daemon.grpc).ai.streamScenario({ runId })),
				readStream(clientsOf(daemon.grpc).ai.subscribeScenarioJobEvents({ jobId, after: 0n })),
				sendMessages(),
			]);
			await until("every message has arrived", () => messages >= MESSAGES);
			abort.abort();
			await inbox;
			expect([text.error, job2.error]).toEqual([undefined, undefined]);
			expect(text.messages.at(-1)!.done).toBe(true);
			return { ms: performance.now() - begun, runId, words: wordsOf(text) };
		};
		const sendMessages = async () => {
			const payload = Buffer.alloc(MESSAGE_BYTES, 1);
			for (let n = 0; n < MESSAGES; n++)
				await clients.apps.sendAppMessage({ fromAppId: "sender", toAppId: "inbox", messageType: "m", payload });
		};
		// A heap under load grows before it levels off.
		if (isFull) await race();
		const alone = isFull ? await race() : undefined;
		const before = residentBytes(daemon.pid);
		let peak = before;
		const sampler = setInterval(() => (peak = Math.max(peak, residentBytes(daemon.pid))), 50);
		const stalled: Stalled[] = [];
		const beside = await race((streams) => {
			for (let n = 0; n < STALLED; n++) stalled.push(stall(n, streams));
		});
		await until("they are disconnected", async () => (await metric("nexus_stalled_readers_total")) >= STALLED);
		clearInterval(sampler);
		console.log(
			`${STALLED} stalled readers: ${megabytes(peak - before)} more at most; others took ${Math.round(beside.ms)} ms,`,
			`without them ${Math.round(alone?.ms ?? 0)} ms`,
		);
		expect(beside.words).toBe(wordsOf(await readStream(clients.ai.streamScenario({ runId: beside.runId }))));
		if (isFull) expect(peak - before).toBeLessThan(GROWTH_BYTES_MAX);
		if (alone) expect(beside.ms).toBeLessThan(alone.ms * 1.5);
		for (const { mode, resume } of stalled) {
			const { error } = await resume();
			expect([mode, isStall(error)]).toEqual([mode, true]);
		}
		expect(await metric(OPEN)).toBe(0);
	});
});

const wordsOf = ({ messages }: Ended<StreamScenarioResponse>): string =>
	messages.map(({ textDelta }) => textDelta).join("");

interface Streams {
	runId: string;
	jobId: string;
}

interface Stalled {
	mode: "A" | "B" | "D";
	/** Reads on: what was on its way, and then why there is no more. */
	resume(): Promise<Ended<unknown>>;
}

/** Takes the first event and no more. Each over a separate connection: a full one would hold up its neighbours. */
function stall(n: number, { runId, jobId }: Streams): Stalled {
	const { ai, apps } = clientsOf(daemon.grpc);
	const mode = (["A", "B", "D"] as const)[n % 3]!;
	const streams: Record<Stalled["mode"], () => AsyncIterable<unknown>> = {
		A: () => ai.streamScenario({ runId }),
		B: () => ai.subscribeScenarioJobEvents({ jobId, after: 0n }),
		D: () => apps.subscribeAppMessages({ appId: "inbox", after: 0n }),
	};
	const events = streams[mode]()[Symbol.asyncIterator]();
	const first = events.next();
	first.catch(() => {});
	return { mode, resume: () => readStream({ [Symbol.asyncIterator]: () => events }) };
}

describe("proof: garbage", () => {
	it(`P8.2: ${INPUTS} inputs are answered with a status each, none of them UNKNOWN, and the daemon stays as it is`, async () => {
		const { pid } = daemon;
		const fuzz = (count: number, from: number) => fuzzCalls({ url: daemon.grpc, token: TOKEN, count, seed: from });
		const warm = await fuzz(Math.ceil(INPUTS / 10), seed);
		const before = residentBytes(pid);
		const begun = performance.now();
		const { statuses } = await fuzz(INPUTS - Math.ceil(INPUTS / 10), seed + 1);
		const grown = residentBytes(pid) - before;
		const seconds = Math.round((performance.now() - begun) / 1000);
		console.log(
			`fuzz: seed ${seed}, ${INPUTS} inputs, ${seconds} s, ${megabytes(grown)} more;`,
			JSON.stringify(Object.fromEntries(statuses)),
		);
		for (const found of [warm.statuses, statuses]) {
			expect([...found.keys()]).not.toContain("none");
			// 2, UNKNOWN, is a library's default for an unhandled case. 13 is what gRPC wants for a wrong envelope; ours are in the log.
			expect([...found.keys()]).not.toContain("2");
		}
		if (isFull) expect(grown).toBeLessThan(FUZZ_GROWTH_BYTES_MAX);
		expect(daemon.pid).toBe(pid);
		expect(daemon.log).not.toMatch(/remote procedure failed|"level":(?:50|60)|ERROR|FATAL/);
		const { ai, health } = clientsOf(daemon.grpc);
		expect((await health.check({})).status).toBe(1);
		expect((await ai.executeScenario({ scenario: textOf("/demo tokens=3 rate=0") })).text).not.toBe("");
		await until("nothing is left open", async () => (await metric(OPEN)) === 0);
	});
});
