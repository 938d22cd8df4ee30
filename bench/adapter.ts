/**
 * The adapter that is measured with: reads with the kit's line reader, writes to no platform, and says of each answer what arrived and
 * when. `readMs=50 readBytes=4096` makes a child that reads so little, so seldom, until the file of `hurry=` is there.
 */

import { existsSync, readSync, writeSync } from "node:fs";
import { nonceOf } from "../packages/adapter/src/host.ts";
import type { StreamLine, StreamStatus } from "../packages/adapter/src/port.ts";
import { createLineReader } from "../packages/adapter/src/serve/lines.ts";
import { FILLER, nowUs, STAMP_CHARS } from "./pace.ts";

/** One answer as the child received it. */
export interface Arrival {
	tokens: number;
	/** Token lines: fewer than tokens when text was merged. */
	lines: number;
	/** From the first line of the answer to its last. */
	seconds: number;
	/** The latency of every token that says when it was due. */
	latenciesUs: number[];
}

interface Answer extends Omit<Arrival, "seconds"> {
	startedUs: number;
	chars: number;
	ended: boolean;
	allowed: boolean;
}

const words = process.argv.slice(2);
const settings = new Map(words.map((word) => word.split("=", 2) as [string, string | undefined]));
const readMs = Number(settings.get("readMs") ?? 0);
const readBytes = Number(settings.get("readBytes") ?? 65_536);
const hurry = settings.get("hurry");

const INFO = {
	channel: "bench",
	version: "1",
	protocol: 1,
	supports: ["stream", "health"],
	fields: ["runId", "offset", "intent"],
	limits: { textMax: 1_000_000_000, unit: "utf16" },
	settings: [],
};

const answers = new Map<string, Answer>();
const say = (status: StreamStatus | object) => writeSync(1, `${JSON.stringify(status)}\n`);

function take(line: StreamLine, now: number): void {
	const { delivery = "", runId = "" } = line;
	if (line.type === "stream_start") {
		const begun = { tokens: 0, lines: 0, latenciesUs: [], startedUs: now, chars: 0, ended: false, allowed: false };
		answers.set(delivery, begun);
		say({ type: "message_creating", nonce: nonceOf(delivery, 1), from: 0, ordinal: 1, delivery, runId });
	}
	const answer = answers.get(delivery);
	if (!answer) return;
	if (line.type === "token") count(answer, line.text, now);
	if (line.type === "ack") answer.allowed = true;
	if (line.type === "stream_end") end(answer, delivery, now);
	if (answer.ended && answer.allowed) finish(answer, delivery, runId);
}

function count(answer: Answer, text: string, now: number): void {
	answer.lines++;
	answer.chars += text.length;
	answer.tokens += text.length / FILLER.length;
	if (text.startsWith(FILLER)) return;
	for (let at = 0; at < text.length; at += STAMP_CHARS) {
		answer.latenciesUs.push(Math.round(now - Number(text.slice(at, at + STAMP_CHARS))));
	}
}

function end(answer: Answer, delivery: string, now: number): void {
	answer.ended = true;
	const { tokens, lines, latenciesUs, startedUs } = answer;
	const arrival: Arrival = { tokens, lines, latenciesUs, seconds: (now - startedUs) / 1e6 };
	say({ type: "call", call: "read", ms: 0, ok: true, detail: JSON.stringify(arrival), delivery });
}

function finish({ chars }: Answer, delivery: string, runId: string): void {
	const nonce = nonceOf(delivery, 1);
	say({ type: "message_created", messageId: nonce, nonce, from: 0, delivery, runId });
	say({ type: "message_sent", messageId: nonce, final: true, nonce, from: 0, to: chars, delivery, runId });
	say({ type: "delivery_complete", messageIds: [nonce], delivery, runId });
	answers.delete(delivery);
}

const reader = createLineReader({ onFault: ({ reason }) => process.stderr.write(`${reason}\n`) });
const push = (chunk: Buffer) => {
	const now = nowUs();
	for (const line of reader.push(chunk)) take(line as StreamLine, now);
};

/** Blocks as a busy child does: nothing is read ahead. */
function readSlowly(): void {
	const buffer = Buffer.alloc(readBytes);
	const nap = new Int32Array(new SharedArrayBuffer(4));
	for (let length = readSync(0, buffer); length > 0; length = readSync(0, buffer)) {
		push(Buffer.from(buffer.subarray(0, length)));
		if (!hurry || !existsSync(hurry)) Atomics.wait(nap, 0, 0, readMs);
	}
}

if (words.includes("info")) console.log(JSON.stringify(INFO));
else if (words.includes("health")) console.log(JSON.stringify({ ok: true, detail: "measures" }));
else if (readMs > 0) readSlowly();
else process.stdin.on("data", push);
