/** Readers that take 1 kB/s next to others that keep up with a long answer: none is disturbed and nothing piles up. */

import { mkdtempSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createVerifier, type Frame } from "../../packages/protocol/src/protocol.ts";
import { atEffort, effort, FULL_EFFORT } from "../effort.ts";
import { removeFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { AUTHORIZATION, call, type DaemonProcess, daemonIn, framesOf, residentBytes } from "./daemon.ts";

/** Seconds and memory are measured in a full proof only: they depend on what else the machine does. */
const isFull = effort >= FULL_EFFORT;
const TOKENS = atEffort(200_000, 50_000);
const NORMAL_READERS = atEffort(50, 10);
/** A heap under load grows for some runs before it levels off; what is to be shown is that slow readers add nothing then. */
const WARM_UP = { races: isFull ? 5 : 0, readers: 15 };
/**
 * Each on a separate run, because readers of one run share its encoded bytes: held back for one reader or for eight, they
 * would cost the same.
 */
const SLOW_READERS = atEffort(8, 2);
/** In parallel to a slow reader, in the runs before the last. */
const FEW_READERS = 5;
const SLOW_BYTES_PER_SECOND = 1024;
const SAMPLE_MS = 50;
/** The memory that an answer would take in the daemon if it were kept for a slow reader, less the kernel's buffers. */
const ANSWER_BYTES_MIN = TOKENS * 150;
/** Half of the least that eight kept answers would cost; the heap alone drifts by a good part of the other half. */
const GROWTH_BYTES_MAX = (SLOW_READERS * ANSWER_BYTES_MIN) / 2;

/** V8 lets a heap drift by hundreds of megabytes before it collects; with a small one what is measured is what is kept. */
const SMALL_HEAP = ["--max-old-space-size=192", "--max-semi-space-size=8"];

interface Digest {
	bytes: number;
	crc: number;
}

interface SlowReader {
	run: string;
	/** Bytes that it took while it was slow. */
	taken: Buffer;
	hurry(): Promise<Digest>;
}

const folder = mkdtempSync(join(tmpdir(), "nexus-slow-"));
let daemon: DaemonProcess;

function open(run: string): Promise<IncomingMessage> {
	return new Promise((resolve, reject) => {
		const url = `${daemon.url}/v1/runs/${run}/stream?after=0`;
		get(url, { headers: AUTHORIZATION, agent: false }, resolve).on("error", reject);
	});
}

async function digest(response: AsyncIterable<Buffer>, start: Digest = { bytes: 0, crc: 0 }): Promise<Digest> {
	let { bytes, crc } = start;
	for await (const part of response) {
		bytes += part.length;
		crc = crc32(part, crc);
	}
	return { bytes, crc };
}

async function slowReader(run: string): Promise<SlowReader> {
	const response = await open(run);
	const parts: Buffer[] = [];
	const take = () => {
		const part = response.read(SLOW_BYTES_PER_SECOND) as Buffer | null;
		if (part) parts.push(part);
	};
	response.once("readable", take);
	const timer = setInterval(take, 1000);
	return {
		run,
		get taken() {
			return Buffer.concat(parts);
		},
		hurry() {
			clearInterval(timer);
			const taken = Buffer.concat(parts);
			return digest(response, { bytes: taken.length, crc: crc32(taken) });
		},
	};
}

interface Race {
	run: string;
	seconds: number;
	peakBytes: number;
	digests: Digest[];
	slow: SlowReader[];
}

/** One run, all readers on it from the beginning. */
async function race(session: string, readers: number, slowReaders: number): Promise<Race> {
	const text = `/demo tokens=${TOKENS} rate=0`;
	const { run_id: run } = await call<{ run_id: string }>(`${daemon.url}/v1/sessions/${session}/messages`, { text });
	const started = performance.now();
	let peakBytes = 0;
	const sampler = setInterval(() => {
		if (isFull) peakBytes = Math.max(peakBytes, residentBytes(daemon.pid));
	}, SAMPLE_MS);
	const slow = await Promise.all(Array.from({ length: slowReaders }, () => slowReader(run)));
	const normal = Array.from({ length: readers }, async () => digest(await open(run)));
	const digests = await Promise.all(normal);
	clearInterval(sampler);
	return { run, seconds: (performance.now() - started) / 1000, peakBytes, digests, slow };
}

describe.skipIf(process.platform !== "linux")("proof: slow readers", () => {
	let alone: Race | undefined;
	let beside: Race;
	let aloneAgain: Race | undefined;
	const slow: SlowReader[] = [];
	/** Bytes that each slow reader had taken while it was slow, and in the end. */
	const taken: Buffer[] = [];
	let hurried: Digest[];
	/** The runs of the slow readers, each as a client that comes later is sent it. */
	let wholes: Buffer[];

	const wholeOf = async (run: string) => {
		const answer = await fetch(`${daemon.url}/v1/runs/${run}/stream?after=0`, { headers: AUTHORIZATION });
		return Buffer.from(await answer.arrayBuffer());
	};

	beforeAll(async () => {
		daemon = await daemonIn(folder, "engine: demo\nlog: { level: warn }\nedge: { heartbeatMs: 600000 }\n", SMALL_HEAP);
		await daemon.start();
		for (let count = 0; count < WARM_UP.races; count++) await race("warm-up", WARM_UP.readers, 0);
		if (isFull) alone = await race("alone", NORMAL_READERS, 0);
		while (slow.length < SLOW_READERS - 1) slow.push(...(await race("behind", FEW_READERS, 1)).slow);
		beside = await race("beside", NORMAL_READERS, 1);
		slow.push(...beside.slow);
		// The others have everything by now.
		await until("the slow readers have taken something", () => slow.every((reader) => reader.taken.length > 0));
		taken.push(...slow.map((reader) => reader.taken));
		hurried = await Promise.all(slow.map((reader) => reader.hurry()));
		if (isFull) aloneAgain = await race("alone", NORMAL_READERS, 0);
		wholes = await Promise.all(slow.map((reader) => wholeOf(reader.run)));
		if (!alone || !aloneAgain) return;
		const said = ({ seconds, peakBytes }: Race) => `${seconds.toFixed(1)} s, ${Math.round(peakBytes / 1e6)} MB`;
		console.log(
			`alone ${said(alone)}; with ${SLOW_READERS} slow readers ${said(beside)}; alone again ${said(aloneAgain)}`,
		);
	});

	afterAll(async () => {
		await daemon?.stop();
		removeFolder(folder);
	});

	it("I2: the log is well framed and carries every token", async () => {
		const frames = await framesOf(daemon.url, beside.run);
		const verifier = createVerifier();
		const faults = frames.map((frame) => verifier.push(JSON.parse(frame) as Frame)).filter((fault) => fault);
		expect(faults).toEqual([]);
		expect(verifier.finish()).toBeUndefined();
		expect(frames).toHaveLength(TOKENS + 2);
		const lines = (wholes.at(-1)?.toString() ?? "").split("\n").filter((line) => line.startsWith("data: "));
		expect(lines.map((line) => line.slice("data: ".length))).toEqual(frames);
	});

	it("I6: every normal reader got everything", () => {
		const whole = wholes.at(-1) ?? Buffer.alloc(0);
		expect(whole.length).toBeGreaterThan(ANSWER_BYTES_MIN);
		const expected = { bytes: whole.length, crc: crc32(whole) };
		expect(beside.digests).toEqual(Array.from({ length: NORMAL_READERS }, () => expected));
	});

	if (isFull) {
		it("I6: the normal readers were not held up", () => {
			// Before and after, because the machine may have other work, and more of it in between. At 1 kB/s the answer would take hours.
			expect(beside.seconds).toBeLessThan(5 * Math.max(alone!.seconds, aloneAgain!.seconds) + 30);
		});

		it("I6: the daemon's memory did not grow with what the slow readers are behind", () => {
			expect(beside.peakBytes - alone!.peakBytes).toBeLessThan(GROWTH_BYTES_MAX);
		});
	}

	it("I4 I6: a slow reader is behind when the others have everything, right so far, and gets the rest once it hurries", () => {
		for (const [index, whole] of wholes.entries()) {
			const part = taken[index] ?? Buffer.alloc(0);
			expect(part.length).toBeLessThan(whole.length / 10);
			expect(part.equals(whole.subarray(0, part.length))).toBe(true);
			expect(hurried[index]).toEqual({ bytes: whole.length, crc: crc32(whole) });
		}
	});
});
