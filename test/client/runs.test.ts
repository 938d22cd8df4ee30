/** Frames of several runs in one stream: each run is judged on its own. */

import { expect, it } from "vitest";
import { createRunFolds, createRunVerifier } from "../../packages/client/src/client.ts";
import { checksumOf, crc32, type Frame, messageIdOf } from "../../packages/protocol/src/protocol.ts";

/** A run that says one word. */
function frames(run_id: string, word: string, checksum = checksumOf(crc32(word))): Frame[] {
	const message_id = messageIdOf(run_id, 1);
	return [
		{
			type: "stream.begin",
			message_id,
			run_id,
			trace_id: "0".repeat(32),
			correlation_group: run_id,
			modality: "text",
			content_type: "text/plain",
			ts: 1,
		},
		{ type: "stream.chunk", message_id, seq_no: 1, payload: word, is_partial: true, ts: 2 },
		{
			type: "stream.end",
			message_id,
			total_chunks: 1,
			checksum,
			final: true,
			reason: "completed",
			usage: { input: -1, output: -1 },
			ts: 3,
		},
	];
}

const DAMAGED = "crc32:00000000";

it("a session continues after a damaged run, and the next run is complete", () => {
	const verifier = createRunVerifier();
	const checked = [...frames("run_1", "one", DAMAGED), ...frames("run_2", "two")].map((frame) => verifier.push(frame));
	const ends = checked.filter(({ end }) => end);
	expect(ends.map(({ runId, violation }) => [runId, violation?.kind])).toEqual([
		["run_1", "wrong_checksum"],
		["run_2", undefined],
	]);
});

it("begun in the middle of a run, judges every run but that one", () => {
	const verifier = createRunVerifier({ partial: true });
	const stream = [...frames("run_1", "one").slice(2), ...frames("run_2", "two"), ...frames("run_3", "three", DAMAGED)];
	const ends = stream.map((frame) => verifier.push(frame)).filter(({ end }) => end);
	expect(ends.map(({ violation }) => violation?.kind)).toEqual([undefined, undefined, "wrong_checksum"]);
});

it("folds each run into a separate view, and yields the views that changed", () => {
	const folds = createRunFolds();
	const [begin, ...rest] = frames("run_1", "one");
	expect(folds.push(begin!)).toEqual({ runId: "run_1", began: true, settled: false });
	expect(folds.changed()).toHaveLength(1);
	expect(folds.changed()).toEqual([]);
	for (const frame of [...rest, ...frames("run_2", "two")]) folds.push(frame);
	expect(folds.changed().map((view) => [view.runId, view.final, view.messages[0]?.text])).toEqual([
		["run_1", true, "one"],
		["run_2", true, "two"],
	]);
});
