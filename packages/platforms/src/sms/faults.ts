/** What Twilio's refusals mean, and what to do about them. */

import { PlatformError } from "@nexus-stream/adapter";
import { foreignAnswer, type JsonAnswer, retryAfter } from "@nexus-stream/adapter/platform/json";
import type { PlatformFault } from "@nexus-stream/adapter/port";

const CREDENTIALS = "The account SID or the auth token is wrong: copy both from the Twilio console again.";
const SENDER = "Use a number or messaging service of this account as `from`.";

/** By Twilio's own code; a code that is not here is about the content. */
const BY_CODE: Readonly<Record<number, readonly [fault: PlatformFault, advice: string]>> = {
	20003: ["denied", CREDENTIALS],
	20005: ["denied", "The Twilio account is suspended."],
	20404: ["gone", "Check the account SID."],
	20429: ["rate_limited", ""],
	14107: ["rate_limited", "The number sends too fast."],
	21211: ["gone", "Write the number as +, country code and number."],
	21212: ["denied", SENDER],
	21408: ["denied", "Allow this country in the console under Messaging, Geo permissions."],
	21606: ["denied", SENDER],
	21607: ["denied", "A trial account writes only from its trial number."],
	21608: ["denied", "A trial account writes only to numbers that were verified in the console."],
	21610: ["denied", "The person has written STOP; only START from them ends that."],
	21611: ["rate_limited", "Too many messages wait to be sent from this number."],
	21612: ["gone", "Twilio has no route to this number."],
	21614: ["gone", "The number cannot receive text messages."],
	21659: ["denied", SENDER],
	21660: ["denied", SENDER],
	63038: ["denied", "The account's daily limit is used up."],
};

const BY_STATUS: Readonly<Record<number, readonly [fault: PlatformFault, advice: string]>> = {
	401: ["denied", CREDENTIALS],
	403: ["denied", ""],
	404: ["gone", ""],
	429: ["rate_limited", ""],
};

/** Only 503 says that nobody looked at the request. */
function meaningOf(status: number): readonly [fault: PlatformFault, advice: string] {
	if (status >= 500) return [status === 503 ? "unavailable" : "unknown_outcome", ""];
	return BY_STATUS[status] ?? ["invalid", ""];
}

export function refusal(call: string, { status, headers, body }: JsonAnswer): PlatformError {
	const { code, message } = (body ?? {}) as { code?: unknown; message?: unknown };
	if (typeof code !== "number" || typeof message !== "string") return foreignAnswer(call, { status, headers });
	const [fault, advice] = BY_CODE[code] ?? meaningOf(status);
	const said = `${call}: ${status} (${code}) ${message} ${advice}`;
	return new PlatformError(fault, said.replace(/ {2,}/g, " ").trim(), retryAfter(headers, Date.now()));
}
