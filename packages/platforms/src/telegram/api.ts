/** The Bot API over Node's own fetch: it tells a refused connection from a broken one, and a gateway's page from the platform's answer. */

import { foreignAnswer } from "@nexus-stream/adapter/platform/json";
import { Api, type RawApi } from "grammy";

type Fetch = NonNullable<NonNullable<ConstructorParameters<typeof Api>[1]>["fetch"]>;

/** A connection that broke without a word (a machine that slept, a router that forgot it) is given up; the longest call is a poll of 25 seconds. */
const TIMEOUT_SECONDS = 60;

export function createApi(token: string, apiRoot: string): RawApi {
	const options = { apiRoot, timeoutSeconds: TIMEOUT_SECONDS, fetch: fetchJson as unknown as Fetch };
	return new Api(token, options).raw;
}

async function fetchJson(
	url: string,
	init: { method: string; headers: Record<string, string>; body: BodyInit; signal: AbortSignal },
): Promise<Response> {
	const { connection: _, ...headers } = init.headers;
	// The library brings its own kind of signal.
	const abort = new AbortController();
	if (init.signal.aborted) abort.abort();
	init.signal.addEventListener("abort", () => abort.abort());
	const { method, body } = init;
	const response = await fetch(url, { method, headers, body, signal: abort.signal, duplex: "half" } as RequestInit);
	const text = await response.text();
	if (!isTelegrams(text)) throw foreignAnswer(url.slice(url.lastIndexOf("/") + 1), response);
	return new Response(text, { status: response.status, headers: { "content-type": "application/json" } });
}

/** Telegram's answers say of themselves whether they are results or refusals; what a gateway says does not. */
function isTelegrams(text: string): boolean {
	try {
		const { ok, result, error_code, description } = JSON.parse(text) as Record<string, unknown>;
		return ok === true
			? result !== undefined
			: ok === false && typeof error_code === "number" && typeof description === "string";
	} catch {
		return false;
	}
}

/** The method that uploads a file, and its field for the file. */
export type Upload = readonly [
	method: "sendPhoto" | "sendAnimation" | "sendVoice" | "sendAudio" | "sendVideo" | "sendDocument",
	field: string,
];

export const DOCUMENT: Upload = ["sendDocument", "document"];

/** Telegram shows some kinds of files in their own way; the others are documents. */
export function uploadOf(contentType: string): Upload {
	if (/^image\/(?:jpeg|png|webp)$/.test(contentType)) return ["sendPhoto", "photo"];
	if (contentType === "image/gif") return ["sendAnimation", "animation"];
	if (contentType === "audio/ogg") return ["sendVoice", "voice"];
	if (/^audio\/(?:mpeg|mp4)$/.test(contentType)) return ["sendAudio", "audio"];
	return contentType === "video/mp4" ? ["sendVideo", "video"] : DOCUMENT;
}
