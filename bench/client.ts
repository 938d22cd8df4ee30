/** The load client: a separate process that opens raw sockets, or calls of gRPC, and counts events without decoding them. */

import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { performance } from "node:perf_hooks";
import { StreamScenarioRequestSchema } from "../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { connectGrpc, fieldOf, readGrpc } from "./grpc.ts";
import { nowUs, STAMP_CHARS } from "./pace.ts";
import { percentile } from "./statistics.ts";
import { checkFull, type Tally, time } from "./tally.ts";

/** One stream: `{run}` in the path stands for the run that the message started. */
interface HttpSubscription {
	message?: { session: string; text: string };
	path: string;
	readers: number;
}

/** One call of StreamScenario. */
interface GrpcSubscription {
	scenario: string;
}

export type Subscription = HttpSubscription | GrpcSubscription;

export interface Job {
	port: number;
	token?: string;
	subscriptions: Subscription[];
	/** The tokens carry when they were due. */
	latency: boolean;
	/** Created once every reader has its first bytes. */
	go?: string;
	/** After so many events the client reports it, and the streams end when the file `end` is created. */
	hold?: { events: number; end: string };
	timeoutMs: number;
}

export interface Outcome {
	events: number;
	/** The pieces that they arrived in. */
	messages: number;
	bytes: number;
	/** From the signal to go, or the first request, to the last byte, or to the hold. */
	seconds: number;
	p50Ms: number;
	p99Ms: number;
	/** Per cent of these seconds in which this client was not waiting: near 100, the latencies are its own. */
	clientBusy: number;
}

/** The client's reports: all streams are open and the signal is given, all events have arrived, then the result. */
export type ClientMessage = { going: true } | { held: true } | { failed: string } | Outcome;

const OPENING_MAX = 64;
const PAYLOAD = Buffer.from('"payload":"');
/** Only an event has it: comments and the retry line do not. */
const DATA = Buffer.from("\ndata: ");
const NOTHING = Buffer.alloc(0);
const buffer = Buffer.allocUnsafe(1 << 18);

/** Adds what one read brought, given the end of the read before; returns the end of this one. */
function count(tally: Tally, bytes: Buffer, before: Buffer): Buffer {
	tally.bytes += bytes.length;
	for (let at = bytes.indexOf(DATA); at >= 0; at = bytes.indexOf(DATA, at + DATA.length)) tally.events++;
	if (before.length > 0 && Buffer.concat([before, bytes.subarray(0, DATA.length - 1)]).includes(DATA)) tally.events++;
	if (tally.timed) timeAll(tally, bytes);
	checkFull(tally);
	// Servers write whole events: mostly there is nothing to carry over.
	const whole = bytes.at(-1) === 10 && (bytes.at(-2) === 10 || bytes.at(-2) === 13);
	return whole ? NOTHING : Buffer.concat([before, bytes]).subarray(1 - DATA.length);
}

function timeAll(tally: Tally, bytes: Buffer) {
	const now = nowUs();
	for (let at = bytes.indexOf(PAYLOAD); at >= 0; at = bytes.indexOf(PAYLOAD, at)) {
		at += PAYLOAD.length;
		if (at + STAMP_CHARS > bytes.length) return;
		time(tally, bytes, at, now);
	}
}

const PROCEDURE = "nexus.runtime.v1.RuntimeAiService/StreamScenario";
const TEXT_DELTA = 4;
/** As a channel of gRPC has by default; the next hundred take another connection. */
const STREAMS_PER_CONNECTION = 100;

/** The token that completes a chunk is the last in it: what is measured (Z14). */
function countMessage(tally: Tally, message: Buffer): void {
	tally.bytes += message.length;
	const text = fieldOf(message, TEXT_DELTA);
	if (text === undefined) return;
	tally.messages++;
	tally.events += text.length / STAMP_CHARS;
	if (tally.timed) time(tally, text, text.length - STAMP_CHARS);
	checkFull(tally);
}

type Opened = { opened: Promise<void>; ended: Promise<void> };

/** Opens calls over as many connections as they need. */
function caller({ port, token }: Job, tally: Tally): { open(text: string): Promise<Opened>; close(): void } {
	const sessions: ReturnType<typeof connectGrpc>[] = [];
	let calls = 0;
	return {
		async open(text) {
			const index = Math.floor(calls++ / STREAMS_PER_CONNECTION);
			const session = sessions[index] ?? connectGrpc(port);
			sessions[index] = session;
			const spec = { case: "textGenerate" as const, value: { messages: [{ role: "user", text }] } };
			const request = { scenario: { head: { appId: "bench", connectorId: "default" }, spec } };
			const procedure = { path: PROCEDURE, schema: StreamScenarioRequestSchema, request, token };
			return readGrpc(await session, procedure, (message) => countMessage(tally, message));
		},
		close() {
			for (const session of sessions) void session.then((open) => open.close());
		},
	};
}

/** Resolves `opened` with the first bytes, `ended` when the server closes. */
function read(job: Job, path: string, tally: Tally): Opened {
	const opened = Promise.withResolvers<void>();
	const ended = Promise.withResolvers<void>();
	let first = true;
	let before: Buffer = NOTHING;
	const take = (bytes: Buffer) => {
		if (first && !bytes.subarray(0, 12).toString().endsWith(" 200")) {
			socket.destroy(new Error(`GET ${path}: ${bytes.subarray(0, 400).toString()}`));
			return;
		}
		first = false;
		opened.resolve();
		before = count(tally, bytes, before);
	};
	const socket = connect({
		port: job.port,
		host: "127.0.0.1",
		onread: {
			buffer,
			callback: (length) => {
				take(buffer.subarray(0, length));
				return true;
			},
		},
	});
	socket.on("error", (cause) => {
		opened.reject(cause);
		ended.reject(cause);
	});
	socket.on("close", () => ended.resolve());
	const authorization = job.token ? `Authorization: Bearer ${job.token}\r\n` : "";
	socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${job.port}\r\n${authorization}Connection: close\r\n\r\n`);
	ended.promise.catch(() => {});
	return { opened: opened.promise, ended: ended.promise };
}

function post(job: Job, { session, text }: { session: string; text: string }): Promise<string> {
	return new Promise((resolve, reject) => {
		const headers = { authorization: `Bearer ${job.token}`, "content-type": "application/json" };
		const path = `/v1/sessions/${session}/messages`;
		const sent = request({ port: job.port, host: "127.0.0.1", method: "POST", path, headers }, (response) => {
			let body = "";
			response.setEncoding("utf8").on("data", (part: string) => {
				body += part;
			});
			response.on("end", () => {
				const { run_id: run } = JSON.parse(body) as { run_id?: string };
				if (response.statusCode === 202 && run) resolve(run);
				else reject(new Error(`POST ${path}: ${response.statusCode} ${body}`));
			});
		});
		sent.on("error", reject);
		sent.end(JSON.stringify({ text }));
	});
}

type Span = Pick<Outcome, "seconds" | "clientBusy">;

function startWatch(): () => Span {
	const started = nowUs();
	const before = performance.eventLoopUtilization();
	return () => ({
		seconds: (nowUs() - started) / 1e6,
		clientBusy: performance.eventLoopUtilization(before).utilization * 100,
	});
}

async function work(job: Job): Promise<Outcome> {
	let watch = startWatch();
	let measured: Span | undefined;
	const reached = () => {
		measured = watch();
		process.send?.({ held: true });
	};
	const full = { events: job.hold?.events ?? Infinity, reached };
	const tally: Tally = { events: 0, messages: 0, bytes: 0, latenciesMs: [], timed: job.latency, full };
	const calls = caller(job, tally);
	const ends: Promise<void>[] = [];
	const streamsOf = async (subscription: Subscription): Promise<Opened[]> => {
		if ("scenario" in subscription) return [await calls.open(subscription.scenario)];
		const { message, path, readers } = subscription;
		const target = message ? path.replace("{run}", await post(job, message)) : path;
		return Array.from({ length: readers }, () => read(job, target, tally));
	};
	const open = async (subscription: Subscription) => {
		const streams = await streamsOf(subscription);
		ends.push(...streams.map((stream) => stream.ended));
		await Promise.all(streams.map((stream) => stream.opened));
	};
	const waiting = job.subscriptions.values();
	const opener = async () => {
		for (const subscription of waiting) await open(subscription);
	};
	await Promise.all(Array.from({ length: OPENING_MAX }, opener));
	if (job.go) {
		watch = startWatch();
		process.send?.({ going: true });
		writeFileSync(job.go, "");
	}
	await Promise.all(ends);
	calls.close();
	const { events, bytes, latenciesMs } = tally;
	const messages = tally.messages || events;
	const p50Ms = percentile(latenciesMs, 50);
	const p99Ms = percentile(latenciesMs, 99);
	return { events, messages, bytes, ...(measured ?? watch()), p50Ms, p99Ms };
}

process.on("message", (job: Job) => {
	const late = setTimeout(() => fail(new Error(`not finished after ${job.timeoutMs} ms`)), job.timeoutMs);
	const fail = (cause: Error) => {
		process.send?.({ failed: cause.message });
		process.disconnect();
		process.exitCode = 1;
	};
	work(job)
		.then((outcome) => process.send?.(outcome))
		.catch(fail)
		.finally(() => clearTimeout(late));
});
