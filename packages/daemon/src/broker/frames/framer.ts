/** EngineEvents → frames of one run: which event belongs to which stream, agent by agent. No I/O; records go to the sink that is passed in. */

import { type Align, type Frame, isToolDone, NexusError, type Usage, type UsageShare } from "@nexus-stream/protocol";
import type { EngineEvent } from "../../engine/engine.ts";
import {
	checkAgent,
	checkedTool,
	checkPart,
	checkSigned,
	isNamed,
	malformed,
	type PartEvent,
	reportOf,
	type ToolEvent,
} from "../run/engine-event.ts";
import { type Ending, unpairedSummary } from "../settle/ending.ts";
import { partPiecesOf, piecesOf } from "./pieces.ts";
import {
	DONE,
	type FramedStream,
	RunStreams,
	type Sink,
	type Speaker,
	type StreamsOptions,
	type TextStream,
} from "./streams.ts";

export interface FramerOptions extends StreamsOptions {
	/** A message's text is one chunk, once it is whole or something else comes (P1.14). */
	whole?: boolean;
	toolJsonCharsMax: number;
}

/** What one agent has open: agents work side by side (P1.16). The lane without an agent is the engine's own. */
interface AgentOutput extends Speaker {
	visible: boolean;
	/** Its newest message. */
	text: FramedStream | undefined;
	/** That message takes more. */
	speaks: boolean;
	reasoning: FramedStream | undefined;
	/** By modality. */
	readonly parts: Map<string, FramedStream>;
	/** Text that waits until it is whole. */
	held: string;
	/** Which model was used last. */
	model: string | undefined;
}

const newLane = (agent: string | undefined): AgentOutput => ({
	agent,
	visible: true,
	text: undefined,
	speaks: false,
	reasoning: undefined,
	parts: new Map(),
	held: "",
	model: undefined,
});

/** Of one run. */
const AGENTS_MAX = 256;

export class Framer {
	readonly #options: FramerOptions;
	readonly #streams: RunStreams;
	readonly #lanes: Map<string | undefined, AgentOutput>;
	/** Whose event was taken last: most of the time the next one's too. */
	#lane: AgentOutput;
	readonly #tools = new Map<string, FramedStream>();
	#compaction: FramedStream | undefined;
	#phase: string | undefined;

	constructor(options: FramerOptions) {
		this.#options = options;
		this.#streams = new RunStreams(options);
		this.#lane = newLane(undefined);
		this.#lanes = new Map([[undefined, this.#lane]]);
	}

	/** The message that the event taken last belongs to. There is one once the run is open. */
	get text(): TextStream {
		return this.#lane.text!;
	}

	get compacting(): boolean {
		return this.#compaction !== undefined;
	}

	/** Of the streams that have ended. */
	get chunks(): number {
		return this.#streams.chunks;
	}

	/** The final end has been written. */
	get finished(): boolean {
		return this.#streams.finished;
	}

	isToolOpen(callId: string): boolean {
		return this.#tools.has(callId);
	}

	/** Every run begins with a text stream. */
	open(ts: number, sink: Sink): void {
		this.#openMessage(this.#lane, ts, sink);
	}

	/** The event as it was framed: what is too long is cut. Throws `engine_failed` when it is not one of the port's. */
	take(event: EngineEvent, ts: number, sink: Sink): EngineEvent {
		switch (event?.type) {
			case "text":
				if (typeof event.delta !== "string") throw malformed(event);
				if (event.delta !== "") this.#takeText(event, ts, sink);
				return event;
			case "reasoning":
				if (typeof event.delta !== "string") throw malformed(event);
				if (event.delta !== "") this.#takeReasoning(event, ts, sink);
				return event;
			case "message":
				this.#takeMessage(event, ts, sink);
				return event;
			case "message_end":
				this.#takeMessageEnd(this.#lanes.get(event.agent), ts, sink);
				return event;
			case "tool":
				return this.#takeTool(event, ts, sink);
			case "part":
				this.#takePart(event, ts, sink);
				return event;
			case "compaction":
				this.#takeCompaction(event.phase, ts, sink);
				return event;
			case "signed_reasoning":
				checkSigned(event);
				this.#turnTo(event, ts, sink);
				return event;
			case "usage":
				this.#takeUsage(event);
				return event;
			case "phase":
				if (typeof event.name !== "string" || event.name === "") throw malformed(event);
				this.enter(event.name);
				return event;
			// Nobody is shown these.
			case "checkpoint":
			case "log":
				return event;
			default:
				throw malformed(event satisfies never);
		}
	}

	/** Messages join the run here: what anybody says from now on is a message behind them. */
	pause(ts: number, sink: Sink): void {
		for (const lane of this.#lanes.values()) this.#takeMessageEnd(lane, ts, sink);
	}

	/** Data of the run itself, as a stream of its own: where its records are not taken, nothing else misses them. Returns the stream's id. */
	note(payload: string, ts: number, sink: Sink): string {
		const stream = this.#streams.begin(EVERYBODY, "data", "application/json", ts, sink, 1);
		this.#streams.chunk(stream, payload, false, undefined, ts, sink);
		this.#streams.end(stream, DONE, ts, sink);
		return stream.messageId;
	}

	/** The session's phase, which the ends of messages tell from now on. */
	enter(phase: string): void {
		this.#phase = phase;
	}

	/** Ends whatever is open; the newest message last, and its end alone is final (I3). */
	end(ending: Ending, usage: Usage, ts: number, sink: Sink, usageBy: readonly UsageShare[] = []): void {
		for (const lane of this.#lanes.values()) this.#release(lane, ending.reason === "completed", ts, sink);
		const { newestText } = this.#streams;
		// A process may have died between the end of a message and the begin of the next.
		if (!newestText || !this.#streams.isOpen(newestText)) this.open(ts, sink);
		const last = this.#streams.newestText!;
		for (const stream of this.#streams.open) {
			if (stream === last) continue;
			if (stream.tool) {
				const summary = unpairedSummary(ending.reason);
				this.#streams.status(stream, { type: "tool_status", ...stream.tool, status: "failed", summary }, ts, sink);
			}
			this.#streams.end(stream, ending, ts, sink, stream.modality === "text" ? this.#factsOf(stream) : {});
		}
		const shares = usageBy.length === 0 ? {} : { usage_by: [...usageBy] };
		this.#streams.end(last, ending, ts, sink, { usage, ...shares, ...this.#factsOf(last) });
	}

	/** Takes over the state that a record of a dead process left. */
	replay(frame: Frame): void {
		this.#streams.replay(frame);
	}

	/** Makes the event's lane the current one, with a message that takes it. */
	#turnTo({ agent }: { agent?: string }, ts: number, sink: Sink): AgentOutput {
		if (agent !== this.#lane.agent) this.#lane = this.#laneOf(agent);
		const lane = this.#lane;
		if (!lane.speaks) this.#openMessage(lane, ts, sink);
		return lane;
	}

	#laneOf(agent: string | undefined): AgentOutput {
		const known = this.#lanes.get(agent);
		if (known) return known;
		checkAgent(agent);
		if (this.#lanes.size > AGENTS_MAX)
			throw new NexusError("engine_failed", `The engine named more than ${AGENTS_MAX} agents in one run.`);
		const lane = newLane(agent);
		this.#lanes.set(agent, lane);
		return lane;
	}

	#takeText(event: { delta: string; agent?: string }, ts: number, sink: Sink): void {
		const lane = this.#turnTo(event, ts, sink);
		if (lane.reasoning) this.#endReasoning(lane, ts, sink);
		if (this.#options.whole) lane.held += event.delta;
		else this.#streams.partial(lane.text!, event.delta, ts, sink);
	}

	/** `isAll`: nothing more comes for this message. */
	#release(lane: AgentOutput, isAll: boolean, ts: number, sink: Sink): void {
		if (lane.held === "") return;
		const stream = lane.text!;
		const pieces = piecesOf(lane.held.toWellFormed(), stream.bytesMax);
		lane.held = "";
		const isWhole = isAll && stream.seqNo === 0 && pieces.length === 1;
		for (const piece of pieces) this.#streams.chunk(stream, piece, !isWhole, undefined, ts, sink);
	}

	#takeReasoning(event: { delta: string; agent?: string }, ts: number, sink: Sink): void {
		const lane = this.#turnTo(event, ts, sink);
		this.#release(lane, false, ts, sink);
		lane.reasoning ??= this.#streams.begin(lane, "reasoning", "text/plain", ts, sink);
		this.#streams.partial(lane.reasoning, event.delta, ts, sink);
	}

	#endReasoning(lane: AgentOutput, ts: number, sink: Sink): void {
		if (lane.reasoning) this.#streams.end(lane.reasoning, DONE, ts, sink);
		lane.reasoning = undefined;
	}

	/** With nothing said yet the agent's current message goes on. */
	#takeMessage({ agent, visible = true }: Extract<EngineEvent, { type: "message" }>, ts: number, sink: Sink): void {
		if (typeof visible !== "boolean") throw malformed({ type: "message", agent, visible });
		const lane = this.#laneOf(agent);
		this.#lane = lane;
		this.#release(lane, true, ts, sink);
		this.#endReasoning(lane, ts, sink);
		if (lane.speaks && lane.text!.seqNo === 0 && lane.visible === visible) return;
		this.#endMessage(lane, ts, sink);
		lane.visible = visible;
		this.#openMessage(lane, ts, sink);
	}

	/** The message that was begun last stays open until the next one begins: it may be the one whose end is the run's. */
	#takeMessageEnd(lane: AgentOutput | undefined, ts: number, sink: Sink): void {
		if (!lane?.speaks) return;
		this.#release(lane, true, ts, sink);
		if (lane.text !== this.#streams.newestText) this.#endMessage(lane, ts, sink);
		else {
			this.#endBeside(lane, ts, sink);
			lane.speaks = false;
		}
	}

	#isOpen({ text }: AgentOutput): boolean {
		return text !== undefined && this.#streams.isOpen(text);
	}

	/** Ends the messages that nothing more comes for: those said to be whole, and the engine's own when an agent begins to speak. */
	#openMessage(lane: AgentOutput, ts: number, sink: Sink): void {
		for (const other of this.#lanes.values()) {
			if (!other.speaks || (other.agent === undefined && lane.agent !== undefined)) this.#endMessage(other, ts, sink);
		}
		lane.text = this.#streams.begin(lane, "text", "text/markdown", ts, sink);
		lane.speaks = true;
	}

	#endMessage(lane: AgentOutput, ts: number, sink: Sink): void {
		lane.speaks = false;
		if (!this.#isOpen(lane)) return;
		this.#release(lane, true, ts, sink);
		this.#endBeside(lane, ts, sink);
		this.#streams.end(lane.text!, DONE, ts, sink, this.#factsOf(lane.text!));
	}

	/** What stands beside a message's text. */
	#endBeside(lane: AgentOutput, ts: number, sink: Sink): void {
		this.#endReasoning(lane, ts, sink);
		for (const part of lane.parts.values()) this.#streams.end(part, DONE, ts, sink);
		lane.parts.clear();
	}

	#factsOf({ agent }: FramedStream): { model?: string; phase?: string } {
		const model = this.#lanes.get(agent)?.model;
		const phase = this.#phase;
		return { model, phase };
	}

	#takeTool(said: ToolEvent, ts: number, sink: Sink): ToolEvent {
		const event = checkedTool(said, this.#options.toolJsonCharsMax);
		const known = this.#tools.get(event.callId);
		// A call that outlives its message opens no other.
		const lane = known ? this.#laneOf(known.agent) : this.#turnTo(event, ts, sink);
		this.#release(lane, false, ts, sink);
		this.#endReasoning(lane, ts, sink);
		const stream = known ?? this.#beginTool(lane, event, ts, sink);
		this.#streams.status(stream, { type: "tool_status", ...stream.tool!, ...reportOf(event) }, ts, sink);
		if (isToolDone(event.status)) {
			this.#streams.end(stream, DONE, ts, sink);
			this.#tools.delete(event.callId);
		}
		return event;
	}

	/** Calls of an agent whose words are hidden are shown all the same. */
	#beginTool({ agent }: AgentOutput, { name, callId }: ToolEvent, ts: number, sink: Sink): FramedStream {
		const stream = this.#streams.begin({ agent, visible: true }, "tool", "application/json", ts, sink);
		stream.tool = { toolName: name, toolCallId: callId };
		this.#tools.set(callId, stream);
		return stream;
	}

	/** Parts of one modality in one message are one stream; each waits for the text that was yielded before it. */
	#takePart(event: PartEvent, ts: number, sink: Sink): void {
		checkPart(event);
		const { modality, contentType, payload } = event;
		const lane = this.#turnTo(event, ts, sink);
		this.#release(lane, false, ts, sink);
		this.#endReasoning(lane, ts, sink);
		const { messageId, seqNo } = lane.text!;
		const align = seqNo === 0 ? undefined : { message_id: messageId, seq_no: seqNo };
		const pieces = partPiecesOf(payload.toWellFormed(), contentType, this.#streams.bytesMax(modality));
		if (modality === "image" || pieces.length > 1) this.#wholePart(lane, event, pieces, align, ts, sink);
		else {
			const stream = this.#partStream(lane, event, ts, sink);
			this.#streams.chunk(stream, payload.toWellFormed(), false, align, ts, sink, contentType);
		}
	}

	/** One whose number of chunks is known: a stream of its own, after those of its modality that came before. */
	#wholePart(
		lane: AgentOutput,
		{ modality, contentType }: PartEvent,
		pieces: readonly string[],
		align: Align | undefined,
		ts: number,
		sink: Sink,
	): void {
		const before = lane.parts.get(modality);
		if (before) this.#streams.end(before, DONE, ts, sink);
		lane.parts.delete(modality);
		const stream = this.#streams.begin(lane, modality, contentType, ts, sink, pieces.length);
		for (const [n, piece] of pieces.entries()) {
			this.#streams.chunk(stream, piece, n < pieces.length - 1, align, ts, sink);
		}
		this.#streams.end(stream, DONE, ts, sink);
	}

	#partStream(lane: AgentOutput, { modality, contentType }: PartEvent, ts: number, sink: Sink): FramedStream {
		const known = lane.parts.get(modality);
		if (known) return known;
		const stream = this.#streams.begin(lane, modality, contentType, ts, sink);
		lane.parts.set(modality, stream);
		return stream;
	}

	#takeCompaction(phase: "start" | "end", ts: number, sink: Sink): void {
		if (phase !== "start" && phase !== "end") throw malformed({ type: "compaction", phase });
		this.#endReasoning(this.#lane, ts, sink);
		this.#compaction ??= this.#streams.begin(EVERYBODY, "data", "application/json", ts, sink);
		this.#streams.chunk(this.#compaction, JSON.stringify({ compaction: phase }), false, undefined, ts, sink);
		if (phase === "start") return;
		this.#streams.end(this.#compaction, DONE, ts, sink);
		this.#compaction = undefined;
	}

	#takeUsage({ agent, model }: Extract<EngineEvent, { type: "usage" }>): void {
		const lane = this.#lanes.get(agent);
		if (lane && isNamed(model)) lane.model = model;
	}
}

/** The run as a whole. */
const EVERYBODY: Speaker = { visible: true };
