/** The time line of a run: zoom with the wheel or the buttons, drag to move, point at a tick to read its chunk. */

import type { FrameRecord } from "@nexus-stream/client";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { RoundButton } from "../ui/element.tsx";
import { durationText, plural } from "../ui/format.ts";
import type { Analysis } from "./inspect.ts";
import {
	AXIS_PX,
	drawTimeline,
	heightOf,
	LANE_PX,
	msOf,
	paletteOf,
	pan,
	tickNear,
	type VisibleSpan,
	wholeSpan,
	xOf,
	zoom,
} from "./timeline.ts";

const TICK_REACH_PX = 6;
const HOVER_CHARS_MAX = 160;

interface TimelineProps {
	analysis: Analysis;
	records: readonly FrameRecord[];
	atMs: number;
	onSeek(atMs: number): void;
}

interface Hover {
	readonly lane: number;
	readonly tick: number;
}

export function Timeline({ analysis, records, atMs, onSeek }: TimelineProps) {
	const { frame, width } = useWidth();
	const canvas = useRef<HTMLCanvasElement>(null);
	const [zoomed, setZoomed] = useState<VisibleSpan>();
	const span = zoomed ?? wholeSpan(analysis.durationMs);
	const height = heightOf(analysis.lanes.length);
	const change = (next: VisibleSpan) => setZoomed(next.toMs - next.fromMs >= analysis.durationMs ? undefined : next);
	const { hover, handlers } = usePointer({ analysis, span, width, isZoomed: zoomed !== undefined, change, onSeek });
	const middle = (span.fromMs + span.toMs) / 2;
	useLayoutEffect(() => {
		const element = canvas.current;
		const context = element?.getContext("2d");
		if (!element || !context) return;
		const ratio = devicePixelRatio || 1;
		element.width = width * ratio;
		element.height = height * ratio;
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		drawTimeline({ canvas: context, palette: paletteOf(element), analysis, span, widthPx: width, atMs, hover });
	});
	return (
		<section class="timeline" aria-label="Time line">
			<div class="row timeline-tools">
				<span class="note">One lane per stream, one tick per chunk; hatched: silence</span>
				<RoundButton
					label="Zoom out"
					icon="zoomOut"
					onClick={() => change(zoom(span, 0.5, middle, analysis.durationMs))}
				/>
				<RoundButton
					label="Zoom in"
					icon="zoomIn"
					onClick={() => change(zoom(span, 2, zoomed ? middle : atMs, analysis.durationMs))}
				/>
			</div>
			<div class="box timeline-body">
				<ol class="timeline-names">
					{analysis.lanes.map((lane) => (
						<li key={lane.messageId} class="cut">
							{lane.label}
						</li>
					))}
				</ol>
				<div class="timeline-canvas" ref={frame}>
					<canvas
						ref={canvas}
						style={{ width: `${width}px`, height: `${height}px` }}
						role="img"
						aria-label={`${plural(analysis.lanes.length, "stream")} over ${durationText(analysis.durationMs)}; the table below has the numbers`}
						{...handlers}
					/>
					{hover && (
						<HoverText
							analysis={analysis}
							records={records}
							hover={hover}
							width={width}
							x={xOf(analysis.lanes[hover.lane]?.ticks[hover.tick] ?? 0, span, width)}
						/>
					)}
				</div>
			</div>
		</section>
	);
}

/** The width of the frame in pixels. */
function useWidth() {
	const frame = useRef<HTMLDivElement>(null);
	const [width, setWidth] = useState(600);
	useEffect(() => {
		if (!frame.current) return undefined;
		const observer = new ResizeObserver(
			([entry]) => entry && setWidth(Math.max(100, Math.floor(entry.contentRect.width))),
		);
		observer.observe(frame.current);
		return () => observer.disconnect();
	}, []);
	return { frame, width };
}

interface PointerOptions extends Pick<TimelineProps, "analysis" | "onSeek"> {
	span: VisibleSpan;
	width: number;
	isZoomed: boolean;
	change(span: VisibleSpan): void;
}

const positionOf = (event: MouseEvent) => {
	const box = (event.currentTarget as Element).getBoundingClientRect();
	return { x: event.clientX - box.left, y: event.clientY - box.top };
};

/** Zooms with the wheel, moves by dragging, seeks with a click, and finds the tick under the pointer. */
function usePointer({ analysis, span, width, isZoomed, change, onSeek }: PointerOptions) {
	const [hover, setHover] = useState<Hover>();
	const drag = useRef<{ x: number; moved: boolean } | undefined>(undefined);
	const { durationMs } = analysis;
	const spanMs = span.toMs - span.fromMs;
	const onWheel = (event: WheelEvent) => {
		if (!event.ctrlKey && Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
			event.preventDefault();
			return change(pan(span, msOf(event.deltaX, span, width) - span.fromMs, durationMs));
		}
		if (!event.ctrlKey && !event.altKey) return;
		event.preventDefault();
		change(zoom(span, event.deltaY < 0 ? 1.3 : 1 / 1.3, msOf(positionOf(event).x, span, width), durationMs));
	};
	const onPointerDown = (event: PointerEvent) => {
		drag.current = { x: positionOf(event).x, moved: false };
	};
	const onPointerMove = (event: PointerEvent) => {
		const { x, y } = positionOf(event);
		if (drag.current && event.buttons === 1) {
			const byPx = drag.current.x - x;
			if (Math.abs(byPx) < 3 && !drag.current.moved) return;
			drag.current = { x, moved: true };
			if (isZoomed) change(pan(span, (byPx / width) * spanMs, durationMs));
			return;
		}
		const index = Math.floor((y - AXIS_PX) / LANE_PX);
		const lane = analysis.lanes[index];
		const tick = lane && tickNear(lane, msOf(x, span, width), (TICK_REACH_PX / width) * spanMs);
		setHover(tick === undefined ? undefined : { lane: index, tick });
	};
	const onPointerUp = (event: PointerEvent) => {
		if (drag.current && !drag.current.moved) onSeek(msOf(positionOf(event).x, span, width));
		drag.current = undefined;
	};
	const onPointerLeave = () => setHover(undefined);
	return { hover, handlers: { onWheel, onPointerDown, onPointerMove, onPointerUp, onPointerLeave } };
}

interface HoverProps extends Pick<TimelineProps, "analysis" | "records"> {
	hover: Hover;
	width: number;
	x: number;
}

function HoverText({ analysis, records, hover, width, x }: HoverProps) {
	const lane = analysis.lanes[hover.lane];
	const frame = lane && records[lane.indexes[hover.tick] ?? -1]?.frame;
	if (!lane || frame?.type !== "stream.chunk") return null;
	const onRight = x > width / 2;
	const top = AXIS_PX + (hover.lane + 1) * LANE_PX;
	return (
		<div
			class="timeline-hover"
			style={onRight ? { top: `${top}px`, right: `${Math.max(0, width - x)}px` } : { top: `${top}px`, left: `${x}px` }}
		>
			<strong>
				{lane.label} · chunk {frame.seq_no} · {durationText(lane.ticks[hover.tick] ?? 0)}
			</strong>
			<span>{JSON.stringify(frame.payload.slice(0, HOVER_CHARS_MAX))}</span>
		</div>
	);
}
