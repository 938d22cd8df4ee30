/** A text of its own as a finished log, framed like a run: whatever delivers runs delivers it too. */

import {
	CHUNK_BYTES,
	createToFrames,
	encodeFrame,
	type Frame,
	NexusError,
	newId,
	type StreamEvent,
} from "@nexus-stream/protocol";
import type { Bus } from "../../bus/bus.ts";
import type { Write } from "../../std/write.ts";

/** Of a third of the bytes that a chunk may have: no character takes more. */
const CHUNK_CHARS = Math.floor(CHUNK_BYTES.text / 3);

/** A store that refuses commits is not waited for any longer: whoever asks is told what to do. */
export const PATIENCE_MS = 1000;

/** Resolves with the log's name once it is durable. */
export async function writeTextLog(
	bus: Bus,
	text: string,
	stamp: () => number,
	log = newId("txt", stamp()),
	beside: readonly Write[] = [],
): Promise<string> {
	const pieces = piecesOf(text);
	const events: StreamEvent[] = [
		{ type: "stream_start", runId: log, sessionLabel: "", target: null },
		...pieces.map((piece): StreamEvent => ({ type: "token", text: piece })),
		{ type: "stream_end", runId: log, final: true },
	];
	const toFrames = createToFrames({ runId: log, session: "", now: stamp });
	const records = events.flatMap((event) =>
		toFrames.push(event).map((frame) => encodeFrame(asText(frame, pieces.length))),
	);
	const writer = await bus.create({ log, kind: "text" }, records, { with: beside, patienceMs: PATIENCE_MS });
	await writer.seal([], [], PATIENCE_MS);
	return log;
}

/** It belongs to no session, and all of it is known from the beginning (P1.11, P1.14). */
function asText(frame: Frame, chunks: number): Frame {
	if (frame.type === "stream.chunk" && chunks === 1) return { ...frame, is_partial: false };
	if (frame.type !== "stream.begin") return frame;
	const { session: _session, target: _target, ...rest } = frame;
	return { ...rest, expected_chunks: chunks };
}

/** Never between the halves of a surrogate pair. */
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

/** A process that died between the two writes left the log open: all of it is there. */
export const orphanedTexts = async (bus: Bus): Promise<string[]> =>
	(await bus.list({ kind: "text", orphaned: true })).map(({ log }) => log);

export async function sealOrphan(bus: Bus, log: string): Promise<void> {
	try {
		await (await bus.reopen(log)).seal([], [], PATIENCE_MS);
	} catch (cause) {
		// Another daemon does it, or has done it.
		if (!(cause instanceof NexusError) || (cause.code !== "conflict" && cause.code !== "not_found")) throw cause;
	}
}
