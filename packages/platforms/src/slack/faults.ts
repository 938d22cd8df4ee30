/** Slack's refusals as platform faults, with advice for the operator. */

import { PlatformError } from "@nexus-stream/adapter";
import { foreignAnswer } from "@nexus-stream/adapter/platform/json";
import { networkError } from "@nexus-stream/adapter/platform/network";
import { WebAPIHTTPError, WebAPIPlatformError, WebAPIRateLimitedError, WebAPIRequestError } from "@slack/web-api";
import { meanings } from "../meanings.ts";

const TOKEN = "The token is wrong or was revoked: copy it from the app's page at api.slack.com again.";
const ADMIN = "An administrator has to allow the app.";
const INVITE = "Invite the app to the channel: /invite @app.";

/** By Slack's own word; a word that is not here is about the content. */
const BY_WORD = meanings<string>(
	["denied", TOKEN, "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"],
	[
		"denied",
		"Use the bot token (xoxb-…) as bot_token and the app token (xapp-…) as app_token.",
		"not_allowed_token_type",
	],
	["denied", "Add the scope to the app and install it again.", "missing_scope", "no_permission"],
	["denied", ADMIN, "access_denied", "ekm_access_denied", "team_access_not_granted"],
	["denied", "The workspace does not let the app write there.", "restricted_action"],
	["denied", "The channel is read-only.", "restricted_action_read_only_channel"],
	["denied", "The thread is locked.", "restricted_action_thread_locked"],
	["denied", INVITE, "not_in_channel"],
	["denied", "Only the app that wrote a message may change it.", "cant_update_message", "message_not_owned_by_app"],
	["denied", "The workspace limits how long messages can be changed.", "edit_window_closed"],
	["gone", `Check the channel's id. ${INVITE}`, "channel_not_found"],
	["gone", "The channel is archived.", "is_archived"],
	["gone", "The message was deleted.", "message_not_found"],
	["gone", "The thread's first message was deleted.", "thread_not_found"],
	["gone", "Check the user's id.", "user_not_found", "users_not_found"],
	["gone", "The file was deleted.", "file_not_found"],
	["unavailable", "", "service_unavailable", "request_timeout"],
	["unavailable", "The workspace is being moved.", "team_added_to_org"],
	// Slack's words for these: some of it may have happened.
	["unknown_outcome", "", "internal_error", "fatal_error"],
	["rate_limited", "", "ratelimited", "rate_limited"],
);

export function toPlatformError(method: string, cause: unknown): PlatformError {
	if (cause instanceof PlatformError) return cause;
	if (cause instanceof WebAPIRateLimitedError) {
		const retryAfterMs = cause.retryAfter * 1000;
		return new PlatformError("rate_limited", `${method}: slow down for ${cause.retryAfter} s`, { retryAfterMs, cause });
	}
	if (cause instanceof WebAPIHTTPError) {
		// Slack refuses with 200 and a word.
		return foreignAnswer(method, { status: cause.statusCode, headers: new Headers(cause.headers) }, cause);
	}
	if (cause instanceof WebAPIRequestError) return networkError(method, cause.original);
	if (!(cause instanceof WebAPIPlatformError)) {
		// The SDK's word for a refusal that does not say how long.
		const unsaid = cause instanceof Error && cause.message.startsWith("Retry header did not contain");
		return unsaid ? new PlatformError("rate_limited", `${method}: slow down`, { cause }) : networkError(method, cause);
	}
	const { error, needed } = cause.data as { error: unknown; needed?: string };
	// The SDK returns a body that is not JSON as the error code.
	if (typeof error !== "string" || !/^\w{1,100}$/.test(error)) {
		return foreignAnswer(method, { status: 200, headers: new Headers() });
	}
	const [fault, advice] = BY_WORD.get(error) ?? ["invalid", ""];
	const words = [`${method}: ${error}`, needed ? `(${needed})` : "", advice].filter((each) => each !== "");
	return new PlatformError(fault, words.join(" "), { cause });
}

/** Slack's word for a refusal. */
export function wordOf(cause: unknown): string | undefined {
	const inner = cause instanceof PlatformError ? cause.cause : cause;
	return inner instanceof WebAPIPlatformError ? inner.data.error : undefined;
}

/** Native streaming is not to be had in this place or for this app; ordinary messages are. */
const NO_STREAMING: ReadonlySet<string | undefined> = new Set([
	"unknown_method",
	"method_deprecated",
	"feature_not_enabled",
	"not_allowed",
	"channel_type_not_supported",
	"method_not_supported_for_channel_type",
	"missing_recipient_user_id",
	"missing_recipient_team_id",
	"user_not_found",
	"invalid_thread_ts",
]);

/** HTTP statuses of a server that lacks the method: the call created nothing. */
const NO_METHOD: ReadonlySet<number> = new Set([404, 405, 501]);

/** Whether a failed `chat.startStream` means that the workspace or server has no native streaming. */
export function isWithoutStreaming(cause: unknown): boolean {
	const inner = cause instanceof PlatformError ? cause.cause : cause;
	return inner instanceof WebAPIHTTPError ? NO_METHOD.has(inner.statusCode) : NO_STREAMING.has(wordOf(cause));
}
