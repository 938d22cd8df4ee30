/** Step 10: what a provider answers, as the events of a run. */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type { CallEvent } from "../../broker/broker.ts";
import type { Media, Provider } from "../connectors/port.ts";
import type { AdmittedScenario } from "./port.ts";

/** Decoded; as base64 it is one chunk, which decodes alone (R4-43). */
const AUDIO_CHUNK_BYTES = 12 * 1024;

/** The text's events are the provider's own: nothing is in the way of a token. */
export function callOf(
	{ spec, model }: AdmittedScenario,
	provider: Provider,
	audio?: Media,
): (signal: AbortSignal) => AsyncIterable<CallEvent> {
	switch (spec.kind) {
		case "text": {
			const { kind: _, ...request } = spec;
			return (signal) => provider.text({ model, ...request }, signal);
		}
		case "speech": {
			const { kind: _, ...request } = spec;
			return (signal) => spoken(provider, { model, ...request }, signal);
		}
		case "embed":
			return (signal) => embedded(provider, { model, inputs: spec.inputs }, signal);
		case "transcribe": {
			if (!audio) throw new NexusError("invalid", "there is no audio to transcribe");
			const request = { model, audio, language: spec.language };
			return async function* (signal) {
				const { text } = await provider.transcribe(request, signal);
				yield { type: "text", delta: text };
			};
		}
		case "image":
			throw new NexusError("invalid", "an image is made by a job: call SubmitScenarioJob", {
				reason: "AI_SCENARIO_UNSUPPORTED",
			});
		default:
			return spec satisfies never;
	}
}

async function* spoken(
	provider: Provider,
	request: Parameters<Provider["speak"]>[0],
	signal: AbortSignal,
): AsyncIterable<CallEvent> {
	const { mimeType, audio } = await provider.speak(request, signal);
	for await (const bytes of audio) {
		yield { type: "alive" };
		const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
		for (let at = 0; at < chunk.length; at += AUDIO_CHUNK_BYTES) {
			const payload = chunk.toString("base64", at, at + AUDIO_CHUNK_BYTES);
			yield { type: "part", modality: "audio", contentType: mimeType, payload };
		}
	}
}

/** One value per input. */
async function* embedded(
	provider: Provider,
	request: Parameters<Provider["embed"]>[0],
	signal: AbortSignal,
): AsyncIterable<CallEvent> {
	const { vectors, inputTokens } = await provider.embed(request, signal);
	yield { type: "usage", input: inputTokens, output: -1 };
	for (const vector of vectors)
		yield { type: "part", modality: "data", contentType: "application/json", payload: JSON.stringify(vector) };
}

/** A provider's failure has a reason, whatever it threw. */
export function providerFailure(cause: unknown): NexusError {
	const error = toNexusError(cause, "engine_failed");
	if (error.reason) return error;
	const reason = error.code === "timeout" ? "AI_PROVIDER_TIMEOUT" : "AI_PROVIDER_FAILED";
	return new NexusError(error.code, error.message, { cause, reason });
}
