/** Scenarios as messages, and back: the one place that knows both spellings (Y1, Y2). */

import type { MessageInitShape } from "@bufbuild/protobuf";
import {
	type Scenario,
	ScenarioType,
	type StreamScenarioResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import {
	type ChunkFrame,
	chunkDecoder,
	decodeFrame,
	type EndFrame,
	frameTypeOf,
	messageIdOf,
	NexusError,
	reasonOfEnd,
} from "@nexus-stream/protocol";
import type { Batch } from "../../bus/bus.ts";
import { EncodedCache } from "../../edge/rpc/rpc.ts";
import { reasonCodeOf, SCENARIO_TYPE, usageMessage } from "../kit/codec.ts";
import { coalesce, type Held, NOTHING_HELD, release, type TextChunk, type Token } from "./coalesce.ts";
import type { ScenarioFacts, ScenarioRequest, ScenarioSpec } from "./port.ts";

/** Step 1, as far as the message itself goes: `invalid` for what is not there, or says two things. */
export function scenarioRequestOf(
	scenario: Scenario | undefined,
	metadata: ScenarioRequest["metadata"],
): ScenarioRequest {
	if (!scenario) throw new NexusError("invalid", "scenario is missing");
	const { head, scenarioType } = scenario;
	if (!head) throw new NexusError("invalid", "scenario.head is missing");
	const { spec, audio } = specOf(scenario.spec);
	if (scenarioType !== ScenarioType.UNSPECIFIED && scenarioType !== SCENARIO_TYPE[spec.kind])
		throw new NexusError("invalid", "scenario_type does not agree with the specification");
	return {
		head: {
			appId: head.appId,
			userId: head.subjectUserId,
			model: head.modelId || undefined,
			connectorId: head.connectorId || undefined,
			timeoutMs: head.timeoutMs || undefined,
		},
		spec,
		metadata,
		audio,
	};
}

function specOf(spec: Scenario["spec"]): { spec: ScenarioSpec; audio?: NonNullable<ScenarioRequest["audio"]> } {
	switch (spec.case) {
		case "textGenerate": {
			const { systemPrompt, messages, temperature, maxTokens } = spec.value;
			// Which roles there are is checked with the rest.
			const said = messages.map(({ role, text }) => ({ role: role as "user", text }));
			return { spec: { kind: "text", system: systemPrompt || undefined, messages: said, temperature, maxTokens } };
		}
		case "speechSynthesize": {
			const { text, voice, mimeType } = spec.value;
			return { spec: { kind: "speech", text, voice: voice || undefined, mimeType: mimeType || undefined } };
		}
		case "imageGenerate": {
			const { prompt, size, count } = spec.value;
			return { spec: { kind: "image", prompt, size: size || undefined, count: count || undefined } };
		}
		case "textEmbed":
			return { spec: { kind: "embed", inputs: spec.value.inputs } };
		case "speechTranscribe": {
			const { artifactId, mimeType, language, audio: data } = spec.value;
			const audio = data.length > 0 ? { mimeType, data } : undefined;
			const asked = { artifactId, mimeType: mimeType || undefined, language: language || undefined };
			return { spec: { kind: "transcribe", ...asked }, audio };
		}
		case undefined:
			throw new NexusError("invalid", "the scenario has no specification, such as text_generate");
		default:
			return spec satisfies never;
	}
}

/** The type of the sound that begins in these records. */
export function audioTypeIn({ records }: Batch): string | undefined {
	for (const record of records) {
		if (frameTypeOf(record) !== "stream.begin") continue;
		const frame = decodeFrame(record);
		if (frame.type === "stream.begin" && frame.modality === "audio") return frame.content_type;
	}
	return undefined;
}

type Event = MessageInitShape<typeof StreamScenarioResponseSchema>;

/** State that a reader's next event depends on, in addition to the records. Never changed: readers share it. */
interface ScenarioReadState {
	readonly held: Held;
	/** Type of the audio that has begun. */
	readonly mimeType: string;
	/** The beginning of an embedding value that the next record continues. */
	readonly value: string;
}

/** The events of a batch for all readers that reach it in the same state. */
interface ScenarioReadStep {
	readonly before: ScenarioReadState;
	readonly events: readonly Event[];
	readonly after: ScenarioReadState;
}

/** One reader of a run. */
export interface ScenarioReader {
	messages(batch: Batch): readonly Event[];
	/** Text that is too small to be sent, and how long it may wait for more. */
	held: { msMax: number; any(): boolean; take(): Event };
}

/**
 * The records of a run as events, in order; a batch is worked out once for all who read it. `heldMsMax`: how long small text waits for more.
 * `soundBefore`: the type of sound that began before the reader's place.
 */
export function scenarioReaders(
	heldMsMax: number,
): (runId: string, facts: ScenarioFacts, soundBefore?: string) => ScenarioReader {
	const steps = sharedSteps();
	return (runId, facts, soundBefore = "") => {
		const spelling = spellingOf(runId, facts);
		let state: ScenarioReadState = { held: NOTHING_HELD, mimeType: soundBefore, value: "" };
		return {
			messages(batch) {
				const step = steps(batch, state, spelling.step);
				state = step.after;
				return step.events;
			},
			held: {
				msMax: heldMsMax,
				any: () => state.held.bytes > 0,
				take() {
					const { held, chunk } = release(state.held);
					state = { ...state, held };
					return spelling.text(chunk);
				},
			},
		};
	};
}

/** A piece of a backlog is kept for the readers that come to it next, a small batch while it is the newest. */
function sharedSteps(): (
	batch: Batch,
	before: ScenarioReadState,
	work: (batch: Batch, before: ScenarioReadState) => ScenarioReadStep,
) => ScenarioReadStep {
	const made = new EncodedCache<ScenarioReadStep>();
	let newest: { batch: Batch; step: ScenarioReadStep } | undefined;
	return (batch, before, work) => {
		const known = EncodedCache.keeps(batch) ? made.get(batch) : newest?.batch === batch ? newest.step : undefined;
		if (known && isSamePlace(known.before, before)) return known;
		const step = work(batch, before);
		if (EncodedCache.keeps(batch)) made.set(batch, step);
		else newest = { batch, step };
		return step;
	};
}

const isSamePlace = (a: ScenarioReadState, b: ScenarioReadState): boolean =>
	a.held.text === b.held.text && a.held.begun === b.held.begun && a.mimeType === b.mimeType && a.value === b.value;

/** How the records of one run are spelled. */
function spellingOf(runId: string, { kind, model: modelId, demo }: ScenarioFacts) {
	const base = { runId, scenarioType: SCENARIO_TYPE[kind], modelId, demo };
	/** A run's text is its first stream. */
	const textIn = chunkDecoder(messageIdOf(runId, 1));
	const hasText = kind === "text" || kind === "transcribe";
	const text = ({ text: textDelta, sequence }: TextChunk): Event => ({
		...base,
		sequence: BigInt(sequence),
		textDelta,
	});
	const step = (batch: Batch, before: ScenarioReadState): ScenarioReadStep => {
		const events: Event[] = [];
		let { held, mimeType, value } = before;
		let tokens: Token[] = [];
		const flush = (ends = false) => {
			const joined = coalesce(held, tokens, ends);
			held = joined.held;
			tokens = [];
			for (const chunk of joined.chunks) events.push(text(chunk));
		};
		const takeChunk = ({ payload, is_partial: isPartial }: ChunkFrame, offset: number) => {
			if (hasText) tokens.push({ text: payload, offset });
			else if (kind === "embed") {
				value += payload;
				if (isPartial) return;
				events.push({ ...base, sequence: BigInt(offset), embeddings: [{ values: vectorOf(value) }] });
				value = "";
			} else {
				const audioChunk = Buffer.from(payload, "base64");
				if (audioChunk.length > 0) events.push({ ...base, sequence: BigInt(offset), audioChunk, mimeType });
			}
		};
		const takeOther = (record: string, offset: number) => {
			const frame = decodeFrame(record);
			if (frame.type === "stream.chunk") takeChunk(frame, offset);
			else if (frame.type === "stream.begin") mimeType = frame.modality === "audio" ? frame.content_type : mimeType;
			else if (frame.final) {
				flush(true);
				events.push({ ...base, ...terminalOf(frame), sequence: BigInt(offset), textDelta: held.text, mimeType });
				held = NOTHING_HELD;
			}
		};
		let offset = batch.first;
		for (const record of batch.records) {
			const delta = hasText ? textIn(record, 0, record.length) : undefined;
			if (delta !== undefined) tokens.push({ text: delta, offset });
			else takeOther(record, offset);
			offset++;
		}
		flush();
		return { before, events, after: { held, mimeType, value } };
	};
	return { step, text };
}

/** The rest of the text goes with it, on a failure, too; sound never does (K-STREAM-003, K-STREAM-004). */
function terminalOf(end: EndFrame): Event {
	const { usage = { input: -1, output: -1 } } = end;
	const reason = reasonOfEnd(end);
	return {
		done: true,
		reasonCode: reasonCodeOf(reason),
		reason: reason !== "UNSPECIFIED" ? (end.error?.message ?? `the run was ${end.reason}`) : undefined,
		usage: usageMessage(usage),
	};
}

/** Only a reader that names a place inside of an embedding gets half of one. */
function vectorOf(value: string): number[] {
	try {
		return JSON.parse(value) as number[];
	} catch (cause) {
		throw new NexusError("invalid", "after: name the sequence of an event", { cause });
	}
}
