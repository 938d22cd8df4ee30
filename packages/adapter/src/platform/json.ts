/** One HTTP call that answers JSON, for platforms without an SDK or with one that takes its transport as an argument. */

import { networkError } from "./network.ts";
import { PlatformError } from "./platform-error.ts";

export interface JsonAnswer {
	status: number;
	headers: Headers;
	/** Undefined when the body is empty or not JSON (a gateway's page). */
	body: unknown;
}

/** Throws only when no answer came; the platform's code interprets a refusal. */
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
	const value = headers.get("retry-after");
	if (value === null) return {};
	const ms = /^\d+(?:\.\d+)?$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
	return Number.isNaN(ms) ? {} : { retryAfterMs: Math.max(0, ms) };
}

/** An answer of a gateway, a proxy or a captive portal. The platform may have taken the call before, whatever the status says, except 429. */
export function foreignAnswer(
	call: string,
	{ status, headers }: Pick<JsonAnswer, "status" | "headers">,
	cause?: unknown,
): PlatformError {
	const more = { ...retryAfter(headers, Date.now()), cause };
	if (status === 429) return new PlatformError("rate_limited", `${call}: HTTP 429`, more);
	return new PlatformError("unknown_outcome", `${call}: HTTP ${status} that is not the platform's own answer`, more);
}

/** The id of a message that was just created. Without an id in the answer the outcome is unknown. */
export function createdId(call: string, id: unknown): string {
	if (typeof id === "number" || (typeof id === "string" && id !== "")) return String(id);
	throw new PlatformError("unknown_outcome", `${call}: the answer names no message`);
}
