/** Gmail's refusals as platform faults, with advice for the operator. */

import { PlatformError } from "@nexus-stream/adapter";
import { foreignAnswer, retryAfter } from "@nexus-stream/adapter/platform/json";
import { networkError } from "@nexus-stream/adapter/platform/network";
import { meanings } from "../meanings.ts";

const SIGN_IN = "Sign in again: the refresh token is wrong, expired or revoked.";

/** By Google's own reason; the status decides about others. */
const BY_REASON = meanings<string>(
	["denied", SIGN_IN, "invalid_grant", "authError"],
	["denied", "The OAuth client's id or secret is wrong.", "invalid_client", "unauthorized_client"],
	["denied", "Sign in again with the scope gmail.modify.", "insufficientPermissions"],
	["denied", "Turn the Gmail API on in the project.", "accessNotConfigured"],
	["denied", "An administrator has to allow the app.", "domainPolicy"],
	["rate_limited", "", "rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"],
	["rate_limited", "The project's daily quota is used up.", "dailyLimitExceeded"],
	["unavailable", "", "backendError"],
);

const BY_STATUS = meanings<number>(
	["denied", SIGN_IN, 401],
	["denied", "", 403],
	["gone", "", 404],
	["rate_limited", "", 429],
);

interface GmailErrorResponse {
	status: number;
	headers: Headers;
	data?: {
		/** The API says an object, the token address a word. */
		error?: string | { code?: number; message?: string; errors?: { reason?: string }[] };
		error_description?: string;
	};
}

export function toPlatformError(call: string, cause: unknown): PlatformError {
	if (cause instanceof PlatformError) return cause;
	const answer = (cause as { response?: GmailErrorResponse })?.response;
	if (!answer) return networkError(call, cause);
	const { status, headers, data } = answer;
	const error = data?.error;
	if (!isGoogles(error)) return foreignAnswer(call, answer);
	const reason = typeof error === "object" ? error.errors?.[0]?.reason : error;
	const message = (typeof error === "object" ? error.message : data?.error_description) ?? "";
	const known = BY_REASON.get(reason ?? "");
	if (status >= 500 && !known) return new PlatformError("unknown_outcome", `${call}: ${status} ${message}`.trim());
	const [fault, advice] = known ?? BY_STATUS.get(status) ?? ["invalid", ""];
	const said = `${call}: ${status} ${reason ?? ""} ${message} ${advice}`.replace(/ {2,}/g, " ").trim();
	const wait = fault === "rate_limited" ? { ...retryAfterIn(message), ...retryAfter(headers, Date.now()) } : {};
	return new PlatformError(fault, said, wait);
}

/** The token address refuses with a word, the API with an object that has the status. */
const isGoogles = (error: NonNullable<GmailErrorResponse["data"]>["error"]): boolean =>
	typeof error === "string" ? /^\w+$/.test(error) : typeof error?.code === "number";

/** "User-rate limit exceeded. Retry after 2026-01-02T03:04:05.678Z" */
function retryAfterIn(message: string): { retryAfterMs?: number } {
	const until = Date.parse(/retry after (\S+Z)/i.exec(message)?.[1] ?? "");
	return Number.isNaN(until) ? {} : { retryAfterMs: Math.max(0, until - Date.now()) };
}
