/** Refusals of the Cloud API as platform faults, with advice for the operator. */

import { PlatformError } from "@nexus-stream/adapter";
import { foreignAnswer, type JsonAnswer, retryAfter } from "@nexus-stream/adapter/platform/json";
import { type Meaning, meanings } from "../meanings.ts";

/** Too many messages to one person. */
export const PAIR_LIMIT_CODE = 131056;

const TOKEN = "Make a new access token of a system user with whatsapp_business_messaging.";
const WINDOW =
	"The person last wrote more than 24 hours ago: WhatsApp delivers only approved templates until they write again.";
const LATER = "Try again later.";

/** By Meta's own code; a code that is not here is about the content. */
const BY_CODE = meanings<number>(
	["denied", TOKEN, 0, 3, 10, 190, 131005],
	["denied", "The account is restricted for breaking a policy: see WhatsApp Manager.", 368],
	["denied", "The account is locked: see WhatsApp Manager.", 131031],
	["denied", "The account has no valid way to pay: see WhatsApp Manager.", 131042],
	["denied", "Register the phone number with the Cloud API first.", 131045, 133010],
	["denied", "A test number writes only to the numbers on its list of recipients: add this one.", 131030],
	["denied", "Too many people blocked or reported this number: see its quality in WhatsApp Manager.", 131048],
	["denied", "The account may not write to people in this country.", 130497],
	["invalid", WINDOW, 131047],
	["gone", "The number is not on WhatsApp, or its WhatsApp is too old.", 131026],
	["invalid", "The number is the sender's own.", 131021],
	["invalid", "The person is part of an experiment of Meta's and gets no such messages.", 130472],
	["rate_limited", LATER, 4, 80007],
	["rate_limited", "The number sends more than 80 messages a second.", 130429],
	// Only this chat is too fast: it waits, and the others go on.
	["unavailable", "Too many messages to this person; WhatsApp takes about one in six seconds.", PAIR_LIMIT_CODE],
	["unavailable", LATER, 1, 2, 131000, 131016, 133004],
	["unavailable", "The account is in maintenance.", 131057],
);

/** Graph's word for "there is no such object, or you may not see it". */
const NO_OBJECT_SUBCODE = 33;

export interface GraphError {
	code?: number;
	message?: string;
	title?: string;
	error_subcode?: number;
	error_data?: { details?: string };
}

export function refusal(call: string, { status, headers, body }: JsonAnswer): PlatformError {
	const error = (body as { error?: GraphError } | undefined)?.error;
	if (typeof error?.code !== "number") return foreignAnswer(call, { status, headers });
	if (error.code === 100 && error.error_subcode === NO_OBJECT_SUBCODE) {
		return new PlatformError("denied", `${call}: ${wordsOf(error)} Check phone_number_id and the token's permissions.`);
	}
	const [fault, advice] = meaningOf(error.code);
	const wait = retryAfter(headers, Date.now());
	return new PlatformError(fault, `${call}: ${wordsOf(error)} ${advice}`.trim(), { ...wait, cause: error });
}

const meaningOf = (code: number): Meaning =>
	BY_CODE.get(code) ?? (code >= 200 && code < 300 ? ["denied", TOKEN] : ["invalid", ""]);

/** Why an accepted message was not delivered, for a person. */
export const explain = (error: GraphError): string => `${wordsOf(error)} ${meaningOf(error.code ?? -1)[1]}`.trim();

const wordsOf = ({ code, message, title, error_data }: GraphError): string =>
	`(${code}) ${error_data?.details ?? message ?? title ?? ""}`.trim();

export const codeOf = (cause: unknown): number | undefined =>
	cause instanceof PlatformError ? (cause.cause as GraphError | undefined)?.code : undefined;
