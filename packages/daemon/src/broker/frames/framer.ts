/** EngineEvents → frames of one run: which event belongs to which stream, and when the messages of its agents begin and end. No I/O. */

import { NexusError, type Usage, type UsageShare } from "@nexus-stream/protocol";
import type { EngineEvent } from "@nexus-stream/protocol/engine";
import type { Ending } from "../ending.ts";
import { checkAgent, checkedTool, checkSigned, isNamed, malformed, type ToolEvent } from "../run/engine-event.ts";
import { type PartOwner, SideStreams } from "./side-streams.ts";
import { DONE, type FramedStream, RunStreams, type StreamsOptions, type TextStream } from "./streams.ts";
import { piecesOf } from "./text.ts";

export interface FramerOptions extends StreamsOptions {
	/** A message's text is one chunk, sent once it is whole or another event arrives (P1.14). */
	whole?: boolean;
	toolJsonCharsMax: number;
}

/** Open streams of one agent; agents work side by side (P1.16). The lane without an agent belongs to the engine itself. */
interface MessageLane extends PartOwner {
	visible: boolean;
	/** The newest message takes more text. */
	speaks: boolean;
	reasoning: FramedStream | undefined;
	/** Text held back until the message is whole. */
	held: string;
	/** The model used last. */
	model: string | undefined;
}

type Delta = Pick<Extract<EngineEvent, { type: "text" | "reasoning" }>, "delta" | "agent">;

const newLane = (agent: string | undefined): MessageLane => ({
	agent,
	visible: true,
	text: undefined,
	speaks: false,
	reasoning: undefined,
	parts: new Map(),
	held: "",
	model: undefined,
});

/** Limit per run. */
const AGENTS_MAX = 256;

export class Framer {
	readonly #toolJsonCharsMax: number;
	readonly #isWhole: boolean;
	/** The records that it makes go through these. */
	readonly streams: RunStreams;
	readonly #side: SideStreams;
	readonly #lanes: Map<string | undefined, MessageLane>;
	/** The lane of the last event: usually the next event belongs to it too. */
	#current: MessageLane;
	#phase: string | undefined;

	constructor({ toolJsonCharsMax, whole = false, ...options }: FramerOptions) {
		this.#toolJsonCharsMax = toolJsonCharsMax;
		this.#isWhole = whole;
		this.streams = new RunStreams(options);
		this.#side = new SideStreams(this.streams);
		this.#current = newLane(undefined);
		this.#lanes = new Map([[undefined, this.#current]]);
	}

	/** The message that the last event belongs to. There is one once the run is open. */
	get text(): TextStream {
		return this.#current.text!;
	}

	get compacting(): boolean {
		return this.#side.compacting;
	}

	isToolOpen(callId: string): boolean {
		return this.#side.openTool(callId) !== undefined;
	}

	/** Every run begins with a text stream. */
	open(ts: number): void {
		this.#openMessage(this.#current, ts);
	}

	/** Returns the event as it was framed: long values are cut. Throws `engine_failed` for an event that the port does not have. */
	take(event: EngineEvent, ts: number): EngineEvent {
		switch (event?.type) {
			case "text":
				if (typeof event.delta !== "string") throw malformed(event);
				if (event.delta !== "") this.#text(event, ts);
				return event;
			case "reasoning":
				if (typeof event.delta !== "string") throw malformed(event);
				if (event.delta !== "") this.#reasoning(event, ts);
				return event;
			case "message":
				this.#message(event, ts);
				return event;
			case "message_end":
				this.#messageEnd(event.agent, ts);
				return event;
			case "tool":
				return this.#tool(event, ts);
			case "part":
				this.#side.part(this.#settle(this.#turnTo(event.agent, ts), ts), event, ts);
				return event;
			case "compaction":
				this.#endReasoning(this.#current, ts);
				this.#side.compaction(event.phase, ts);
				return event;
			case "signed_reasoning":
				checkSigned(event);
				this.#turnTo(event.agent, ts);
				return event;
			case "usage": {
				const lane = this.#lanes.get(event.agent);
				if (lane && isNamed(event.model)) lane.model = event.model;
				return event;
			}
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
		for (const agent of this.#lanes.keys()) this.#messageEnd(agent, ts);
	}

	/** Writes data of the run itself. Returns the stream's id. */
	note(payload: string, ts: number): string {
		return this.#side.note(payload, ts);
	}

	/** The session's phase, which the ends of messages carry from now on. */
	enter(phase: string): void {
		this.#phase = phase;
	}

	/** Ends every open stream; the newest message last, and only its end is final (I3). */
	end(ending: Ending, usage: Usage, ts: number, usageBy: readonly UsageShare[] = []): void {
		for (const lane of this.#lanes.values()) this.#release(lane, ending.reason === "completed", ts);
		const { newestText } = this.streams;
		// A process may have died between the end of a message and the begin of the next.
		if (!newestText || !this.streams.isOpen(newestText)) this.open(ts);
		const last = this.streams.newestText!;
		for (const stream of this.streams.open) {
			if (stream === last) continue;
			if (stream.tool) this.#side.failTool(stream, ending, ts);
			this.streams.end(stream, ending, ts, stream.modality === "text" ? this.#factsOf(stream) : {});
		}
		const shares = usageBy.length === 0 ? {} : { usage_by: [...usageBy] };
		this.streams.end(last, ending, ts, { usage, ...shares, ...this.#factsOf(last) });
	}

	/** The records of `end`; none when a dead process wrote the final end. */
	lastRecords(ending: Ending, usage: Usage, ts: number): string[] {
		return this.streams.finished ? [] : this.streams.collect(() => this.end(ending, usage, ts));
	}

	/** Makes the agent's lane the current one, with a message that takes the event. */
	#turnTo(agent: string | undefined, ts: number): MessageLane {
		if (agent !== this.#current.agent) this.#current = this.#laneOf(agent);
		const lane = this.#current;
		if (!lane.speaks) this.#openMessage(lane, ts);
		return lane;
	}

	#laneOf(agent: string | undefined): MessageLane {
		const found = this.#lanes.get(agent);
		if (found) return found;
		checkAgent(agent);
		if (this.#lanes.size > AGENTS_MAX)
			throw new NexusError("engine_failed", `The engine named more than ${AGENTS_MAX} agents in one run.`);
		const lane = newLane(agent);
		this.#lanes.set(agent, lane);
		return lane;
	}

	#text({ agent, delta }: Delta, ts: number): void {
		const lane = this.#turnTo(agent, ts);
		if (lane.reasoning) this.#endReasoning(lane, ts);
		if (this.#isWhole) lane.held += delta;
		else this.streams.partial(lane.text!, delta, ts);
	}

	#reasoning({ agent, delta }: Delta, ts: number): void {
		const lane = this.#turnTo(agent, ts);
		this.#release(lane, false, ts);
		lane.reasoning ??= this.streams.begin(lane, { modality: "reasoning", contentType: "text/plain" }, ts);
		this.streams.partial(lane.reasoning, delta, ts);
	}

	#endReasoning(lane: MessageLane, ts: number): void {
		if (lane.reasoning) this.streams.end(lane.reasoning, DONE, ts);
		lane.reasoning = undefined;
	}

	/** Ends the lane's reasoning and sends its held text, so that a part or a tool stands behind them. */
	#settle(lane: MessageLane, ts: number): MessageLane {
		this.#release(lane, false, ts);
		this.#endReasoning(lane, ts);
		return lane;
	}

	#tool(reported: ToolEvent, ts: number): ToolEvent {
		const event = checkedTool(reported, this.#toolJsonCharsMax);
		const open = this.#side.openTool(event.callId);
		// The end of a call that outlives its message opens no new message.
		const lane = open ? this.#laneOf(open.agent) : this.#turnTo(event.agent, ts);
		this.#side.tool(event, this.#settle(lane, ts), ts);
		return event;
	}

	/** Begins a message, unless the agent's current one is still empty. */
	#message({ agent, visible = true }: Extract<EngineEvent, { type: "message" }>, ts: number): void {
		if (typeof visible !== "boolean") throw malformed({ type: "message", agent, visible });
		const lane = this.#laneOf(agent);
		this.#current = lane;
		this.#release(lane, true, ts);
		this.#endReasoning(lane, ts);
		if (lane.speaks && lane.text!.seqNo === 0 && lane.visible === visible) return;
		this.#endMessage(lane, ts);
		lane.visible = visible;
		this.#openMessage(lane, ts);
	}

	/** The newest message stays open until the next one begins: its end may become the end of the run. */
	#messageEnd(agent: string | undefined, ts: number): void {
		const lane = this.#lanes.get(agent);
		if (!lane?.speaks) return;
		this.#release(lane, true, ts);
		if (lane.text !== this.streams.newestText) this.#endMessage(lane, ts);
		else {
			this.#endAttached(lane, ts);
			lane.speaks = false;
		}
	}

	/** Ends the messages that get nothing more: those reported as whole, and the engine's own when an agent begins to speak. */
	#openMessage(lane: MessageLane, ts: number): void {
		for (const other of this.#lanes.values()) {
			if (!other.speaks || (other.agent === undefined && lane.agent !== undefined)) this.#endMessage(other, ts);
		}
		lane.text = this.streams.begin(lane, { modality: "text", contentType: "text/markdown" }, ts);
		lane.speaks = true;
	}

	#endMessage(lane: MessageLane, ts: number): void {
		lane.speaks = false;
		const { text } = lane;
		if (text === undefined || !this.streams.isOpen(text)) return;
		this.#release(lane, true, ts);
		this.#endAttached(lane, ts);
		this.streams.end(text, DONE, ts, this.#factsOf(text));
	}

	/** Ends the reasoning and the parts of a message. */
	#endAttached(lane: MessageLane, ts: number): void {
		this.#endReasoning(lane, ts);
		for (const part of lane.parts.values()) this.streams.end(part, DONE, ts);
		lane.parts.clear();
	}

	/** Sends the held text. `isAll`: the message gets no more. */
	#release(lane: MessageLane, isAll: boolean, ts: number): void {
		if (lane.held === "") return;
		const stream = lane.text!;
		const pieces = piecesOf(lane.held.toWellFormed(), stream.bytesMax);
		lane.held = "";
		const partial = !(isAll && stream.seqNo === 0 && pieces.length === 1);
		for (const piece of pieces) this.streams.chunk(stream, piece, ts, { partial });
	}

	#factsOf({ agent }: FramedStream): { model?: string; phase?: string } {
		return { model: this.#lanes.get(agent)?.model, phase: this.#phase };
	}
}
