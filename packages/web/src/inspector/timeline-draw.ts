/** Draws the time line on a canvas: one lane per stream, a tick per chunk, hatching where nothing came. */

import { durationText } from "../ui/format.ts";
import { type Analysis, gapsOf, type TimelineLane } from "./inspect.ts";
import { AXIS_PX, axisMarks, gapThresholdMs, LANE_PX, type VisibleSpan, xOf } from "./timeline.ts";

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
	readonly analysis: Analysis;
	readonly span: VisibleSpan;
	readonly widthPx: number;
	readonly atMs: number;
	readonly hover?: { lane: number; tick: number } | undefined;
}

export const heightOf = (lanes: number): number => AXIS_PX + Math.max(1, lanes) * LANE_PX + 4;

export function drawTimeline(canvas: CanvasRenderingContext2D, scene: Scene, palette: Palette): void {
	const { analysis, span, widthPx } = scene;
	const height = heightOf(analysis.lanes.length);
	canvas.clearRect(0, 0, widthPx, height);
	drawAxis(canvas, scene, palette, height);
	const threshold = gapThresholdMs(analysis.lanes, analysis.durationMs);
	analysis.lanes.forEach((lane, index) => {
		const top = AXIS_PX + index * LANE_PX;
		drawLane(canvas, lane, top, scene, palette, threshold);
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

function drawAxis(canvas: CanvasRenderingContext2D, scene: Scene, palette: Palette, height: number): void {
	canvas.font = "11px system-ui, sans-serif";
	canvas.textBaseline = "top";
	for (const mark of axisMarks(scene.span, scene.widthPx / 90)) {
		const x = Math.round(xOf(mark, scene.span, scene.widthPx));
		canvas.fillStyle = palette.line;
		canvas.fillRect(x, AXIS_PX - 6, 1, height);
		canvas.fillStyle = palette.text;
		const label = durationText(mark);
		canvas.fillText(label, Math.min(x + 3, scene.widthPx - canvas.measureText(label).width), 2);
	}
}

function drawLane(
	canvas: CanvasRenderingContext2D,
	lane: TimelineLane,
	top: number,
	scene: Scene,
	palette: Palette,
	thresholdMs: number,
): void {
	const { span, widthPx } = scene;
	const colour = palette.lane(lane.modality);
	const from = xOf(lane.beginMs, span, widthPx);
	const to = xOf(lane.endMs ?? lane.lastMs, span, widthPx);
	canvas.fillStyle = colour;
	canvas.globalAlpha = 0.16;
	canvas.fillRect(from, top + 4, Math.max(2, to - from), LANE_PX - 10);
	canvas.globalAlpha = 1;
	// Parts come when they come; silence means something where a person waits for the next piece.
	for (const gap of WAITED_FOR.has(lane.modality) ? gapsOf(lane, thresholdMs) : []) {
		hatch(canvas, xOf(gap.fromMs, span, widthPx), xOf(gap.toMs, span, widthPx), top, palette, widthPx);
	}
	drawTicks(canvas, lane, top, scene, colour);
	if (lane.reason !== undefined && lane.reason !== "completed") {
		canvas.fillStyle = palette.bad;
		canvas.fillRect(to - 1, top + 1, 3, LANE_PX - 4);
	}
}

/** One bar per pixel column, higher where more chunks fall on it. */
function drawTicks(
	canvas: CanvasRenderingContext2D,
	lane: TimelineLane,
	top: number,
	scene: Scene,
	colour: string,
): void {
	const columns = new Map<number, number>();
	for (const at of lane.ticks) {
		if (at < scene.span.fromMs || at > scene.span.toMs) continue;
		const x = Math.min(scene.widthPx - 1, Math.floor(xOf(at, scene.span, scene.widthPx)));
		columns.set(x, (columns.get(x) ?? 0) + 1);
	}
	canvas.fillStyle = colour;
	for (const [x, count] of columns) {
		const height = Math.min(LANE_PX - 8, 8 + 3 * Math.log2(count));
		canvas.fillRect(x, top + (LANE_PX - 2 - height) / 2, 1.5, height);
	}
}

function hatch(
	canvas: CanvasRenderingContext2D,
	from: number,
	to: number,
	top: number,
	palette: Palette,
	widthPx: number,
): void {
	const left = Math.max(0, from + 2);
	const right = Math.min(widthPx, to - 1);
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
