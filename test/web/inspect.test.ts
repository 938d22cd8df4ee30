/** The inspector's arithmetic: lanes, gaps, rates, the visible span, and the player. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FrameRecord } from "../../packages/client/src/client.ts";
import {
	countAt,
	createAnalyser,
	gapsOf,
	longestGapMs,
	tokensPerSecond,
} from "../../packages/web/src/inspector/inspect.ts";
import { newPlayer, type PlayerInput, stepPlayer } from "../../packages/web/src/inspector/replay.tsx";
import {
	axisMarks,
	msOf,
	pan,
	tickNear,
	type VisibleSpan,
	wholeSpan,
	xOf,
	zoom,
} from "../../packages/web/src/inspector/timeline.ts";

const RUN = "run_00000000000000000000000000";
const frames = (times: readonly number[], endAt: number): FrameRecord[] =>
	[
		{
			type: "stream.begin",
			message_id: `${RUN}.1`,
			run_id: RUN,
			trace_id: "t",
			correlation_group: RUN,
			modality: "text",
			content_type: "text/markdown",
			ts: 1000,
		} as const,
		...times.map(
			(ts, index) =>
				({
					type: "stream.chunk",
					message_id: `${RUN}.1`,
					seq_no: index + 1,
					payload: "ab",
					is_partial: true,
					ts: 1000 + ts,
				}) as const,
		),
		{
			type: "stream.end",
			message_id: `${RUN}.1`,
			total_chunks: times.length,
			checksum: "crc32:00000000",
			final: true,
			reason: "completed",
			ts: 1000 + endAt,
		} as const,
	].map((frame, index) => ({ offset: index + 1, frame }));

function analyse(records: readonly FrameRecord[]) {
	const analyser = createAnalyser();
	analyser.push(records, 0);
	return analyser.result();
}

describe("the analysis of a run", () => {
	it("finds the first text, the rate and the silences", () => {
		const analysis = analyse(frames([200, 300, 400, 2400, 2500], 2600));
		const [lane] = analysis.lanes;
		expect(analysis.firstTextMs).toBe(200);
		expect(analysis.durationMs).toBe(2600);
		expect(tokensPerSecond(analysis, 24)).toBeCloseTo(10);
		expect(tokensPerSecond(analysis, -1)).toBeCloseTo(5 / 2.4);
		expect(lane && gapsOf(lane, 500)).toEqual([{ fromMs: 400, toMs: 2400 }]);
		expect(lane && longestGapMs(lane)).toBe(2000);
	});

	it("time never goes back, even when a clock did", () => {
		expect(analyse(frames([100, 50, 300], 200)).times).toEqual([0, 100, 100, 300, 300]);
	});

	it("piece by piece it is the same as at once", () => {
		const records = frames([1, 5, 9, 20], 30);
		const analyser = createAnalyser();
		for (let count = 1; count <= records.length; count += 1) analyser.push(records.slice(0, count), count - 1);
		expect(analyser.result()).toEqual(analyse(records));
	});

	it("counts what has happened at any time", () => {
		const sorted = fc.array(fc.nat(100)).map((list) => list.sort((a, b) => a - b));
		fc.assert(
			fc.property(sorted, fc.nat(120), (times, at) => {
				expect(countAt(times, at)).toBe(times.filter((time) => time <= at).length);
			}),
		);
	});
});

describe("the visible span", () => {
	const duration = 10_000;
	const move = fc.oneof(
		fc.record({
			factor: fc.double({ min: 0.1, max: 10, noNaN: true }),
			at: fc.double({ min: 0, max: duration, noNaN: true }),
		}),
		fc.record({ by: fc.double({ min: -20_000, max: 20_000, noNaN: true }) }),
	);

	it("stays inside the run however it is zoomed and moved", () => {
		fc.assert(
			fc.property(fc.array(move, { maxLength: 30 }), (moves) => {
				let span: VisibleSpan = wholeSpan(duration);
				for (const step of moves)
					span = "by" in step ? pan(span, step.by, duration) : zoom(span, step.factor, step.at, duration);
				expect(span.fromMs).toBeGreaterThanOrEqual(-0.001);
				expect(span.toMs).toBeLessThanOrEqual(duration + 0.001);
				expect(span.toMs - span.fromMs).toBeGreaterThanOrEqual(4.999);
			}),
		);
	});

	it("maps pixels to times and back, and finds the tick under the pointer", () => {
		const span = { fromMs: 100, toMs: 300 };
		expect(msOf(xOf(150, span, 400), span, 400)).toBeCloseTo(150);
		const [lane] = analyse(frames([100, 120, 200], 300)).lanes;
		expect(lane && tickNear(lane, 118, 5)).toBe(1);
		expect(lane && tickNear(lane, 160, 5)).toBeUndefined();
	});
});

describe("the player", () => {
	const run = (steps: readonly [PlayerInput, number][]) =>
		steps.reduce((player, [input, now]) => stepPlayer(player, input, now), newPlayer(1000));

	it("starts over when played from the end, goes at its speed, and stops at the end", () => {
		expect(run([[{ type: "play" }, 0]]).atMs).toBe(0);
		expect(
			run([
				[{ type: "play" }, 0],
				[{ type: "frame" }, 300],
			]).atMs,
		).toBe(300);
		expect(
			run([
				[{ type: "speed", speed: 4 }, 0],
				[{ type: "play" }, 0],
				[{ type: "frame" }, 100],
			]).atMs,
		).toBe(400);
		expect(
			run([
				[{ type: "play" }, 0],
				[{ type: "frame" }, 5000],
			]),
		).toMatchObject({ atMs: 1000, playing: false });
	});

	it("a change of speed or a pause keeps the place", () => {
		expect(
			run([
				[{ type: "play" }, 0],
				[{ type: "speed", speed: 2 }, 100],
				[{ type: "frame" }, 200],
			]).atMs,
		).toBe(300);
		expect(
			run([
				[{ type: "play" }, 0],
				[{ type: "pause" }, 100],
				[{ type: "frame" }, 900],
			]).atMs,
		).toBe(100);
	});

	it("seeking stays inside the run; a run that grows carries a player at its end along", () => {
		expect(run([[{ type: "seek", atMs: 9999 }, 0]]).atMs).toBe(1000);
		expect(run([[{ type: "seek", atMs: -5 }, 0]]).atMs).toBe(0);
		expect(run([[{ type: "duration", durationMs: 2000 }, 0]]).atMs).toBe(2000);
		expect(
			run([
				[{ type: "seek", atMs: 10 }, 0],
				[{ type: "duration", durationMs: 2000 }, 0],
			]).atMs,
		).toBe(10);
	});
});

describe("the axis", () => {
	it("never writes the same millisecond twice, however short the run", () => {
		expect(axisMarks({ fromMs: 0, toMs: 5 }, 12)).toEqual([0, 1, 2, 3, 4, 5]);
		expect(axisMarks({ fromMs: 0, toMs: 10_000 }, 10)).toEqual(upTo10.map((second) => second * 1000));
	});
});

const upTo10 = Array.from({ length: 11 }, (_, index) => index);
