/** All frames of a run as they came, with only the visible rows in the document. */

import type { FrameRecord } from "@nexus-stream/client";
import type { Frame } from "@nexus-stream/protocol";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { plural } from "../ui/format.ts";
import { Scrollable } from "../ui/scrollable.tsx";

const ROW_PX = 28;
const ROWS_AROUND = 8;

export interface FramesListProps {
	records: readonly FrameRecord[];
	count: number;
	times: readonly number[];
	/** How many frames the replay has shown: the last of them is marked. */
	shown: number;
	onPick(index: number): void;
}

export function FramesList({ records, count, times, shown, onPick }: FramesListProps) {
	const [filter, setFilter] = useState("");
	const [top, setTop] = useState(0);
	const [open, setOpen] = useState<number>();
	const [height, setHeight] = useState(360);
	const box = useRef<HTMLDivElement>(null);
	const rows = useMemo(() => matching(records, count, filter), [records, count, filter]);
	const total = rows?.length ?? count;
	const first = Math.max(0, Math.floor(top / ROW_PX) - ROWS_AROUND);
	const last = Math.min(total, Math.ceil((top + height) / ROW_PX) + ROWS_AROUND);
	const indexes = Array.from({ length: Math.max(0, last - first) }, (_, row) => rows?.[first + row] ?? first + row);
	useEffect(() => {
		if (box.current) setHeight(box.current.clientHeight);
	}, []);
	const { tabRow, onKeyDown, onFocusRow } = useRowKeys(box, total, first, last);
	const opened = open === undefined ? undefined : records[open];
	return (
		<section class="frames" aria-label="Frames">
			<div class="row wrap frames-tools">
				<h2>Frames</h2>
				<span class="note">
					{rows ? `${total.toLocaleString("en")} of ${plural(count, "frame")}` : plural(count, "frame")}
				</span>
				<input
					type="search"
					placeholder="Filter: text, type or stream"
					aria-label="Filter frames"
					value={filter}
					onInput={(event) => setFilter(event.currentTarget.value)}
				/>
			</div>
			{/* biome-ignore lint/a11y/noStaticElementInteractions: the rows are buttons; this element handles their arrow keys */}
			<div
				class="box frames-box"
				ref={box}
				onKeyDown={onKeyDown}
				onScroll={(event) => setTop(event.currentTarget.scrollTop)}
			>
				<div class="frames-rows" style={{ height: `${total * ROW_PX}px` }}>
					{indexes.map((index, row) => (
						<Row
							key={index}
							record={records[index]}
							atMs={times[index] ?? 0}
							row={first + row}
							tabbable={first + row === tabRow}
							onFocus={() => onFocusRow(first + row)}
							state={index === shown - 1 ? "current" : index < shown ? "shown" : "later"}
							onPick={() => {
								setOpen(index === open ? undefined : index);
								onPick(index);
							}}
						/>
					))}
				</div>
			</div>
			{opened && (
				<Scrollable as="pre" class="box frame-json">
					{JSON.stringify({ offset: opened.offset, ...opened.frame }, null, 2)}
				</Scrollable>
			)}
		</section>
	);
}

/** One stop of the Tab key for the whole list, however long: from there the arrow keys go on. */
function useRowKeys(box: RefObject<HTMLDivElement | null>, total: number, first: number, last: number) {
	const [current, setCurrent] = useState(0);
	/** Where the focus goes once that row has been drawn. */
	const wanted = useRef<number | undefined>(undefined);
	useLayoutEffect(() => {
		if (wanted.current === undefined) return;
		const row = box.current?.querySelector<HTMLElement>(`[data-row="${wanted.current}"]`);
		if (!row) return;
		wanted.current = undefined;
		row.focus({ preventScroll: true });
	});
	const onKeyDown = (event: KeyboardEvent) => {
		const element = box.current;
		if (!element || event.altKey || event.ctrlKey || event.metaKey) return;
		const page = Math.max(1, Math.floor(element.clientHeight / ROW_PX) - 1);
		const to = rowAfter(event.key, current, total, page);
		if (to === undefined) return;
		event.preventDefault();
		wanted.current = to;
		setCurrent(to);
		reveal(element, to);
	};
	// A row that was scrolled away is not in the document: Tab finds the first one instead.
	const tabRow = current >= first && current < last ? current : first;
	return { tabRow, onKeyDown, onFocusRow: setCurrent };
}

/** Where a key leads from a row; undefined when it leads nowhere. */
function rowAfter(key: string, row: number, total: number, page: number): number | undefined {
	const steps: Readonly<Record<string, number>> = {
		ArrowDown: 1,
		ArrowUp: -1,
		PageDown: page,
		PageUp: -page,
		Home: -total,
		End: total,
	};
	const step = steps[key];
	return step === undefined || total === 0 ? undefined : Math.min(total - 1, Math.max(0, row + step));
}

function reveal(box: HTMLElement, row: number): void {
	const top = row * ROW_PX;
	if (top < box.scrollTop) box.scrollTop = top;
	else if (top + ROW_PX > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW_PX - box.clientHeight;
}

interface RowProps {
	record: FrameRecord | undefined;
	atMs: number;
	row: number;
	tabbable: boolean;
	state: "current" | "shown" | "later";
	onPick(): void;
	onFocus(): void;
}

function Row({ record, atMs, row, tabbable, state, onPick, onFocus }: RowProps) {
	if (!record) return null;
	const { frame, offset } = record;
	return (
		<button
			type="button"
			class="frame-row"
			style={{ top: `${row * ROW_PX}px` }}
			tabIndex={tabbable ? 0 : -1}
			data-row={row}
			data-state={state}
			data-type={frame.type}
			onClick={onPick}
			onFocus={onFocus}
		>
			<span class="frame-offset">{offset}</span>
			<span class="frame-time">{(atMs / 1000).toFixed(3)}</span>
			<span class="frame-type">{frame.type.slice("stream.".length)}</span>
			<span class="frame-stream">{frame.message_id.slice(frame.message_id.lastIndexOf(".") + 1)}</span>
			<span class="frame-text">{summaryOf(frame)}</span>
		</button>
	);
}

function summaryOf(frame: Frame): string {
	switch (frame.type) {
		case "stream.begin":
			return `${frame.modality} · ${frame.content_type}`;
		case "stream.chunk":
			return `#${frame.seq_no} ${JSON.stringify(frame.payload.slice(0, 160))}`;
		case "stream.end":
			return `${frame.reason} · ${plural(frame.total_chunks, "chunk")} · ${frame.checksum}${frame.final ? " · final" : ""}`;
		default:
			return frame satisfies never;
	}
}

/** Indexes of the records that contain the words; undefined when there is no filter. */
function matching(records: readonly FrameRecord[], count: number, filter: string): number[] | undefined {
	const wanted = filter.trim().toLowerCase();
	if (wanted === "") return undefined;
	const found: number[] = [];
	for (let index = 0; index < count; index += 1) {
		const frame = records[index]?.frame;
		if (!frame) continue;
		const text = `${frame.type} ${frame.message_id} ${summaryOf(frame)}`;
		if (text.toLowerCase().includes(wanted)) found.push(index);
	}
	return found;
}
