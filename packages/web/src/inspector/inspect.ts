/** Times of a run's frames: lanes, gaps and rates. */

import type { FrameRecord, LinkPhase } from "@nexus-stream/client";
import type { EndReason, Modality } from "@nexus-stream/protocol";
import type { DeliveryJson, LogEntryJson, RunJson, TraceJson } from "@nexus-stream/protocol/api";
import type { PageView } from "../ui/page.ts";

export interface InspectorState extends PageView {
	readonly runId: string;
	readonly row?: RunJson;
	/** Deliveries of the answer. */
	readonly deliveries?: readonly DeliveryJson[];
	/** The execution log: routing, attempts, reminders. */
	readonly log?: readonly LogEntryJson[];
	/** Grows in place; `count` is its length in this state. */
	readonly records: readonly FrameRecord[];
	readonly count: number;
	readonly link: LinkPhase;
}

/** One stream on the time line. Times are milliseconds since the run's first frame. */
export interface TimelineLane {
	readonly messageId: string;
	readonly modality: Modality;
	readonly label: string;
	readonly beginMs: number;
	/** The time of its last frame so far. */
	lastMs: number;
	endMs?: number;
	reason?: EndReason;
	checksum?: string;
	/** The time of each chunk. */
	readonly ticks: number[];
	/** The record of each chunk, for the text under the pointer. */
	readonly indexes: number[];
	chars: number;
}

export interface Gap {
	readonly fromMs: number;
	readonly toMs: number;
}

export interface Analysis {
	readonly lanes: readonly TimelineLane[];
	/** Time of each record; never decreases, even when the daemon's clock did. */
	readonly times: readonly number[];
	readonly durationMs: number;
	readonly firstTextMs?: number;
	readonly textChars: number;
	readonly textChunks: number;
}

/** Takes records as they arrive; `result` is a snapshot that shares the growing lists. */
export function createAnalyser() {
	const lanes = new Map<string, TimelineLane>();
	const times: number[] = [];
	let origin: number | undefined;
	let firstTextMs: number | undefined;
	let textChars = 0;
	let textChunks = 0;

	function pushOne({ frame }: FrameRecord, index: number): void {
		origin ??= frame.ts;
		const at = Math.max(times.at(-1) ?? 0, frame.ts - origin);
		times.push(at);
		if (frame.type === "stream.begin") {
			const { message_id: messageId, modality, agent } = frame;
			const what = `${modality} ${messageId.slice(messageId.lastIndexOf(".") + 1)}`;
			const label = agent === undefined ? what : `${agent} · ${frame.visible === false ? "hidden " : ""}${what}`;
			lanes.set(messageId, { messageId, modality, label, beginMs: at, lastMs: at, ticks: [], indexes: [], chars: 0 });
			return;
		}
		const lane = lanes.get(frame.message_id);
		if (!lane) return;
		lane.lastMs = at;
		if (frame.type === "stream.end") {
			lane.endMs = at;
			lane.reason = frame.reason;
			lane.checksum = frame.checksum;
			return;
		}
		lane.ticks.push(at);
		lane.indexes.push(index);
		lane.chars += frame.payload.length;
		if (lane.modality !== "text") return;
		firstTextMs ??= at;
		textChars += frame.payload.length;
		textChunks += 1;
	}

	return {
		push(records: readonly FrameRecord[], from: number): void {
			for (let index = from; index < records.length; index += 1) pushOne(records[index]!, index);
		},
		result: (): Analysis => ({
			lanes: [...lanes.values()],
			times,
			durationMs: times.at(-1) ?? 0,
			firstTextMs,
			textChars,
			textChunks,
		}),
	};
}

/** The silences of a lane that are longer than the threshold, between its begin and its end. */
export function gapsOf(lane: TimelineLane, thresholdMs: number): Gap[] {
	const gaps: Gap[] = [];
	let last = lane.beginMs;
	for (const at of [...lane.ticks, lane.endMs ?? lane.lastMs]) {
		if (at - last > thresholdMs) gaps.push({ fromMs: last, toMs: at });
		last = at;
	}
	return gaps;
}

export const longestGapMs = (lane: TimelineLane): number =>
	gapsOf(lane, 0).reduce((most, gap) => Math.max(most, gap.toMs - gap.fromMs), 0);

/** Tokens of text per second, from the first text to the end: the model's count when it gave one, else chunks. */
export function tokensPerSecond(analysis: Analysis, outputTokens: number | undefined): number | undefined {
	const { firstTextMs, durationMs, textChunks } = analysis;
	if (firstTextMs === undefined || durationMs <= firstTextMs) return undefined;
	const tokens = outputTokens !== undefined && outputTokens > 0 ? outputTokens : textChunks;
	return (tokens * 1000) / (durationMs - firstTextMs);
}

/** The number of records up to a time: the first index whose time is later. */
export function countAt(times: readonly number[], atMs: number): number {
	let low = 0;
	let high = times.length;
	while (low < high) {
		const middle = (low + high) >>> 1;
		if (times[middle]! <= atMs) low = middle + 1;
		else high = middle;
	}
	return low;
}

export interface StageBar {
	readonly stage: string;
	readonly ms: number;
	/** Begin and length as shares of the whole duration. */
	readonly from: number;
	readonly share: number;
}

/** The stages on a common scale. Stages may overlap, and the clock may have been set back. */
export function stageBars(stages: TraceJson["stages"]): StageBar[] {
	const begin = Math.min(...stages.map(({ at }) => at));
	const whole = Math.max(1, ...stages.map(({ at, ms }) => at - begin + ms));
	return stages.map(({ stage, at, ms }) => ({ stage, ms, from: (at - begin) / whole, share: Math.max(0, ms) / whole }));
}
