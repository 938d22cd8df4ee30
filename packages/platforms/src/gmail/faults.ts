/** What Gmail's refusals mean, and what to do about them. */

import { PlatformError } from "@nexus-stream/adapter";
import { foreignAnswer, retryAfter } from "@nexus-stream/adapter/platform/json";
import { networkError } from "@nexus-stream/adapter/platform/network";
import type { PlatformFault } from "@nexus-stream/adapter/port";

const SIGN_IN = "Sign in again: the refresh token is wrong, expired or revoked.";

/** By Google's own reason; the status decides about others. */
const BY_REASON: Readonly<Record<string, readonly [fault: PlatformFault, advice: string]>> = {
	invalid_grant: ["denied", SIGN_IN],
	invalid_client: ["denied", "The OAuth client's id or secret is wrong."],
	unauthorized_client: ["denied", "The OAuth client's id or secret is wrong."],
	authError: ["denied", SIGN_IN],
	insufficientPermissions: ["denied", "Sign in again with the scope gmail.modify."],
	accessNotConfigured: ["denied", "Turn the Gmail API on in the project."],
	domainPolicy: ["denied", "An administrator has to allow the app."],
	rateLimitExceeded: ["rate_limited", ""],
	userRateLimitExceeded: ["rate_limited", ""],
	dailyLimitExceeded: ["rate_limited", "The project's daily quota is used up."],
	quotaExceeded: ["rate_limited", ""],
	backendError: ["unavailable", ""],
};

const BY_STATUS: Readonly<Record<number, readonly [fault: PlatformFault, advice: string]>> = {
	401: ["denied", SIGN_IN],
	403: ["denied", ""],
	404: ["gone", ""],
	429: ["rate_limited", ""],
};

interface GmailErrorResponse {
	status: number;
	headers: Headers;
	data?: {
		/** The API says an object, the token address a word. */
		error?: string | { code?: number; message?: string; errors?: { reason?: string }[] };
		error_description?: string;
	};
}

/** Every failure of a call in the words of all platforms. */
export function toPlatformError(call: string, cause: unknown): PlatformError {
	if (cause instanceof PlatformError) return cause;
	const answer = (cause as { response?: GmailErrorResponse })?.response;
	if (!answer) return networkError(call, cause);
	const { status, headers, data } = answer;
	const error = data?.error;
	if (!isGoogles(error)) return foreignAnswer(call, answer);
	const reason = typeof error === "object" ? error.errors?.[0]?.reason : error;
	const message = (typeof error === "object" ? error.message : data?.error_description) ?? "";
	const known = BY_REASON[reason ?? ""];
	if (status >= 500 && !known) return new PlatformError("unknown_outcome", `${call}: ${status} ${message}`.trim());
	const [fault, advice] = known ?? BY_STATUS[status] ?? ["invalid", ""];
	const said = `${call}: ${status} ${reason ?? ""} ${message} ${advice}`.replace(/ {2,}/g, " ").trim();
	return new PlatformError(
		fault,
		said,
		fault === "rate_limited" ? { ...retryAfterIn(message), ...retryAfter(headers, Date.now()) } : {},
	);
}

/** The token address refuses with a word, the API with an object that has the status. */
const isGoogles = (error: NonNullable<GmailErrorResponse["data"]>["error"]): boolean =>
	typeof error === "string" ? /^\w+$/.test(error) : typeof error?.code === "number";

/** "User-rate limit exceeded. Retry after 2026-01-02T03:04:05.678Z" */
function retryAfterIn(message: string): { retryAfterMs?: number } {
	const until = Date.parse(/retry after (\S+Z)/i.exec(message)?.[1] ?? "");
	return Number.isNaN(until) ? {} : { retryAfterMs: Math.max(0, until - Date.now()) };
}
