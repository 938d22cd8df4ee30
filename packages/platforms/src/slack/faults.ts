/** What Slack's refusals mean, and what to do about them. */

import { PlatformError } from "@nexus-stream/adapter";
import { foreignAnswer } from "@nexus-stream/adapter/platform/json";
import { networkError } from "@nexus-stream/adapter/platform/network";
import type { PlatformFault } from "@nexus-stream/adapter/port";
import { WebAPIHTTPError, WebAPIPlatformError, WebAPIRateLimitedError, WebAPIRequestError } from "@slack/web-api";

const TOKEN = "The token is wrong or was revoked: copy it from the app's page at api.slack.com again.";
const INVITE = "Invite the app to the channel: /invite @app.";

/** By Slack's own word; a word that is not here is about the content. */
const BY_WORD: Readonly<Record<string, readonly [fault: PlatformFault, advice: string]>> = {
	invalid_auth: ["denied", TOKEN],
	not_authed: ["denied", TOKEN],
	account_inactive: ["denied", TOKEN],
	token_revoked: ["denied", TOKEN],
	token_expired: ["denied", TOKEN],
	not_allowed_token_type: [
		"denied",
		"Use the bot token (xoxb-…) as bot_token and the app token (xapp-…) as app_token.",
	],
	missing_scope: ["denied", "Add the scope to the app and install it again."],
	no_permission: ["denied", "Add the scope to the app and install it again."],
	access_denied: ["denied", "An administrator has to allow the app."],
	ekm_access_denied: ["denied", "An administrator has to allow the app."],
	team_access_not_granted: ["denied", "An administrator has to allow the app."],
	restricted_action: ["denied", "The workspace does not let the app write there."],
	restricted_action_read_only_channel: ["denied", "The channel is read-only."],
	restricted_action_thread_locked: ["denied", "The thread is locked."],
	not_in_channel: ["denied", INVITE],
	cant_update_message: ["denied", "Only the app that wrote a message may change it."],
	edit_window_closed: ["denied", "The workspace limits how long messages can be changed."],
	message_not_owned_by_app: ["denied", "Only the app that wrote a message may change it."],
	channel_not_found: ["gone", `Check the channel's id. ${INVITE}`],
	is_archived: ["gone", "The channel is archived."],
	message_not_found: ["gone", "The message was deleted."],
	thread_not_found: ["gone", "The thread's first message was deleted."],
	user_not_found: ["gone", "Check the user's id."],
	users_not_found: ["gone", "Check the user's id."],
	file_not_found: ["gone", "The file was deleted."],
	service_unavailable: ["unavailable", ""],
	team_added_to_org: ["unavailable", "The workspace is being moved."],
	request_timeout: ["unavailable", ""],
	// Slack's words for these: some of it may have happened.
	internal_error: ["unknown_outcome", ""],
	fatal_error: ["unknown_outcome", ""],
	ratelimited: ["rate_limited", ""],
	rate_limited: ["rate_limited", ""],
};

/** Every failure of a call in the words of all platforms. */
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
	// The SDK gives a body that is no JSON as the word.
	if (typeof error !== "string" || !/^\w{1,100}$/.test(error)) {
		return foreignAnswer(method, { status: 200, headers: new Headers() });
	}
	const [fault, advice] = BY_WORD[error] ?? ["invalid", ""];
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
