/** StreamEvents → frames: the inverse of `createToEvents`, as the reference of the mapping (PROTOCOL §2), and to write logs in tests. */

import {
	type BeginFrame,
	checksumOf,
	crc32,
	type EndFrame,
	type EndReason,
	encodeToolStatus,
	type Frame,
	isToolDone,
	type Modality,
	messageIdOf,
	NexusError,
	type StreamEvent,
	type ToolStatusEvent,
	traceIdOf,
} from "../../packages/protocol/src/protocol.ts";

export interface ToFrames {
	/** The frames that this event is, in order. Throws `invalid` for an event that cannot stand here. */
	push(event: StreamEvent): Frame[];
}

export interface ToFramesOptions {
	runId: string;
	session: string;
	/** Derived from the run's id when left out. */
	traceId?: string;
	/** Milliseconds since the epoch. */
	now: () => number;
}

interface FrameStream {
	readonly messageId: string;
	readonly modality: Modality;
	chunks: number;
	crc: number;
}

/** The open streams of one agent. */
interface AgentStreams {
	readonly agent: string | undefined;
	text: FrameStream | undefined;
	reasoning: FrameStream | undefined;
}

type EndDetails = Pick<EndFrame, "final" | "reason" | "error" | "usage">;

const DONE: EndDetails = { final: false, reason: "completed" };

/** Turns the events of one run, from its stream_start to its final stream_end or stream_error, into its log. */
export function createToFrames(options: ToFramesOptions): ToFrames {
	const { runId, session, traceId = traceIdOf(runId), now } = options;
	/** Open streams in order of opening. */
	const open = new Set<FrameStream>();
	const tools = new Map<string, FrameStream>();
	const lanes = new Map<string | undefined, AgentStreams>();
	let opened = 0;
	let target: unknown;
	let started = false;
	let over = false;

	function laneOf(agent: string | undefined): AgentStreams {
		let lane = lanes.get(agent);
		if (lane === undefined) {
			lane = { agent, text: undefined, reasoning: undefined };
			lanes.set(agent, lane);
		}
		return lane;
	}

	function begin(modality: Modality, contentType: string, { agent }: AgentStreams): [FrameStream, BeginFrame] {
		const messageId = messageIdOf(runId, ++opened);
		const stream: FrameStream = { messageId, modality, chunks: 0, crc: 0 };
		open.add(stream);
		const frame: BeginFrame = {
			type: "stream.begin",
			message_id: messageId,
			run_id: runId,
			trace_id: traceId,
			correlation_group: runId,
			modality,
			content_type: contentType,
			session,
			target,
			agent,
			ts: now(),
		};
		return [stream, frame];
	}

	/** An agent's message is open before anything else of that agent is. */
	function beginText(lane: AgentStreams): Frame[] {
		if (lane.text) return [];
		const [stream, frame] = begin("text", "text/markdown", lane);
		lane.text = stream;
		return [frame];
	}

	function chunk(stream: FrameStream, payload: string): Frame {
		stream.crc = crc32(payload, stream.crc);
		const is_partial = stream.modality !== "tool";
		return {
			type: "stream.chunk",
			message_id: stream.messageId,
			seq_no: ++stream.chunks,
			payload,
			is_partial,
			ts: now(),
		};
	}

	function end(stream: FrameStream, details: EndDetails): Frame {
		open.delete(stream);
		const { messageId: message_id, chunks: total_chunks, crc } = stream;
		return { type: "stream.end", message_id, total_chunks, checksum: checksumOf(crc), ...details, ts: now() };
	}

	/** Reasoning is one stream as long as nothing else of its agent comes between. */
	function endReasoning(lane: AgentStreams): Frame[] {
		const stream = lane.reasoning;
		lane.reasoning = undefined;
		return stream ? [end(stream, DONE)] : [];
	}

	function token(lane: AgentStreams, text: string): Frame[] {
		const frames = [...beginText(lane), ...endReasoning(lane)];
		return [...frames, chunk(lane.text!, text)];
	}

	function reason(lane: AgentStreams, piece: string): Frame[] {
		const frames = beginText(lane);
		if (lane.reasoning === undefined) {
			const [stream, frame] = begin("reasoning", "text/plain", lane);
			lane.reasoning = stream;
			frames.push(frame);
		}
		return [...frames, chunk(lane.reasoning, piece)];
	}

	function tool(lane: AgentStreams, event: ToolStatusEvent): Frame[] {
		const frames = [...beginText(lane), ...endReasoning(lane)];
		const key = JSON.stringify([lane.agent, event.toolCallId]);
		let stream = tools.get(key);
		if (stream === undefined) {
			const [fresh, frame] = begin("tool", "application/json", lane);
			stream = fresh;
			tools.set(key, stream);
			frames.push(frame);
		}
		frames.push(chunk(stream, encodeToolStatus(event)));
		if (isToolDone(event.status)) {
			tools.delete(key);
			frames.push(end(stream, DONE));
		}
		return frames;
	}

	function endMessage(lane: AgentStreams): Frame[] {
		const frames = [...beginText(lane), ...endReasoning(lane), end(lane.text!, DONE)];
		lane.text = undefined;
		return frames;
	}

	/** Everything else ends first; this agent's message ends last. */
	function settle(lane: AgentStreams, reason: EndReason, error?: EndFrame["error"]): Frame[] {
		const frames = beginText(lane);
		over = true;
		const last = lane.text!;
		for (const stream of open) if (stream !== last) frames.push(end(stream, { final: false, reason }));
		const usage = { input: -1, output: -1 };
		return [...frames, end(last, { final: true, reason, ...(error && { error }), usage })];
	}

	/** The message that was begun last. */
	function newestLane(): AgentStreams {
		const newest = [...open].findLast(({ modality }) => modality === "text");
		return [...lanes.values()].find(({ text }) => text !== undefined && text === newest) ?? laneOf(undefined);
	}

	return {
		push(event) {
			if (over) throw new NexusError("invalid", `${event.type} after the end of run ${runId}`);
			if (event.type === "stream_start") {
				if (started) throw new NexusError("invalid", `second stream_start in run ${runId}`);
				if (event.runId !== runId) throw new NexusError("invalid", `stream_start of ${event.runId} in run ${runId}`);
				started = true;
				target = event.target;
				return beginText(laneOf(event.agent));
			}
			if (!started) throw new NexusError("invalid", `${event.type} before stream_start in run ${runId}`);
			switch (event.type) {
				case "token":
					return event.text === "" ? [] : token(laneOf(event.agent), event.text);
				case "reasoning":
					return event.text === "" ? [] : reason(laneOf(event.agent), event.text);
				case "tool_status":
					return tool(laneOf(event.agent), event);
				case "stream_end":
					if (event.final !== false) return settle(laneOf(event.agent), "completed");
					return endMessage(laneOf(event.agent));
				case "stream_error":
					return settle(newestLane(), "error", { code: "engine_failed", message: event.error });
				default:
					return event satisfies never;
			}
		},
	};
}
