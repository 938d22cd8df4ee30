/** Folds a run's frames, one by one and at a constant cost each, into what a person sees of it (PROTOCOL §3). */

import type { BeginFrame, ChunkFrame, EndFrame, Frame } from "../frames/frame.ts";
import { decodeToolStatus, isToolDone } from "../frames/stream-event.ts";
import { createVerifier, type Violation, type ViolationKind } from "../frames/verify.ts";
import { type Aligner, createAligner, type GrowingMessage, type GrowingPart, type GrowingStream } from "./align.ts";
import type { MessageView, RunView } from "./view.ts";

export interface Fold {
	push(frame: Frame): void;
	/** A snapshot that never changes. Messages that did not change are the same objects as in the snapshot before. */
	view(): RunView;
}

const VIOLATIONS_MAX = 100;

/** Frames that break these rules have no place in what a person sees; the rest is shown, though perhaps not as verified. */
const MISPLACED: ReadonlySet<ViolationKind> = new Set<ViolationKind>([
	"second_begin",
	"begin_after_final",
	"chunk_before_begin",
	"chunk_after_end",
	"duplicate",
	"end_before_begin",
	"second_end",
	"second_final",
]);

interface State {
	readonly run: Omit<RunView, "messages">;
	readonly messages: GrowingMessage[];
	/** The newest message of each agent. */
	readonly newest: Map<string | undefined, GrowingMessage>;
	readonly streams: Map<string, GrowingStream>;
	readonly aligner: Aligner;
}

export function createFold(): Fold {
	const verifier = createVerifier();
	const streams = new Map<string, GrowingStream>();
	const run: State["run"] = { compacting: false, state: "streaming", final: false, violations: [] };
	const state: State = { run, messages: [], newest: new Map(), streams, aligner: createAligner(streams) };
	let snapshot: RunView | undefined;
	return {
		push(frame) {
			snapshot = undefined;
			const violation = verifier.push(frame);
			if (violation && run.violations.length < VIOLATIONS_MAX) run.violations.push(violation);
			if (violation === undefined || !MISPLACED.has(violation.kind)) apply(state, frame, violation);
		},
		view() {
			snapshot ??= { ...run, violations: [...run.violations], messages: state.messages.map(snapshotOf) };
			return snapshot;
		},
	};
}

function apply(state: State, frame: Frame, violation: Violation | undefined): void {
	if (frame.type === "stream.begin") {
		applyBegin(state, frame);
		return;
	}
	// Only a misplaced frame has no stream, and those do not come here.
	const stream = state.streams.get(frame.message_id)!;
	stream.message.snapshot = undefined;
	if (frame.type === "stream.chunk") applyChunk(state, stream, frame);
	else applyEnd(state, stream, frame, violation);
	state.aligner.advance(stream);
	if (state.run.final) state.aligner.finish();
}

function applyBegin(state: State, frame: BeginFrame): void {
	const { message_id: messageId, modality, ts } = frame;
	state.run.runId ??= frame.run_id;
	if (frame.session !== undefined) state.run.session ??= frame.session;
	state.run.startedAt ??= ts;
	const message = modality === "text" ? openMessage(state, frame) : messageOf(state, frame);
	message.snapshot = undefined;
	const after = message.draft.text.length;
	const stream: GrowingStream = { begin: frame, index: state.streams.size, message, after, lastSeqNo: 0, ended: false };
	if (modality === "reasoning") {
		stream.reasoning = { messageId, text: "", state: "streaming", after, startedAt: ts };
	}
	if (modality === "reasoning" || modality === "tool") message.blocks.push(stream);
	state.streams.set(messageId, stream);
}

/** Its agent's newest message. What comes before any message of its agent belongs to the newest of all. */
const messageOf = (state: State, { agent, ts }: BeginFrame): GrowingMessage =>
	state.newest.get(agent) ?? state.messages.at(-1) ?? newMessage(state, ts);

/** A text stream is a message; the first one takes over what came before any text stream. */
function openMessage(state: State, frame: BeginFrame): GrowingMessage {
	const last = state.messages.at(-1);
	const message = last?.draft.messageId === "" ? last : newMessage(state, frame.ts);
	message.draft.messageId = frame.message_id;
	message.draft.contentType = frame.content_type;
	message.draft.startedAt = frame.ts;
	if (frame.agent !== undefined) message.draft.agent = frame.agent;
	if (frame.visible === false) message.draft.visible = false;
	state.newest.set(frame.agent, message);
	return message;
}

function newMessage(state: State, startedAt: number): GrowingMessage {
	const draft: GrowingMessage["draft"] = {
		messageId: "",
		contentType: "text/plain",
		text: "",
		state: "streaming",
		startedAt,
	};
	const message: GrowingMessage = { draft, blocks: [], parts: [], seqNos: [], lengths: [], snapshot: undefined };
	state.messages.push(message);
	return message;
}

function applyChunk(state: State, stream: GrowingStream, frame: ChunkFrame): void {
	stream.lastSeqNo = frame.seq_no;
	if (stream.begin.modality === "text") {
		const { draft, seqNos, lengths } = stream.message;
		draft.text += frame.payload;
		seqNos.push(frame.seq_no);
		lengths.push(draft.text.length);
		if (draft.visible !== false) state.run.firstTextAt ??= frame.ts;
	} else if (stream.reasoning) {
		stream.reasoning.text += frame.payload;
	} else if (!applyTool(stream, frame) && !applyCompaction(state, stream, frame)) {
		applyPart(state, stream, frame);
	}
}

/** False when the payload is not a tool_status: the chunk is then kept as a part. */
function applyTool(stream: GrowingStream, frame: ChunkFrame): boolean {
	const event = stream.begin.modality === "tool" ? decodeToolStatus(frame.payload) : undefined;
	if (event === undefined) return false;
	stream.tool ??= {
		messageId: frame.message_id,
		callId: event.toolCallId,
		name: event.toolName,
		status: event.status,
		after: stream.after,
		startedAt: frame.ts,
	};
	const { tool } = stream;
	tool.status = event.status;
	if (event.summary !== undefined) tool.summary = event.summary;
	if (event.args !== undefined) tool.args = event.args;
	if (event.result !== undefined) tool.result = event.result;
	if (event.approval !== undefined) tool.approval = event.approval;
	if (event.question !== undefined) tool.question = event.question;
	if (isToolDone(event.status)) tool.endedAt = frame.ts;
	return true;
}

function applyCompaction(state: State, stream: GrowingStream, frame: ChunkFrame): boolean {
	if (stream.begin.modality !== "data") return false;
	if (frame.payload === '{"compaction":"start"}') state.run.compacting = true;
	else if (frame.payload === '{"compaction":"end"}') state.run.compacting = false;
	// Where messages joined the run: they are the turn's, not the answer's.
	else return injectedIn(frame.payload) !== undefined;
	return true;
}

function applyPart(state: State, stream: GrowingStream, frame: ChunkFrame): void {
	const { unfinished } = stream;
	if (!frame.is_partial) delete stream.unfinished;
	if (unfinished) {
		unfinished.draft.payload += frame.payload;
		unfinished.draft.complete = !frame.is_partial;
		if (unfinished.message) unfinished.message.snapshot = undefined;
		return;
	}
	const draft: GrowingPart["draft"] = {
		messageId: frame.message_id,
		seqNo: frame.seq_no,
		modality: stream.begin.modality,
		contentType: frame.content_type ?? stream.begin.content_type,
		payload: frame.payload,
		complete: !frame.is_partial,
		after: 0,
	};
	const part: GrowingPart = { draft, stream, alignedTo: 0 };
	if (frame.is_partial) stream.unfinished = part;
	state.aligner.add(part, frame.align);
}

function applyEnd(state: State, stream: GrowingStream, frame: EndFrame, violation: Violation | undefined): void {
	stream.ended = true;
	if (stream.begin.modality === "text") {
		const { draft } = stream.message;
		draft.state = frame.reason;
		draft.verified = violation?.kind !== "wrong_count" && violation?.kind !== "wrong_checksum";
		draft.endedAt = frame.ts;
	} else if (stream.reasoning) {
		stream.reasoning.state = frame.reason;
		stream.reasoning.endedAt = frame.ts;
	} else if (stream.tool && !isToolDone(stream.tool.status)) {
		stream.tool.status = "failed";
		stream.tool.endedAt = frame.ts;
	}
	if (frame.usage) state.run.usage = frame.usage;
	if (frame.usage_by) state.run.usageBy = frame.usage_by;
	if (frame.final) settle(state.run, frame);
}

function settle(run: State["run"], frame: EndFrame): void {
	run.final = true;
	run.state = frame.reason;
	run.endedAt = frame.ts;
	run.compacting = false;
	if (frame.error) run.error = frame.error;
	if (frame.synthetic !== undefined) run.synthetic = frame.synthetic;
}

function snapshotOf(message: GrowingMessage): MessageView {
	message.snapshot ??= {
		...message.draft,
		reasoning: message.blocks.flatMap(({ reasoning }) => (reasoning ? [{ ...reasoning }] : [])),
		tools: message.blocks.flatMap(({ tool }) => (tool ? [{ ...tool }] : [])),
		parts: message.parts.map(({ draft }) => ({ ...draft })),
	};
	return message.snapshot;
}

/** Begins the data that names the events of messages which were handed to the engine during the run, where that happened. */
const INJECTED_HEAD = '{"injected":[';

export const encodeInjected = (eventIds: readonly string[]): string => JSON.stringify({ injected: eventIds });

/** Undefined when the data is something else. */
export function injectedIn(payload: string): string[] | undefined {
	if (!payload.startsWith(INJECTED_HEAD)) return undefined;
	try {
		const { injected } = JSON.parse(payload) as { injected: unknown[] };
		return injected.every((eventId) => typeof eventId === "string") ? injected : undefined;
	} catch {
		// An engine's own data may begin like this.
		return undefined;
	}
}
