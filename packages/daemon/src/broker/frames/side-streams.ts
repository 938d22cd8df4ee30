/** The streams of one run besides its text and reasoning: tool calls, parts, and data of the run itself. */

import { isToolDone } from "@nexus-stream/protocol";
import { type Ending, UNPAIRED_SUMMARY } from "../ending.ts";
import { checkPart, malformed, type PartEvent, reportOf, type ToolEvent } from "../run/engine-event.ts";
import { DONE, type FramedStream, type RunStreams, type Speaker } from "./streams.ts";
import { partPiecesOf } from "./text.ts";

/** Whom parts belong to. */
export interface PartOwner extends Speaker {
	/** Its newest message. */
	text: FramedStream | undefined;
	/** Open streams of parts, by modality. */
	readonly parts: Map<string, FramedStream>;
}

const JSON_DATA = { modality: "data", contentType: "application/json" } as const;

/** The run as a whole, not one of its agents. */
const RUN: Speaker = { visible: true };

export class SideStreams {
	readonly #streams: RunStreams;
	readonly #tools = new Map<string, FramedStream>();
	#compaction: FramedStream | undefined;

	constructor(streams: RunStreams) {
		this.#streams = streams;
	}

	get compacting(): boolean {
		return this.#compaction !== undefined;
	}

	openTool(callId: string): FramedStream | undefined {
		return this.#tools.get(callId);
	}

	/** Tool calls are visible even if the agent's text is hidden. */
	tool(event: ToolEvent, { agent }: Speaker, ts: number): void {
		const { callId, name } = event;
		let stream = this.#tools.get(callId);
		if (!stream) {
			const kind = { modality: "tool", contentType: "application/json" } as const;
			stream = this.#streams.begin({ agent, visible: true }, kind, ts);
			stream.tool = { toolName: name, toolCallId: callId };
			this.#tools.set(callId, stream);
		}
		this.#streams.status(stream, { type: "tool_status", ...stream.tool!, ...reportOf(event) }, ts);
		if (!isToolDone(event.status)) return;
		this.#streams.end(stream, DONE, ts);
		this.#tools.delete(callId);
	}

	/** The run ends before the call has: it has failed. */
	failTool(stream: FramedStream, { reason }: Ending, ts: number): void {
		const summary = UNPAIRED_SUMMARY[reason];
		this.#streams.status(stream, { type: "tool_status", ...stream.tool!, status: "failed", summary }, ts);
	}

	compaction(phase: "start" | "end", ts: number): void {
		if (phase !== "start" && phase !== "end") throw malformed({ type: "compaction", phase });
		this.#compaction ??= this.#streams.begin(RUN, JSON_DATA, ts);
		this.#streams.chunk(this.#compaction, JSON.stringify({ compaction: phase }), ts);
		if (phase === "start") return;
		this.#streams.end(this.#compaction, DONE, ts);
		this.#compaction = undefined;
	}

	/** Writes data of the run itself as a separate stream, so that no other stream has a hole when its records are refused. Returns the stream's id. */
	note(payload: string, ts: number): string {
		const stream = this.#streams.begin(RUN, { ...JSON_DATA, expectedChunks: 1 }, ts);
		this.#streams.chunk(stream, payload, ts);
		this.#streams.end(stream, DONE, ts);
		return stream.messageId;
	}

	/** Parts of one modality in one message are one stream, but for a part with several chunks; each stands behind the text that was yielded before it. */
	part(owner: PartOwner, event: PartEvent, ts: number): void {
		checkPart(event);
		const { modality, contentType } = event;
		const { messageId, seqNo } = owner.text!;
		const align = seqNo === 0 ? undefined : { message_id: messageId, seq_no: seqNo };
		const payload = event.payload.toWellFormed();
		const pieces = partPiecesOf(payload, contentType, this.#streams.bytesMax(modality));
		const open = owner.parts.get(modality);
		if (modality !== "image" && pieces.length === 1) {
			const stream = open ?? this.#streams.begin(owner, { modality, contentType }, ts);
			owner.parts.set(modality, stream);
			this.#streams.chunk(stream, payload, ts, { align, contentType });
			return;
		}
		// A known number of chunks: its own stream, after the earlier ones of its modality.
		if (open) this.#streams.end(open, DONE, ts);
		owner.parts.delete(modality);
		const stream = this.#streams.begin(owner, { modality, contentType, expectedChunks: pieces.length }, ts);
		for (const [n, piece] of pieces.entries())
			this.#streams.chunk(stream, piece, ts, { align, partial: n < pieces.length - 1 });
		this.#streams.end(stream, DONE, ts);
	}
}
