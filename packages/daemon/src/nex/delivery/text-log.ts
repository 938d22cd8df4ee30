/** A text outside a run, written as a finished log with the frames of a run, so that it is delivered the same way. */

import {
	CHUNK_BYTES,
	checksumOf,
	crc32,
	encodeFrame,
	type Frame,
	messageIdOf,
	NexusError,
	newId,
	traceIdOf,
} from "@nexus-stream/protocol";
import type { Bus } from "../../bus/bus.ts";
import type { Write } from "../../std/write.ts";

/** A third of a chunk's bytes: no UTF-16 unit takes more than three. */
const CHUNK_CHARS = Math.floor(CHUNK_BYTES.text / 3);

/** How long a caller waits for a store that refuses commits before it gets an error. */
export const PATIENCE_MS = 1000;

/** Resolves with the log's name once it is durable. */
export async function writeTextLog(
	bus: Bus,
	text: string,
	stamp: () => number,
	log = newId("txt", stamp()),
	writes: readonly Write[] = [],
): Promise<string> {
	const records = framesOf(log, text, stamp()).map(encodeFrame);
	const writer = await bus.create({ log, kind: "text" }, records, { with: writes, patienceMs: PATIENCE_MS });
	await writer.seal([], [], PATIENCE_MS);
	return log;
}

/** The text has no session, and its length is known from the start (P1.11, P1.14). */
function framesOf(log: string, text: string, ts: number): Frame[] {
	const pieces = piecesOf(text);
	const message_id = messageIdOf(log, 1);
	const names = { message_id, run_id: log, trace_id: traceIdOf(log), correlation_group: log };
	const type = { modality: "text", content_type: "text/markdown" } as const;
	const length = { total_chunks: pieces.length, checksum: checksumOf(crc32(text)) };
	const usage = { input: -1, output: -1 };
	const is_partial = pieces.length > 1;
	return [
		{ type: "stream.begin", ...names, ...type, expected_chunks: pieces.length, ts },
		...pieces.map(
			(payload, n): Frame => ({ type: "stream.chunk", message_id, seq_no: n + 1, payload, is_partial, ts }),
		),
		{ type: "stream.end", message_id, ...length, final: true, reason: "completed", usage, ts },
	];
}

/** Never cuts between the halves of a surrogate pair. */
function piecesOf(text: string): string[] {
	const pieces: string[] = [];
	for (let at = 0; at < text.length; ) {
		let end = Math.min(at + CHUNK_CHARS, text.length);
		const last = text.charCodeAt(end - 1);
		if (end < text.length && last >= 0xd800 && last <= 0xdbff) end++;
		pieces.push(text.slice(at, end));
		at = end;
	}
	return pieces;
}

/** Logs that a process left unsealed because it died between the two writes; their text is complete. */
export const orphanedTexts = async (bus: Bus): Promise<string[]> =>
	(await bus.list({ kind: "text", orphaned: true })).map(({ log }) => log);

export async function sealOrphan(bus: Bus, log: string): Promise<void> {
	try {
		await (await bus.reopen(log)).seal([], [], PATIENCE_MS);
	} catch (cause) {
		// Another daemon seals it, or has sealed it.
		if (!(cause instanceof NexusError) || (cause.code !== "conflict" && cause.code !== "not_found")) throw cause;
	}
}
