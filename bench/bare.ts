/**
 * The baselines: node:http and nothing else. One SSE event per token, one `res.write` per event. With the path of a log as its argument
 * the server appends every event of a live stream to it and syncs it before it writes the event.
 */

import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { openSyncedLog, type SyncedLog } from "./bare-log.ts";
import { paced, type Rhythm, rhythmOf } from "./pace.ts";

const MESSAGE = "run_01KA4XJ5T5M1V6E4WX2Q8N7B3C.1";
const COALESCED_BYTES = 65_536;

/** As long as the event that the daemon sends for a token, and built in the cheapest way. */
const event = (seq: number, payload: string, ts: number) =>
	`id: ${seq}\nevent: stream.chunk\ndata: {"type":"stream.chunk","message_id":"${MESSAGE}","seq_no":${seq},"payload":"${payload}","is_partial":true,"ts":${ts}}\n\n`;

const log = process.argv[2] === undefined ? undefined : openSyncedLog(process.argv[2]);

async function stream(rhythm: Rhythm, response: ServerResponse, bytesMin: number) {
	let seq = 0;
	let pending = "";
	for await (const token of paced(rhythm)) {
		pending += event(++seq, token, Date.now());
		if (pending.length < bytesMin) continue;
		const taken = response.write(pending);
		pending = "";
		if (!taken) await once(response, "drain");
	}
	response.end(pending);
}

/** Nothing is written before it is synced. */
async function loggedStream(rhythm: Rhythm, response: ServerResponse, { append }: SyncedLog) {
	let seq = 0;
	let last: Promise<void> | undefined;
	for await (const token of paced(rhythm)) {
		const text = event(++seq, token, Date.now());
		const { synced, crowded } = append(text, () => response.write(text));
		last = synced;
		if (crowded) await synced;
		if (response.writableNeedDrain) await once(response, "drain");
	}
	await last;
	response.end();
}

/** One stream to everyone who waits for it. */
async function fan(rhythm: Rhythm, responses: readonly ServerResponse[]) {
	let seq = 0;
	for await (const token of paced(rhythm)) {
		const text = event(++seq, token, Date.now());
		const full: ServerResponse[] = [];
		for (const response of responses) if (!response.write(text)) full.push(response);
		for (const response of full) if (response.writableNeedDrain) await once(response, "drain");
	}
	for (const response of responses) response.end();
}

const finished = new Map<number, Buffer[]>();

/** In pieces of whole events. */
function finishedLog(count: number): Buffer[] {
	const pieces: Buffer[] = [];
	let text = "";
	for (let seq = 1; seq <= count; seq++) {
		text += event(seq, "sixteen letters ", 1_763_164_800_000);
		if (text.length < COALESCED_BYTES && seq < count) continue;
		pieces.push(Buffer.from(text));
		text = "";
	}
	return pieces;
}

/** A finished log that lies encoded in memory: the least that replay can cost. */
async function replay(count: number, response: ServerResponse) {
	const pieces = finished.get(count) ?? finishedLog(count);
	finished.set(count, pieces);
	for (const piece of pieces) if (!response.write(piece)) await once(response, "drain");
	response.end();
}

const waiting = new Map<string, ServerResponse[]>();

function answer(url: URL, response: ServerResponse): Promise<void> | undefined {
	const rhythm = rhythmOf(url.searchParams.get("rhythm") ?? "");
	response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
	response.flushHeaders();
	if (url.pathname === "/replay") return replay(rhythm.tokens, response);
	if (url.pathname === "/coalesced") return stream(rhythm, response, COALESCED_BYTES);
	if (url.pathname === "/stream") return log ? loggedStream(rhythm, response, log) : stream(rhythm, response, 0);
	const group = url.searchParams.get("group") ?? "";
	const readers = [...(waiting.get(group) ?? []), response];
	waiting.set(group, readers);
	if (readers.length < Number(url.searchParams.get("readers"))) return undefined;
	waiting.delete(group);
	return fan(rhythm, readers);
}

const server = createServer((request, response) => {
	answer(new URL(request.url ?? "/", "http://bare"), response)?.catch((cause: unknown) =>
		response.destroy(cause as Error),
	);
});
server.listen(0, "127.0.0.1", 4096, () => {
	const { port } = server.address() as AddressInfo;
	console.log(JSON.stringify({ url: `http://127.0.0.1:${port}` }));
});
