/** signal-cli's refusals as platform faults, with advice for the operator. */

import { PlatformError } from "@nexus-stream/adapter";
import type { PlatformFault } from "@nexus-stream/adapter/port";
import type { Meaning } from "../meanings.ts";

export interface RpcError {
	code: number;
	message?: string;
	data?: { response?: { results?: readonly SendResult[] } } | null;
}

export interface SignalSendAnswer {
	timestamp: number;
	results?: readonly SendResult[];
}

/** The outcome of a message for one recipient. */
interface SendResult {
	type: string;
	token?: string;
	retryAfterSeconds?: number;
}

const UNTRUSTED: Meaning = ["denied", "The person's safety number has changed: compare it, then signal-cli trust."];

const BY_CODE: Readonly<Record<number, Meaning>> = {
	[-3]: ["unknown_outcome", ""],
	[-4]: UNTRUSTED,
	[-5]: ["rate_limited", "Signal asks for a captcha: signal-cli submitRateLimitChallenge."],
	[-32602]: ["denied", "Is the number registered with this signal-cli?"],
	[-32603]: ["unknown_outcome", ""],
};

/** The first pattern that fits a user error decides. */
const BY_MESSAGE: readonly [RegExp, PlatformFault, string][] = [
	[/not registered/i, "gone", "The person does not use Signal, or the account itself is not registered."],
	[/group not found|not a group member|invalid group id/i, "gone", "Add the account to the group again."],
	[/sending not allowed|only admins/i, "denied", "Only the group's admins may write there."],
];

const BY_RESULT: Readonly<Record<string, Meaning>> = {
	NETWORK_FAILURE: ["unknown_outcome", ""],
	UNREGISTERED_FAILURE: ["gone", "The person does not use Signal (any more)."],
	IDENTITY_FAILURE: UNTRUSTED,
	RATE_LIMIT_FAILURE: ["rate_limited", ""],
	INVALID_PRE_KEY_FAILURE: ["unavailable", "The person's device has no valid keys."],
};

export function refusal(method: string, error: RpcError): PlatformError {
	const failed = refusedBy(method, error.data?.response?.results ?? []);
	if (failed) return failed;
	const said = `${method}: ${error.code} ${error.message ?? ""}`.trim();
	const known = BY_MESSAGE.find(([pattern]) => pattern.test(error.message ?? ""));
	const [fault, advice] = BY_CODE[error.code] ?? (known ? [known[1], known[2]] : ["invalid", ""]);
	return new PlatformError(fault, `${said}. ${advice}`.trimEnd());
}

/** The fault of a message that reached no recipient. In a group one recipient is enough. */
export function refusedBy(method: string, results: readonly SendResult[]): PlatformError | undefined {
	const [first] = results;
	if (!first || results.some(({ type }) => type === "SUCCESS")) return undefined;
	const [fault, advice] = BY_RESULT[first.type] ?? ["invalid", ""];
	const captcha = first.token ? "Signal asks for a captcha: signal-cli submitRateLimitChallenge." : "";
	const wait = first.retryAfterSeconds === undefined ? {} : { retryAfterMs: first.retryAfterSeconds * 1000 };
	return new PlatformError(fault, `${method}: ${first.type}. ${advice} ${captcha}`.trimEnd(), wait);
}
