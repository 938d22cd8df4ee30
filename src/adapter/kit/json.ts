/** One HTTP call that answers JSON, for platforms without an SDK or with one that takes its transport as an argument. */

import { networkError } from "./network.ts";
import { PlatformError } from "./platform.ts";

export interface JsonAnswer {
	status: number;
	headers: Headers;
	/** Undefined when the answer has none, or when it is no JSON: a gateway's page, say. */
	body: unknown;
}

/** Throws only when no answer came; what a refusal means is for the platform to say. */
export async function fetchJson(call: string, url: string | URL, init: RequestInit): Promise<JsonAnswer> {
	try {
		const response = await fetch(url, init);
		const text = await response.text();
		return { status: response.status, headers: response.headers, body: parse(text) };
	} catch (cause) {
		throw networkError(call, cause);
	}
}

function parse(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}

/** `Retry-After` in milliseconds, as an option of PlatformError. */
export function retryAfter(headers: Headers, now: number): { retryAfterMs?: number } {
	const said = headers.get("retry-after");
	if (said === null) return {};
	const ms = /^\d+(?:\.\d+)?$/.test(said) ? Number(said) * 1000 : Date.parse(said) - now;
	return Number.isNaN(ms) ? {} : { retryAfterMs: Math.max(0, ms) };
}

/** A server error that the platform does not explain: only 503 says that nobody looked at the request. */
export const serverFault = (call: string, status: number): PlatformError =>
	new PlatformError(status === 503 ? "unavailable" : "unknown_outcome", `${call}: HTTP ${status}`);
