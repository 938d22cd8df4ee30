/** EngineEvents → frames of one run: which event belongs to which stream. No I/O: the records go to the attached log. */

import { type Frame, isToolDone, type Usage, type UsageShare } from "@nexus-stream/protocol";
import type { EngineEvent } from "@nexus-stream/protocol/engine";
import { type Ending, unpairedSummary } from "../ending.ts";
import { checkedTool, checkSigned, malformed, reportOf, type ToolEvent } from "../run/engine-event.ts";
import { AgentLanes } from "./lanes.ts";
import {
	type Append,
	DONE,
	type FramedStream,
	RunStreams,
	type Speaker,
	type StreamsOptions,
	type TextStream,
} from "./streams.ts";

export interface FramerOptions extends StreamsOptions {
	/** A message's text is one chunk, sent once it is whole or another event arrives (P1.14). */
	whole?: boolean;
	toolJsonCharsMax: number;
}

export class Framer {
	readonly #toolJsonCharsMax: number;
	readonly #streams: RunStreams;
	readonly #lanes: AgentLanes;
	readonly #tools = new Map<string, FramedStream>();
	#compaction: FramedStream | undefined;

	constructor({ toolJsonCharsMax, whole = false, ...options }: FramerOptions) {
		this.#toolJsonCharsMax = toolJsonCharsMax;
		this.#streams = new RunStreams(options);
		this.#lanes = new AgentLanes(this.#streams, whole);
	}

	/** The message that the last event belongs to. There is one once the run is open. */
	get text(): TextStream {
		return this.#lanes.current.text!;
	}

	get compacting(): boolean {
		return this.#compaction !== undefined;
	}

	/** Counts the streams that have ended. */
	get chunks(): number {
		return this.#streams.chunks;
	}

	/** The final end has been written. */
	get finished(): boolean {
		return this.#streams.finished;
	}

	/** From now on records go to this log. */
	attach(append: Append): void {
		this.#streams.attach(append);
	}

	/** Runs `write` and returns its records instead of appending them: the caller commits them together with something else. */
	collect(write: () => void): string[] {
		return this.#streams.collect(write);
	}

	isToolOpen(callId: string): boolean {
		return this.#tools.has(callId);
	}

	/** Every run begins with a text stream. */
	open(ts: number): void {
		this.#lanes.openMessage(this.#lanes.current, ts);
	}

	/** Returns the event as it was framed: long values are cut. Throws `engine_failed` for an event that the port does not have. */
	take(event: EngineEvent, ts: number): EngineEvent {
		switch (event?.type) {
			case "text":
				if (typeof event.delta !== "string") throw malformed(event);
				if (event.delta !== "") this.#lanes.text(event, ts);
				return event;
			case "reasoning":
				if (typeof event.delta !== "string") throw malformed(event);
				if (event.delta !== "") this.#lanes.reasoning(event, ts);
				return event;
			case "message":
				this.#lanes.message(event, ts);
				return event;
			case "message_end":
				this.#lanes.messageEnd(event.agent, ts);
				return event;
			case "tool":
				return this.#takeTool(event, ts);
			case "part":
				this.#lanes.part(event, ts);
				return event;
			case "compaction":
				this.#takeCompaction(event.phase, ts);
				return event;
			case "signed_reasoning":
				checkSigned(event);
				this.#lanes.turnTo(event.agent, ts);
				return event;
			case "usage":
				this.#lanes.usage(event);
				return event;
			case "phase":
				if (typeof event.name !== "string" || event.name === "") throw malformed(event);
				this.enter(event.name);
				return event;
			// Not part of the stream.
			case "checkpoint":
			case "log":
				return event;
			default:
				throw malformed(event satisfies never);
		}
	}

	/** Messages join the run here: later text of any agent is a new message behind them. */
	pause(ts: number): void {
		this.#lanes.endAll(ts);
	}

	/** Writes data of the run itself as a separate stream, so that no other stream has a hole when its records are refused. Returns the stream's id. */
	note(payload: string, ts: number): string {
		const stream = this.#streams.begin(RUN, "data", "application/json", ts, 1);
		this.#streams.chunk(stream, payload, false, undefined, ts);
		this.#streams.end(stream, DONE, ts);
		return stream.messageId;
	}

	/** The session's phase, which the ends of messages carry from now on. */
	enter(phase: string): void {
		this.#lanes.enter(phase);
	}

	/** Ends every open stream; the newest message last, and only its end is final (I3). */
	end(ending: Ending, usage: Usage, ts: number, usageBy: readonly UsageShare[] = []): void {
		this.#lanes.releaseAll(ending.reason === "completed", ts);
		const { newestText } = this.#streams;
		// A process may have died between the end of a message and the begin of the next.
		if (!newestText || !this.#streams.isOpen(newestText)) this.open(ts);
		const last = this.#streams.newestText!;
		for (const stream of this.#streams.open) {
			if (stream === last) continue;
			if (stream.tool) {
				const summary = unpairedSummary(ending.reason);
				this.#streams.status(stream, { type: "tool_status", ...stream.tool, status: "failed", summary }, ts);
			}
			this.#streams.end(stream, ending, ts, stream.modality === "text" ? this.#lanes.factsOf(stream) : {});
		}
		const shares = usageBy.length === 0 ? {} : { usage_by: [...usageBy] };
		this.#streams.end(last, ending, ts, { usage, ...shares, ...this.#lanes.factsOf(last) });
	}

	/** Adopts the state of a record that a dead process wrote. */
	replay(frame: Frame): void {
		this.#streams.replay(frame);
	}

	#takeTool(reported: ToolEvent, ts: number): ToolEvent {
		const event = checkedTool(reported, this.#toolJsonCharsMax);
		const open = this.#tools.get(event.callId);
		// The end of a call that outlives its message opens no new message.
		const lane = open ? this.#lanes.of(open.agent) : this.#lanes.turnTo(event.agent, ts);
		this.#lanes.settle(lane, ts);
		const stream = open ?? this.#beginTool(lane, event, ts);
		this.#streams.status(stream, { type: "tool_status", ...stream.tool!, ...reportOf(event) }, ts);
		if (isToolDone(event.status)) {
			this.#streams.end(stream, DONE, ts);
			this.#tools.delete(event.callId);
		}
		return event;
	}

	/** Tool calls are visible even if the agent's text is hidden. */
	#beginTool({ agent }: Speaker, { name, callId }: ToolEvent, ts: number): FramedStream {
		const stream = this.#streams.begin({ agent, visible: true }, "tool", "application/json", ts);
		stream.tool = { toolName: name, toolCallId: callId };
		this.#tools.set(callId, stream);
		return stream;
	}

	#takeCompaction(phase: "start" | "end", ts: number): void {
		if (phase !== "start" && phase !== "end") throw malformed({ type: "compaction", phase });
		this.#lanes.endReasoning(this.#lanes.current, ts);
		this.#compaction ??= this.#streams.begin(RUN, "data", "application/json", ts);
		this.#streams.chunk(this.#compaction, JSON.stringify({ compaction: phase }), false, undefined, ts);
		if (phase === "start") return;
		this.#streams.end(this.#compaction, DONE, ts);
		this.#compaction = undefined;
	}
}

/** The run as a whole, not one of its agents. */
const RUN: Speaker = { visible: true };
