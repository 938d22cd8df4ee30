/**
 * The time line of a run: one lane per stream, a tick per chunk, hatching where nothing came. Zoom with the wheel or the buttons, drag to
 * move, point at a tick to read its chunk.
 */

import type { FrameRecord } from "@nexus-stream/client";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { memo, RoundButton } from "../ui/element.tsx";
import { durationText, plural } from "../ui/format.ts";
import { type Analysis, gapsOf, type TimelineLane } from "./inspect.ts";
import {
	AXIS_PX,
	axisMarks,
	gapThresholdMs,
	heightOf,
	LANE_PX,
	msOf,
	pan,
	tickNear,
	ticksPath,
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
	const [zoomed, setZoomed] = useState<VisibleSpan>();
	const span = useMemo(() => zoomed ?? wholeSpan(analysis.durationMs), [zoomed, analysis.durationMs]);
	const height = heightOf(analysis.lanes.length);
	const change = (next: VisibleSpan) => setZoomed(next.toMs - next.fromMs >= analysis.durationMs ? undefined : next);
	const { hover, handlers } = usePointer({ analysis, span, width, isZoomed: zoomed !== undefined, change, onSeek });
	const middle = (span.fromMs + span.toMs) / 2;
	const hoverX = xOf(analysis.lanes[hover?.lane ?? 0]?.ticks[hover?.tick ?? 0] ?? 0, span, width);
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
				<div class="timeline-drawing" ref={frame}>
					<svg
						width={width}
						height={height}
						role="img"
						aria-label={`${plural(analysis.lanes.length, "stream")} over ${durationText(analysis.durationMs)}; the table below has the numbers`}
						{...handlers}
					>
						<Lanes analysis={analysis} span={span} width={width} />
						{hover && <rect x={hoverX - 1.5} y={AXIS_PX + hover.lane * LANE_PX + 2} width={3} height={LANE_PX - 6} />}
						<rect x={Math.round(Math.min(xOf(atMs, span, width), width - 1))} width={1} height={height} />
					</svg>
					{hover && <HoverText analysis={analysis} records={records} hover={hover} width={width} x={hoverX} />}
				</div>
			</div>
		</section>
	);
}

interface LanesProps {
	analysis: Analysis;
	span: VisibleSpan;
	width: number;
}

const LANE_COLOUR: Readonly<Record<string, string>> = {
	text: "text",
	reasoning: "reasoning",
	tool: "tool",
	card: "part",
	carousel: "part",
	image: "media",
	audio: "media",
};

/** Room for the text of a mark at the right edge. */
const MARK_PX = 50;

/** Drawn again when the run grows or the span changes, and not while the replay moves its cursor. */
const Lanes = memo(({ analysis: { lanes, durationMs }, span, width }: LanesProps) => {
	const thresholdMs = gapThresholdMs(lanes, durationMs);
	return (
		<>
			<pattern id="silence" width={4} height={4} patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
				<path d="M0 0v4" />
			</pattern>
			{axisMarks(span, width / 90).map((mark) => {
				const x = Math.round(xOf(mark, span, width));
				const isLast = x > width - MARK_PX;
				return (
					<g key={mark} class="timeline-mark">
						<rect x={x} y={AXIS_PX - 6} width={1} height={heightOf(lanes.length)} />
						<text font-size={11} x={isLast ? width : x + 3} y={11} text-anchor={isLast ? "end" : "start"}>
							{durationText(mark)}
						</text>
					</g>
				);
			})}
			{lanes.map((lane, index) => (
				<g
					key={lane.messageId}
					class="timeline-lane"
					style={{ color: `var(--lane-${LANE_COLOUR[lane.modality] ?? "other"})` }}
					transform={`translate(0 ${AXIS_PX + index * LANE_PX})`}
				>
					<Lane lane={lane} span={span} width={width} thresholdMs={thresholdMs} />
				</g>
			))}
		</>
	);
});

const BAR_PX_MIN = 3;
/** Parts come when they come; silence means something where a person waits for the next piece. */
const WAITED_FOR: ReadonlySet<string> = new Set(["text", "reasoning", "tool"]);

interface LaneProps extends Pick<LanesProps, "span" | "width"> {
	lane: TimelineLane;
	thresholdMs: number;
}

function Lane({ lane, span, width, thresholdMs }: LaneProps) {
	const within = (x: number) => Math.min(Math.max(-BAR_PX_MIN, x), width + BAR_PX_MIN);
	const begin = xOf(lane.beginMs, span, width);
	// A stream of the last moment stays visible to the left of the cursor.
	const from = within(begin > width ? begin : Math.min(begin, width - BAR_PX_MIN));
	const to = within(xOf(lane.endMs ?? lane.lastMs, span, width));
	const gaps = WAITED_FOR.has(lane.modality) ? gapsOf(lane, thresholdMs) : [];
	const isCut = lane.reason !== undefined && lane.reason !== "completed";
	return (
		<>
			<rect
				class="bar"
				fill-opacity={0.16}
				x={from}
				y={4}
				width={Math.max(BAR_PX_MIN, to - from)}
				height={LANE_PX - 10}
			/>
			{gaps.map(({ fromMs, toMs }) => {
				const left = within(xOf(fromMs, span, width) + 2);
				const right = within(xOf(toMs, span, width) - 1);
				if (right - left < BAR_PX_MIN) return null;
				return <rect key={fromMs} fill="url(#silence)" x={left} y={4} width={right - left} height={LANE_PX - 10} />;
			})}
			<path stroke="currentColor" stroke-width={1.5} d={ticksPath(lane, span, width)} />
			{isCut && <rect class="cut-off" x={to - 1} y={1} width={3} height={LANE_PX - 4} />}
		</>
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
