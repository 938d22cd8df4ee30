/** The time line as numbers: what of it is visible, and where its marks are. */

import { countAt, type TimelineLane } from "./inspect.ts";

/** The visible part of the run. */
export interface VisibleSpan {
	readonly fromMs: number;
	readonly toMs: number;
}

export const LANE_PX = 26;
export const AXIS_PX = 22;
/** Less than this across the whole width would only show rounding. */
const SPAN_MIN_MS = 5;

export const wholeSpan = (durationMs: number): VisibleSpan => ({ fromMs: 0, toMs: Math.max(durationMs, SPAN_MIN_MS) });

export const xOf = (ms: number, span: VisibleSpan, widthPx: number): number =>
	((ms - span.fromMs) / (span.toMs - span.fromMs)) * widthPx;

export const msOf = (x: number, span: VisibleSpan, widthPx: number): number =>
	span.fromMs + (x / Math.max(1, widthPx)) * (span.toMs - span.fromMs);

/** Zooms around a point of time; never shows more than the run. */
export function zoom(span: VisibleSpan, factor: number, aroundMs: number, durationMs: number): VisibleSpan {
	const whole = wholeSpan(durationMs);
	const length = Math.min(whole.toMs, Math.max(SPAN_MIN_MS, (span.toMs - span.fromMs) / factor));
	const share = (aroundMs - span.fromMs) / (span.toMs - span.fromMs);
	return clamp(aroundMs - share * length, length, whole);
}

export function pan(span: VisibleSpan, byMs: number, durationMs: number): VisibleSpan {
	return clamp(span.fromMs + byMs, span.toMs - span.fromMs, wholeSpan(durationMs));
}

function clamp(fromMs: number, length: number, whole: VisibleSpan): VisibleSpan {
	const from = Math.min(Math.max(0, fromMs), Math.max(0, whole.toMs - length));
	return { fromMs: from, toMs: from + length };
}

/** Silence is worth showing when it is long for a person, or long for this run. */
export function gapThresholdMs(lanes: readonly TimelineLane[], durationMs: number): number {
	const steps = lanes.flatMap(({ ticks }) => ticks.slice(1, 2000).map((at, index) => at - ticks[index]!));
	if (steps.length === 0) return Math.max(250, durationMs / 20);
	steps.sort((a, b) => a - b);
	const median = steps[steps.length >> 1]!;
	return Math.max(150, median * 8);
}

/** Round times for the axis, at most `count` of them. */
export function axisMarks(span: VisibleSpan, count: number): number[] {
	const rough = (span.toMs - span.fromMs) / Math.max(1, count);
	const power = 10 ** Math.floor(Math.log10(Math.max(rough, 0.001)));
	const nice = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? rough;
	// The marks are written in whole milliseconds.
	const step = Math.max(1, nice);
	const marks: number[] = [];
	for (let at = Math.ceil(span.fromMs / step) * step; at <= span.toMs; at += step) marks.push(at);
	return marks;
}

/** The chunk of a lane nearest to a time, within `withinMs`. */
export function tickNear(lane: TimelineLane, atMs: number, withinMs: number): number | undefined {
	const after = countAt(lane.ticks, atMs);
	let best: number | undefined;
	for (const index of [after - 1, after]) {
		const at = lane.ticks[index];
		if (at === undefined || Math.abs(at - atMs) > withinMs) continue;
		if (best === undefined || Math.abs(at - atMs) < Math.abs(lane.ticks[best]! - atMs)) best = index;
	}
	return best;
}

export const heightOf = (lanes: number): number => AXIS_PX + Math.max(1, lanes) * LANE_PX + 4;

/** One line per pixel column, higher where more chunks fall on it. */
export function ticksPath({ ticks }: TimelineLane, span: VisibleSpan, widthPx: number): string {
	const columns = new Map<number, number>();
	for (const at of ticks) {
		if (at < span.fromMs || at > span.toMs) continue;
		const x = Math.min(widthPx - 1, Math.floor(xOf(at, span, widthPx)));
		columns.set(x, (columns.get(x) ?? 0) + 1);
	}
	const line = ([x, count]: [number, number]) => {
		const height = Math.min(LANE_PX - 8, 8 + 3 * Math.log2(count));
		return `M${x} ${(LANE_PX - 2 - height) / 2}v${height}`;
	};
	return [...columns].map(line).join("");
}
