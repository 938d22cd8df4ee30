/** The time line: what of it is visible, and its drawing on a canvas: one lane per stream, a tick per chunk, hatching where nothing came. */

import { durationText } from "../ui/format.ts";
import { type Analysis, countAt, type Gap, gapsOf, type TimelineLane } from "./inspect.ts";

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

export interface Palette {
	readonly text: string;
	readonly line: string;
	readonly gap: string;
	readonly bad: string;
	readonly cursor: string;
	readonly lane: (modality: string) => string;
}

const WAITED_FOR: ReadonlySet<string> = new Set(["text", "reasoning", "tool"]);

const MODALITY_VAR: ReadonlyMap<string, string> = new Map([
	["text", "--lane-text"],
	["reasoning", "--lane-reasoning"],
	["tool", "--lane-tool"],
	["card", "--lane-part"],
	["carousel", "--lane-part"],
	["image", "--lane-media"],
	["audio", "--lane-media"],
]);

/** The colours of the page, so that the canvas follows dark and light: it needs them as plain colours, which only `color` resolves to. */
export function paletteOf(element: HTMLElement): Palette {
	const style = getComputedStyle(element);
	const value = (name: string) => {
		element.style.color = `var(${name})`;
		return style.color;
	};
	return {
		text: value("--ink-3"),
		line: value("--line"),
		gap: value("--gap"),
		bad: value("--bad"),
		cursor: value("--ink"),
		lane: (modality) => value(MODALITY_VAR.get(modality) ?? "--lane-other"),
	};
}

export interface Scene {
	readonly canvas: CanvasRenderingContext2D;
	readonly palette: Palette;
	readonly analysis: Analysis;
	readonly span: VisibleSpan;
	readonly widthPx: number;
	readonly atMs: number;
	readonly hover?: { lane: number; tick: number } | undefined;
}

const BAR_PX_MIN = 3;

export const heightOf = (lanes: number): number => AXIS_PX + Math.max(1, lanes) * LANE_PX + 4;

export function drawTimeline(scene: Scene): void {
	const { canvas, palette, analysis, span, widthPx } = scene;
	const height = heightOf(analysis.lanes.length);
	canvas.clearRect(0, 0, widthPx, height);
	drawAxis(scene, height);
	const threshold = gapThresholdMs(analysis.lanes, analysis.durationMs);
	analysis.lanes.forEach((lane, index) => {
		const top = AXIS_PX + index * LANE_PX;
		drawLane(scene, lane, top, threshold);
		if (scene.hover?.lane === index) {
			const x = xOf(lane.ticks[scene.hover.tick] ?? 0, span, widthPx);
			canvas.fillStyle = palette.cursor;
			canvas.fillRect(x - 1.5, top + 2, 3, LANE_PX - 6);
		}
	});
	const x = xOf(scene.atMs, span, widthPx);
	canvas.fillStyle = palette.cursor;
	canvas.fillRect(Math.round(Math.min(x, widthPx - 1)), 0, 1, height);
}

function drawAxis({ canvas, palette, span, widthPx }: Scene, height: number): void {
	canvas.font = "11px system-ui, sans-serif";
	canvas.textBaseline = "top";
	for (const mark of axisMarks(span, widthPx / 90)) {
		const x = Math.round(xOf(mark, span, widthPx));
		canvas.fillStyle = palette.line;
		canvas.fillRect(x, AXIS_PX - 6, 1, height);
		canvas.fillStyle = palette.text;
		const label = durationText(mark);
		canvas.fillText(label, Math.min(x + 3, widthPx - canvas.measureText(label).width), 2);
	}
}

function drawLane(scene: Scene, lane: TimelineLane, top: number, thresholdMs: number): void {
	const { canvas, palette, span, widthPx } = scene;
	const colour = palette.lane(lane.modality);
	const begin = xOf(lane.beginMs, span, widthPx);
	// A stream of the last moment stays visible to the left of the cursor.
	const from = begin > widthPx ? begin : Math.min(begin, widthPx - BAR_PX_MIN);
	const to = xOf(lane.endMs ?? lane.lastMs, span, widthPx);
	canvas.fillStyle = colour;
	canvas.globalAlpha = 0.16;
	canvas.fillRect(from, top + 4, Math.max(BAR_PX_MIN, to - from), LANE_PX - 10);
	canvas.globalAlpha = 1;
	// Parts come when they come; silence means something where a person waits for the next piece.
	if (WAITED_FOR.has(lane.modality)) for (const gap of gapsOf(lane, thresholdMs)) hatch(scene, gap, top);
	drawTicks(scene, lane, top, colour);
	if (lane.reason !== undefined && lane.reason !== "completed") {
		canvas.fillStyle = palette.bad;
		canvas.fillRect(to - 1, top + 1, 3, LANE_PX - 4);
	}
}

/** One bar per pixel column, higher where more chunks fall on it. */
function drawTicks({ canvas, span, widthPx }: Scene, lane: TimelineLane, top: number, colour: string): void {
	const columns = new Map<number, number>();
	for (const at of lane.ticks) {
		if (at < span.fromMs || at > span.toMs) continue;
		const x = Math.min(widthPx - 1, Math.floor(xOf(at, span, widthPx)));
		columns.set(x, (columns.get(x) ?? 0) + 1);
	}
	canvas.fillStyle = colour;
	for (const [x, count] of columns) {
		const height = Math.min(LANE_PX - 8, 8 + 3 * Math.log2(count));
		canvas.fillRect(x, top + (LANE_PX - 2 - height) / 2, 1.5, height);
	}
}

function hatch({ canvas, palette, span, widthPx }: Scene, gap: Gap, top: number): void {
	const left = Math.max(0, xOf(gap.fromMs, span, widthPx) + 2);
	const right = Math.min(widthPx, xOf(gap.toMs, span, widthPx) - 1);
	if (right - left < 3) return;
	canvas.save();
	canvas.beginPath();
	canvas.rect(left, top + 4, right - left, LANE_PX - 10);
	canvas.clip();
	canvas.strokeStyle = palette.gap;
	canvas.lineWidth = 1;
	canvas.beginPath();
	for (let x = left - LANE_PX; x < right; x += 6) {
		canvas.moveTo(x, top + LANE_PX);
		canvas.lineTo(x + LANE_PX, top);
	}
	canvas.stroke();
	canvas.restore();
}
