/** Scenarios as messages, and back: the one place that knows both spellings (Y1, Y2). */

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Batch } from "../../bus/bus.ts";
import {
	type Scenario,
	ScenarioType,
	type StreamScenarioResponseSchema,
	type TextGenerate,
} from "../../gen/nexus/runtime/v1/ai_pb.ts";
import { ReasonCode } from "../../gen/nexus/runtime/v1/common_pb.ts";
import {
	chunkDecoder,
	decodeFrame,
	type EndFrame,
	frameTypeOf,
	messageIdOf,
	NexusError,
	type Reason,
	reasonOfEnd,
} from "../../protocol/protocol.ts";
import type { ScenarioFacts, ScenarioKind, ScenarioRequest, ScenarioSpec } from "../../services/services.ts";
import { coalesce, type Held, NOTHING_HELD, type Token } from "./coalesce.ts";

export const SCENARIO_TYPE: Readonly<Record<ScenarioKind, ScenarioType>> = {
	text: ScenarioType.TEXT_GENERATE,
	speech: ScenarioType.SPEECH_SYNTHESIZE,
	image: ScenarioType.IMAGE_GENERATE,
	embed: ScenarioType.TEXT_EMBED,
	transcribe: ScenarioType.SPEECH_TRANSCRIBE,
};

/** One that a log of a later version names is not known here. */
export const reasonCodeOf = (reason: Reason): ReasonCode => ReasonCode[reason] ?? ReasonCode.INTERNAL;

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
			...(head.modelId !== "" && { model: head.modelId }),
			...(head.connectorId !== "" && { connectorId: head.connectorId }),
			...(head.timeoutMs !== 0 && { timeoutMs: head.timeoutMs }),
		},
		spec,
		metadata,
		...(audio && { audio }),
	};
}

function specOf(spec: Scenario["spec"]): { spec: ScenarioSpec; audio?: NonNullable<ScenarioRequest["audio"]> } {
	switch (spec.case) {
		case "textGenerate":
			return { spec: textOf(spec.value) };
		case "speechSynthesize": {
			const { text, voice, mimeType } = spec.value;
			return { spec: { kind: "speech", text, ...given({ voice, mimeType }) } };
		}
		case "imageGenerate": {
			const { prompt, size, count } = spec.value;
			return { spec: { kind: "image", prompt, ...given({ size }), ...(count !== 0 && { count }) } };
		}
		case "textEmbed":
			return { spec: { kind: "embed", inputs: spec.value.inputs } };
		case "speechTranscribe": {
			const { artifactId, mimeType, language, audio: data } = spec.value;
			const audio = data.length > 0 ? { mimeType, data } : undefined;
			return { spec: { kind: "transcribe", artifactId, ...given({ mimeType, language }) }, ...(audio && { audio }) };
		}
		case undefined:
			throw new NexusError("invalid", "the scenario has no specification, such as text_generate");
		default:
			return spec satisfies never;
	}
}

function textOf({ systemPrompt, messages, temperature, maxTokens }: TextGenerate): ScenarioSpec {
	return {
		kind: "text",
		...(systemPrompt !== "" && { system: systemPrompt }),
		// Which roles there are is checked with the rest.
		messages: messages.map(({ role, text }) => ({ role: role as "user", text })),
		...(temperature !== undefined && { temperature }),
		...(maxTokens !== undefined && { maxTokens }),
	};
}

/** What is not empty. */
const given = <T extends Record<string, string>>(fields: T): Partial<T> =>
	Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== "")) as Partial<T>;

/** The type of the sound that begins in these records. */
export function soundIn({ records }: Batch): string | undefined {
	for (const record of records) {
		if (frameTypeOf(record) !== "stream.begin") continue;
		const frame = decodeFrame(record);
		if (frame.type === "stream.begin" && frame.modality === "audio") return frame.content_type;
	}
	return undefined;
}

type Event = MessageInitShape<typeof StreamScenarioResponseSchema>;

/** The records of a run as the events of one reader, in order. `soundBefore`: the type of sound that began before. */
export function scenarioEvents(runId: string, facts: ScenarioFacts, soundBefore = ""): (batch: Batch) => Event[] {
	const { kind, model: modelId, demo } = facts;
	const base = { runId, scenarioType: SCENARIO_TYPE[kind], modelId, demo };
	/** A run's text is its first stream. */
	const textIn = chunkDecoder(messageIdOf(runId, 1));
	let held: Held = NOTHING_HELD;
	let tokens: Token[] = [];
	let mimeType = soundBefore;
	const flush = (): Event[] => {
		const joined = coalesce(held, tokens);
		held = joined.held;
		tokens = [];
		return joined.chunks.map(({ text, sequence }) => ({ ...base, sequence: BigInt(sequence), textDelta: text }));
	};
	/** The rest of the text goes with it, on a failure, too; sound never does (K-STREAM-003, K-STREAM-004). */
	const terminal = (end: EndFrame, offset: number): Event => {
		const { usage = { input: -1, output: -1 } } = end;
		const reason = reasonOfEnd(end);
		return {
			...base,
			sequence: BigInt(offset),
			textDelta: held.text,
			mimeType,
			done: true,
			reasonCode: reasonCodeOf(reason),
			...(reason !== "UNSPECIFIED" && { reason: end.error?.message ?? `the run was ${end.reason}` }),
			usage: { inputTokens: BigInt(usage.input), outputTokens: BigInt(usage.output) },
		};
	};
	const other = (record: string, offset: number): Event[] => {
		const frame = decodeFrame(record);
		if (frame.type === "stream.begin") {
			if (frame.modality === "audio") mimeType = frame.content_type;
			return [];
		}
		if (frame.type === "stream.end") return frame.final ? [...flush(), terminal(frame, offset)] : [];
		if (kind !== "speech") {
			tokens.push({ text: frame.payload, offset });
			return [];
		}
		const audioChunk = Buffer.from(frame.payload, "base64");
		return audioChunk.length === 0 ? [] : [{ ...base, sequence: BigInt(offset), audioChunk, mimeType }];
	};
	return ({ first, records }) => {
		const events: Event[] = [];
		let offset = first;
		for (const record of records) {
			const text = textIn(record, 0, record.length);
			if (text !== undefined) tokens.push({ text, offset });
			else events.push(...other(record, offset));
			offset++;
		}
		return events.length === 0 ? flush() : [...events, ...flush()];
	};
}
