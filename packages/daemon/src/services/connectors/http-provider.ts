/** A provider behind its HTTP API: OpenAI's, which nearly all others copy, or Anthropic's for text. */

import { NexusError } from "@nexus-stream/protocol";
import { z } from "zod";
import { callModel } from "../../engine/engine.ts";
import type { Media, Provider, ScenarioKind, TextEvent } from "./port.ts";
import { ANTHROPIC, unsupported } from "./provider-types.ts";
import { type ProviderFetch, Wire, type WireOptions } from "./wire.ts";

/** With what a connection test needs. */
export interface OpenProvider extends Provider {
	/** Ids of its models; undefined when it has no such list. */
	models(signal: AbortSignal): Promise<string[] | undefined>;
}

export interface HttpProviderOptions extends Omit<WireOptions, "auth"> {
	providerType: string;
	kinds: readonly ScenarioKind[];
	/** For pictures that the provider has put somewhere else: never with the key. */
	fetchElsewhere: ProviderFetch;
}

const MODELS_MAX = 500;
const IMAGES_MAX = 10;

const Models = z.object({ data: z.array(z.object({ id: z.string() })) });
const Embeddings = z.object({
	data: z.array(z.object({ index: z.int().optional(), embedding: z.array(z.number()) })),
	usage: z.object({ prompt_tokens: z.int().optional() }).optional(),
});
const Images = z.object({
	data: z.array(z.object({ b64_json: z.string().optional(), url: z.string().optional() })).min(1),
	output_format: z.enum(["png", "jpeg", "webp"]).optional().catch(undefined),
});
const Transcript = z.object({ text: z.string() });

export function httpProvider(options: HttpProviderOptions): OpenProvider {
	const isAnthropic = options.providerType === ANTHROPIC;
	const wire = new Wire({ ...options, auth: isAnthropic ? "x-api-key" : "bearer" });
	const elsewhere = new Wire({ ...options, apiKey: undefined, auth: "bearer", fetch: options.fetchElsewhere });
	const mustOffer = (kind: ScenarioKind) => {
		if (!options.kinds.includes(kind)) throw unsupported(options.name, kind);
	};
	return {
		demo: false,
		text: (request, signal) => {
			mustOffer("text");
			return text(wire, isAnthropic, request, signal);
		},
		async speak({ model, text: input, voice = "alloy", mimeType }, signal) {
			mustOffer("speech");
			const format = formatOf(mimeType);
			const response = await wire.post("/audio/speech", { model, input, voice, response_format: format }, signal);
			return {
				mimeType: typeIn(response, "audio") ?? AUDIO_TYPES[format]!,
				audio: bytesOf(wire, response, signal),
			};
		},
		async image({ model, prompt, size, count = 1 }, signal) {
			mustOffer("image");
			const body = { model, prompt, n: Math.min(count, IMAGES_MAX), size };
			const answer = await wire.json(await wire.post("/images/generations", body, signal), signal);
			const { data, output_format = "png" } = parsed(wire, Images, answer, "pictures");
			return await Promise.all(
				data.slice(0, IMAGES_MAX).map(async ({ b64_json, url }) => {
					if (b64_json !== undefined)
						return { mimeType: `image/${output_format}`, data: Buffer.from(b64_json, "base64") };
					if (url === undefined) throw wire.unusable("a picture");
					return picture(elsewhere, url, signal);
				}),
			);
		},
		async embed({ model, inputs }, signal) {
			mustOffer("embed");
			const response = await wire.post("/embeddings", { model, input: inputs, encoding_format: "float" }, signal);
			const { data, usage } = parsed(wire, Embeddings, await wire.json(response, signal), "embeddings");
			if (data.length !== inputs.length) throw wire.unusable("one embedding for each text");
			const inOrder = data.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0));
			return { vectors: inOrder.map(({ embedding }) => embedding), inputTokens: usage?.prompt_tokens ?? -1 };
		},
		async transcribe({ model, audio, language }, signal) {
			mustOffer("transcribe");
			const response = await wire.send(`${wire.baseUrl}/audio/transcriptions`, {
				...(await multipart(model, audio, language)),
				signal,
			});
			return { text: parsed(wire, Transcript, await wire.json(response, signal), "a text").text };
		},
		async models(signal) {
			try {
				const path = isAnthropic ? "/v1/models" : "/models";
				const response = await wire.send(wire.baseUrl + path, { signal });
				const { data } = parsed(wire, Models, await wire.json(response, signal), "a list of models");
				return data.slice(0, MODELS_MAX).map(({ id }) => id);
			} catch (cause) {
				if (cause instanceof NexusError && cause.code === "not_found") return undefined;
				throw cause;
			}
		},
	};
}

async function* text(
	wire: Wire,
	isAnthropic: boolean,
	{ model, ...request }: Parameters<Provider["text"]>[0],
	signal: AbortSignal,
): AsyncGenerator<TextEvent, void> {
	let failure: unknown;
	// A reader that leaves early ends the call, too.
	const left = new AbortController();
	const target = { provider: isAnthropic ? ANTHROPIC : "openai-compatible", model, baseUrl: wire.baseUrl };
	try {
		yield* callModel(target, {
			...request,
			signal: AbortSignal.any([signal, left.signal]),
			// The library says less about a failure than this knows.
			fetch: (url, init) =>
				wire.send(url instanceof Request ? url.url : url, init).catch((cause: unknown) => {
					failure = cause;
					throw cause;
				}),
		});
	} catch (cause) {
		if (signal.aborted || failure !== undefined) throw wire.failure(failure, signal);
		throw cause instanceof NexusError ? cause : wire.said((cause as Error).message);
	} finally {
		left.abort();
	}
}

function parsed<T>(wire: Wire, schema: z.ZodType<T>, value: unknown, what: string): T {
	const { success, data } = schema.safeParse(value);
	if (!success) throw wire.unusable(what);
	return data;
}

async function* bytesOf(wire: Wire, response: Response, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
	if (response.body === null) return;
	try {
		for await (const chunk of response.body as ReadableStream<Uint8Array>) if (chunk.byteLength > 0) yield chunk;
	} catch (cause) {
		throw wire.failure(cause, signal);
	}
}

async function picture(wire: Wire, address: string, signal: AbortSignal): Promise<Media> {
	const url = URL.parse(address);
	if (url === null) throw wire.unusable("an address of the picture");
	const response = await wire.send(url, { signal });
	const type = typeIn(response, "image");
	const chunks: Uint8Array[] = [];
	for await (const chunk of bytesOf(wire, response, signal)) chunks.push(chunk);
	return { mimeType: type ?? "application/octet-stream", data: Buffer.concat(chunks) };
}

/** The content type of an answer, if it is of this kind. */
function typeIn({ headers }: Response, kind: "audio" | "image"): string | undefined {
	const type = headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() ?? "";
	return type.startsWith(`${kind}/`) && /^[a-z]+\/[a-z0-9.+-]{1,40}$/.test(type) ? type : undefined;
}

const AUDIO_TYPES: Readonly<Record<string, string>> = {
	mp3: "audio/mpeg",
	opus: "audio/ogg",
	aac: "audio/aac",
	flac: "audio/flac",
	wav: "audio/wav",
	pcm: "audio/pcm",
};

function formatOf(mimeType = "audio/mpeg"): string {
	const found = Object.entries(AUDIO_TYPES).find(([, type]) => type === mimeType);
	if (found) return found[0];
	const types = Object.values(AUDIO_TYPES).join(", ");
	throw new NexusError("invalid", `speech cannot be had as ${mimeType}; there are ${types}`);
}

const FILE_ENDINGS: Readonly<Record<string, string>> = {
	"audio/mpeg": "mp3",
	"audio/mp4": "m4a",
	"audio/ogg": "ogg",
	"audio/webm": "webm",
	"audio/flac": "flac",
};

/** As bytes, because a guarded request takes nothing else. */
async function multipart(model: string, { mimeType, data }: Media, language: string | undefined): Promise<RequestInit> {
	const form = new FormData();
	form.set("model", model);
	form.set("response_format", "json");
	if (language !== undefined) form.set("language", language);
	const type = mimeType.split(";")[0]!.trim();
	// Servers tell the format by the file's name.
	form.set("file", new Blob([Buffer.from(data)], { type }), `audio.${FILE_ENDINGS[type] ?? "wav"}`);
	const packed = new Response(form);
	return {
		method: "POST",
		headers: { "content-type": packed.headers.get("content-type")! },
		body: new Uint8Array(await packed.arrayBuffer()),
	};
}
