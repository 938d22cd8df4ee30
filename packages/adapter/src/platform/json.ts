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

/**
 * An answer that does not have the platform's own shape came from something on the way: a gateway, a proxy, a captive portal. The platform may
 * have taken the call before, whatever the status says; only 429 refuses to pass it on.
 */
export function foreignAnswer(
	call: string,
	{ status, headers }: Pick<JsonAnswer, "status" | "headers">,
	cause?: unknown,
): PlatformError {
	const more = { ...retryAfter(headers, Date.now()), cause };
	if (status === 429) return new PlatformError("rate_limited", `${call}: HTTP 429`, more);
	return new PlatformError("unknown_outcome", `${call}: HTTP ${status} that is not the platform's own answer`, more);
}

/** The id of a message that was just created. Without one in the answer nobody knows whether there is a message. */
export function createdId(call: string, id: unknown): string {
	if (typeof id === "number" || (typeof id === "string" && id !== "")) return String(id);
	throw new PlatformError("unknown_outcome", `${call}: the answer names no message`);
}
