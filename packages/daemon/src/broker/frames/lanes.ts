/** The messages of one run, agent by agent: which text, reasoning and part streams are open, and when each ends. */

import { type Align, NexusError } from "@nexus-stream/protocol";
import type { EngineEvent } from "@nexus-stream/protocol/engine";
import { checkAgent, checkPart, isNamed, malformed, type PartEvent } from "../run/engine-event.ts";
import { DONE, type FramedStream, type RunStreams, type Speaker } from "./streams.ts";
import { partPiecesOf, piecesOf } from "./text.ts";

/** Open streams of one agent; agents work side by side (P1.16). The lane without an agent belongs to the engine itself. */
export interface MessageLane extends Speaker {
	visible: boolean;
	/** Its newest message. */
	text: FramedStream | undefined;
	/** The newest message takes more text. */
	speaks: boolean;
	reasoning: FramedStream | undefined;
	/** By modality. */
	readonly parts: Map<string, FramedStream>;
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

export class AgentLanes {
	readonly #streams: RunStreams;
	/** A message's text is one chunk (P1.14). */
	readonly #isWhole: boolean;
	readonly #lanes: Map<string | undefined, MessageLane>;
	/** The lane of the last event: usually the next event belongs to it too. */
	#current: MessageLane;
	#phase: string | undefined;

	constructor(streams: RunStreams, isWhole: boolean) {
		this.#streams = streams;
		this.#isWhole = isWhole;
		this.#current = newLane(undefined);
		this.#lanes = new Map([[undefined, this.#current]]);
	}

	get current(): MessageLane {
		return this.#current;
	}

	/** The session's phase, for the ends of messages from now on. */
	enter(phase: string): void {
		this.#phase = phase;
	}

	/** Makes the agent's lane the current one, with a message that takes the event. */
	turnTo(agent: string | undefined, ts: number): MessageLane {
		if (agent !== this.#current.agent) this.#current = this.of(agent);
		const lane = this.#current;
		if (!lane.speaks) this.openMessage(lane, ts);
		return lane;
	}

	of(agent: string | undefined): MessageLane {
		const found = this.#lanes.get(agent);
		if (found) return found;
		checkAgent(agent);
		if (this.#lanes.size > AGENTS_MAX)
			throw new NexusError("engine_failed", `The engine named more than ${AGENTS_MAX} agents in one run.`);
		const lane = newLane(agent);
		this.#lanes.set(agent, lane);
		return lane;
	}

	text({ agent, delta }: Delta, ts: number): void {
		const lane = this.turnTo(agent, ts);
		if (lane.reasoning) this.endReasoning(lane, ts);
		if (this.#isWhole) lane.held += delta;
		else this.#streams.partial(lane.text!, delta, ts);
	}

	reasoning({ agent, delta }: Delta, ts: number): void {
		const lane = this.turnTo(agent, ts);
		this.#release(lane, false, ts);
		lane.reasoning ??= this.#streams.begin(lane, "reasoning", "text/plain", ts);
		this.#streams.partial(lane.reasoning, delta, ts);
	}

	endReasoning(lane: MessageLane, ts: number): void {
		if (lane.reasoning) this.#streams.end(lane.reasoning, DONE, ts);
		lane.reasoning = undefined;
	}

	/** Ends the lane's reasoning and sends its held text, so that an attachment or a tool stands behind them. */
	settle(lane: MessageLane, ts: number): void {
		this.#release(lane, false, ts);
		this.endReasoning(lane, ts);
	}

	/** Begins a message, unless the agent's current one is still empty. */
	message({ agent, visible = true }: Extract<EngineEvent, { type: "message" }>, ts: number): void {
		if (typeof visible !== "boolean") throw malformed({ type: "message", agent, visible });
		const lane = this.of(agent);
		this.#current = lane;
		this.#release(lane, true, ts);
		this.endReasoning(lane, ts);
		if (lane.speaks && lane.text!.seqNo === 0 && lane.visible === visible) return;
		this.#endMessage(lane, ts);
		lane.visible = visible;
		this.openMessage(lane, ts);
	}

	/** The newest message stays open until the next one begins: its end may become the end of the run. */
	messageEnd(agent: string | undefined, ts: number): void {
		const lane = this.#lanes.get(agent);
		if (!lane?.speaks) return;
		this.#release(lane, true, ts);
		if (lane.text !== this.#streams.newestText) this.#endMessage(lane, ts);
		else {
			this.#endAttached(lane, ts);
			lane.speaks = false;
		}
	}

	/** Ends the message of every agent. */
	endAll(ts: number): void {
		for (const agent of this.#lanes.keys()) this.messageEnd(agent, ts);
	}

	/** Sends all held text. `isWhole`: nothing more follows. */
	releaseAll(isWhole: boolean, ts: number): void {
		for (const lane of this.#lanes.values()) this.#release(lane, isWhole, ts);
	}

	/** Ends the messages that get nothing more: those reported as whole, and the engine's own when an agent begins to speak. */
	openMessage(lane: MessageLane, ts: number): void {
		for (const other of this.#lanes.values()) {
			if (!other.speaks || (other.agent === undefined && lane.agent !== undefined)) this.#endMessage(other, ts);
		}
		lane.text = this.#streams.begin(lane, "text", "text/markdown", ts);
		lane.speaks = true;
	}

	factsOf({ agent }: FramedStream): { model?: string; phase?: string } {
		return { model: this.#lanes.get(agent)?.model, phase: this.#phase };
	}

	usage({ agent, model }: Extract<EngineEvent, { type: "usage" }>): void {
		const lane = this.#lanes.get(agent);
		if (lane && isNamed(model)) lane.model = model;
	}

	/** Parts of one modality in one message are one stream; each stands behind the text that was yielded before it. */
	part(event: PartEvent, ts: number): void {
		checkPart(event);
		const { agent, modality, contentType, payload } = event;
		const lane = this.turnTo(agent, ts);
		this.settle(lane, ts);
		const { messageId, seqNo } = lane.text!;
		const align = seqNo === 0 ? undefined : { message_id: messageId, seq_no: seqNo };
		const pieces = partPiecesOf(payload.toWellFormed(), contentType, this.#streams.bytesMax(modality));
		if (modality === "image" || pieces.length > 1) this.#wholePart(lane, event, pieces, align, ts);
		else {
			const stream = this.#partStream(lane, event, ts);
			this.#streams.chunk(stream, payload.toWellFormed(), false, align, ts, contentType);
		}
	}

	/** A part with a known number of chunks gets its own stream, after the earlier ones of its modality. */
	#wholePart(
		lane: MessageLane,
		{ modality, contentType }: PartEvent,
		pieces: readonly string[],
		align: Align | undefined,
		ts: number,
	): void {
		const before = lane.parts.get(modality);
		if (before) this.#streams.end(before, DONE, ts);
		lane.parts.delete(modality);
		const stream = this.#streams.begin(lane, modality, contentType, ts, pieces.length);
		for (const [n, piece] of pieces.entries()) this.#streams.chunk(stream, piece, n < pieces.length - 1, align, ts);
		this.#streams.end(stream, DONE, ts);
	}

	#partStream(lane: MessageLane, { modality, contentType }: PartEvent, ts: number): FramedStream {
		const open = lane.parts.get(modality);
		if (open) return open;
		const stream = this.#streams.begin(lane, modality, contentType, ts);
		lane.parts.set(modality, stream);
		return stream;
	}

	#endMessage(lane: MessageLane, ts: number): void {
		lane.speaks = false;
		const { text } = lane;
		if (text === undefined || !this.#streams.isOpen(text)) return;
		this.#release(lane, true, ts);
		this.#endAttached(lane, ts);
		this.#streams.end(text, DONE, ts, this.factsOf(text));
	}

	/** Ends the reasoning and the parts of a message. */
	#endAttached(lane: MessageLane, ts: number): void {
		this.endReasoning(lane, ts);
		for (const part of lane.parts.values()) this.#streams.end(part, DONE, ts);
		lane.parts.clear();
	}

	/** Sends the held text. `isAll`: the message gets no more. */
	#release(lane: MessageLane, isAll: boolean, ts: number): void {
		if (lane.held === "") return;
		const stream = lane.text!;
		const pieces = piecesOf(lane.held.toWellFormed(), stream.bytesMax);
		lane.held = "";
		const isWhole = isAll && stream.seqNo === 0 && pieces.length === 1;
		for (const piece of pieces) this.#streams.chunk(stream, piece, !isWhole, undefined, ts);
	}
}
