/** Twilio's refusals as platform faults, with advice for the operator. */

import { PlatformError } from "@nexus-stream/adapter";
import { foreignAnswer, type JsonAnswer, retryAfter } from "@nexus-stream/adapter/platform/json";
import { type Meaning, meanings } from "../meanings.ts";

const CREDENTIALS = "The account SID or the auth token is wrong: copy both from the Twilio console again.";

/** By Twilio's own code; a code that is not here is about the content. */
const BY_CODE = meanings<number>(
	["denied", CREDENTIALS, 20003],
	["denied", "The Twilio account is suspended.", 20005],
	["gone", "Check the account SID.", 20404],
	["rate_limited", "", 20429],
	["rate_limited", "The number sends too fast.", 14107],
	["gone", "Write the number as +, country code and number.", 21211],
	["denied", "Use a number or messaging service of this account as `from`.", 21212, 21606, 21659, 21660],
	["denied", "Allow this country in the console under Messaging, Geo permissions.", 21408],
	["denied", "A trial account writes only from its trial number.", 21607],
	["denied", "A trial account writes only to numbers that were verified in the console.", 21608],
	["denied", "The person has written STOP; only START from them ends that.", 21610],
	["rate_limited", "Too many messages wait to be sent from this number.", 21611],
	["gone", "Twilio has no route to this number.", 21612],
	["gone", "The number cannot receive text messages.", 21614],
	["denied", "The account's daily limit is used up.", 63038],
);

const BY_STATUS = meanings<number>(
	["denied", CREDENTIALS, 401],
	["denied", "", 403],
	["gone", "", 404],
	["rate_limited", "", 429],
);

/** Only 503 says that Twilio did not process the request. */
function meaningOf(status: number): Meaning {
	if (status >= 500) return [status === 503 ? "unavailable" : "unknown_outcome", ""];
	return BY_STATUS.get(status) ?? ["invalid", ""];
}

export function refusal(call: string, { status, headers, body }: JsonAnswer): PlatformError {
	const { code, message } = (body ?? {}) as { code?: unknown; message?: unknown };
	if (typeof code !== "number" || typeof message !== "string") return foreignAnswer(call, { status, headers });
	const [fault, advice] = BY_CODE.get(code) ?? meaningOf(status);
	const said = `${call}: ${status} (${code}) ${message} ${advice}`;
	return new PlatformError(fault, said.replace(/ {2,}/g, " ").trim(), retryAfter(headers, Date.now()));
}
