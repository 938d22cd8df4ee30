/** Requests to one provider: the key goes where it belongs and nowhere else, answers are bounded, and every failure is a NexusError without a key in it. */

import { AddressRefused } from "@nexus-stream/adapter/net/address-guard";
import { NexusError, toNexusError, wordsOf } from "@nexus-stream/protocol";
import { printable } from "../../std/clip.ts";

export type ProviderFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

export interface WireOptions {
	/** As errors call it. */
	name: string;
	/** Without a slash at its end. */
	baseUrl: string;
	apiKey?: string | undefined;
	/** How the key is sent. */
	auth: "bearer" | "x-api-key";
	fetch: ProviderFetch;
	responseBytesMax: number;
}

export const WIRE_LIMITS = {
	/** One answer of a provider: pictures come as base64. */
	responseBytesMax: 64 * 1024 * 1024,
	errorBytesMax: 64 * 1024,
	errorCharsMax: 500,
} as const;

/** Nothing else leaves: libraries take more headers out of the environment. */
const HEADERS_SENT = ["accept", "content-type", "user-agent", "anthropic-version", "anthropic-beta"];

/** The provider's fault in a failure; undefined: the request was at fault. */
export type Fault = "unauthorized" | "unavailable";

export class ProviderFailure extends NexusError {
	readonly fault?: Fault;

	constructor(fault: Fault | undefined, ...error: ConstructorParameters<typeof NexusError>) {
		super(...error);
		this.name = "ProviderFailure";
		if (fault !== undefined) this.fault = fault;
	}
}

export class Wire {
	readonly #options: WireOptions;

	constructor(options: WireOptions) {
		this.#options = options;
	}

	get baseUrl(): string {
		return this.#options.baseUrl;
	}

	/** Resolves with an answer of success, its body bounded. */
	async send(url: string | URL, init: RequestInit = {}): Promise<Response> {
		const { fetch, responseBytesMax } = this.#options;
		try {
			const response = await fetch(url, { ...init, headers: this.#headers(init.headers) });
			if (!response.ok) throw await this.#refusal(response);
			return bounded(response, responseBytesMax, () =>
				this.#failed(`sent more than ${responseBytesMax} bytes`, undefined),
			);
		} catch (cause) {
			throw this.failure(cause, init.signal ?? undefined);
		}
	}

	post(path: string, body: unknown, signal: AbortSignal): Promise<Response> {
		const headers = { "content-type": "application/json" };
		return this.send(this.baseUrl + path, { method: "POST", headers, body: JSON.stringify(body), signal });
	}

	async json(response: Response, signal: AbortSignal): Promise<unknown> {
		try {
			return JSON.parse(await response.text());
		} catch (cause) {
			if (cause instanceof SyntaxError) throw this.#failed("answers with something that is not JSON", undefined);
			throw this.failure(cause, signal);
		}
	}

	/** Turns a thrown value into a NexusError. The caller's own abort stays as it is. */
	failure(cause: unknown, signal?: AbortSignal): Error {
		if (signal?.aborted) return toNexusError(signal.reason, "aborted");
		if (cause instanceof NexusError) return cause;
		if (cause instanceof AddressRefused) return addressFailure(cause);
		const code = (cause as ({ cause?: NodeJS.ErrnoException } & NodeJS.ErrnoException) | undefined)?.code;
		const words = this.#scrubbed(wordsOf(cause));
		if (code === "ETIMEDOUT" || /timed? ?out/i.test(words)) return this.#timeout(words);
		return this.#failed(`cannot be reached or broke off: ${words || "no reason given"}`, "unavailable");
	}

	/** A refusal that the provider put into words. */
	said(words: string): NexusError {
		return this.#failed(`failed: ${this.#scrubbed(words)}`, "unavailable");
	}

	/** It answered with something that cannot be used. */
	unusable(what: string): NexusError {
		return this.#failed(`answers without ${what}`, undefined);
	}

	#headers(given: RequestInit["headers"]): Headers {
		const { apiKey, auth } = this.#options;
		const all = new Headers(given);
		const headers = new Headers({ "accept-encoding": "identity" });
		for (const name of HEADERS_SENT) {
			const value = all.get(name);
			if (value !== null) headers.set(name, value);
		}
		if (apiKey === undefined) return headers;
		if (auth === "bearer") headers.set("authorization", `Bearer ${apiKey}`);
		else {
			headers.set("x-api-key", apiKey);
			if (!headers.has("anthropic-version")) headers.set("anthropic-version", "2023-06-01");
		}
		return headers;
	}

	async #refusal(response: Response): Promise<NexusError> {
		const { name } = this.#options;
		const { status } = response;
		const words = wordsIn(await firstOf(response, WIRE_LIMITS.errorBytesMax));
		const said = `It said (${status}): ${this.#scrubbed(words) || "nothing"}`;
		if (status === 401 || status === 403) return this.#failed(`refuses the key: check it. ${said}`, "unauthorized");
		if (status === 404) {
			const message = `${name} does not know the model, or does not offer this. ${said}`;
			return new ProviderFailure(undefined, "not_found", message, { reason: "AI_MODEL_NOT_FOUND" });
		}
		if (status === 408 || status === 504) return this.#timeout(said);
		if (status === 429) {
			const message = `${name} limits the rate, or the quota is used up: try later. ${said}`;
			return new ProviderFailure("unavailable", "busy", message, { reason: "AI_PROVIDER_FAILED" });
		}
		return this.#failed(`failed. ${said}`, status >= 500 ? "unavailable" : undefined);
	}

	#failed(what: string, fault: Fault | undefined): NexusError {
		return new ProviderFailure(fault, "engine_failed", `${this.#options.name} ${what}`, {
			reason: "AI_PROVIDER_FAILED",
		});
	}

	#timeout(words: string): NexusError {
		const message = `${this.#options.name} did not answer in time. ${words}`;
		return new ProviderFailure("unavailable", "timeout", message, { reason: "AI_PROVIDER_TIMEOUT" });
	}

	/** Short, printable, and without the key, also where a provider echoes it or a part of it. */
	#scrubbed(words: string): string {
		const { apiKey } = this.#options;
		const said = apiKey === undefined || apiKey.length < 8 ? words : words.replaceAll(apiKey, "[key]");
		const plain = said.replace(/\b(?:sk|pk|rk|key|bearer)[-_ ][\w*.…-]{6,}/gi, "[key]");
		return printable(plain).replace(/\s+/g, " ").trim().slice(0, WIRE_LIMITS.errorCharsMax);
	}
}

/** The guard's word as the contract spells it. */
export const addressFailure = ({ refusal, message }: AddressRefused): NexusError =>
	refusal === "forbidden"
		? new NexusError("forbidden", `this address may not be dialled: ${message}`, { reason: "AI_ENDPOINT_FORBIDDEN" })
		: new NexusError("unavailable", message, { reason: "AI_ENDPOINT_UNRESOLVED" });

function bounded(response: Response, bytesMax: number, tooLarge: () => Error): Response {
	const { status, statusText, headers, body } = response;
	if (body === null) return response;
	let bytes = 0;
	const counter = new TransformStream<Uint8Array, Uint8Array>({
		transform(chunk, controller) {
			bytes += chunk.byteLength;
			if (bytes > bytesMax) controller.error(tooLarge());
			else controller.enqueue(chunk);
		},
	});
	return new Response(body.pipeThrough(counter), { status, statusText, headers });
}

/** The message of a refusal, in the shape that OpenAI gave it and the others copy; else the whole body. */
function wordsIn(body: string): string {
	try {
		const { error } = JSON.parse(body) as { error?: { message?: unknown } };
		return typeof error?.message === "string" ? error.message : body;
	} catch {
		return body;
	}
}

/** The beginning of a body as text; what follows is not read. */
async function firstOf({ body }: Response, bytesMax: number): Promise<string> {
	if (body === null) return "";
	const reader = body.getReader();
	const chunks: Uint8Array[] = [];
	let bytes = 0;
	try {
		while (bytes < bytesMax) {
			const { done, value } = await reader.read();
			if (done) break;
			chunks.push(value as Uint8Array);
			bytes += (value as Uint8Array).byteLength;
		}
	} catch {
		// The part that was read so far has to do.
	}
	await reader.cancel().catch(() => {});
	return Buffer.concat(chunks).subarray(0, bytesMax).toString("utf8");
}
