/** Discord's refusals as platform faults, with advice for the operator. */

import { DiscordAPIError, HTTPError, RateLimitError } from "@discordjs/rest";
import { PlatformError } from "@nexus-stream/adapter";
import { foreignAnswer } from "@nexus-stream/adapter/platform/json";
import { networkError } from "@nexus-stream/adapter/platform/network";
import type { PlatformFault } from "@nexus-stream/adapter/port";
import { RESTJSONErrorCodes as Codes } from "discord-api-types/v10";

const BY_CODE: Readonly<Record<number, [PlatformFault, string]>> = {
	[Codes.UnknownChannel]: ["gone", "Check the channel id, and that the bot is in its server."],
	[Codes.UnknownMessage]: ["gone", "The message was deleted."],
	[Codes.UnknownGuild]: ["gone", "Invite the bot to the server again."],
	[Codes.UnknownUser]: ["gone", "Check the user id."],
	[Codes.MissingAccess]: ["denied", "Give the bot View Channel in this channel."],
	[Codes.MissingPermissions]: ["denied", "Give the bot Send Messages, in threads Send Messages in Threads."],
	[Codes.CannotReplyWithoutPermissionToReadMessageHistory]: ["denied", "Give the bot Read Message History."],
	[Codes.CannotSendMessagesToThisUser]: ["denied", "The person does not take messages from this bot."],
	[Codes.ThreadLocked]: ["denied", "The thread is locked."],
	[Codes.RequestEntityTooLarge]: ["invalid", "The file is larger than this server allows."],
};

const BY_STATUS: Readonly<Record<number, [PlatformFault, string]>> = {
	401: ["denied", "The bot token is wrong: reset it on the Bot page of the developer portal and store the new one."],
	403: ["denied", "The bot lacks a permission."],
	404: ["gone", "It is not there any more."],
};

export function toPlatformError(call: string, cause: unknown): PlatformError {
	if (cause instanceof PlatformError) return cause;
	if (cause instanceof RateLimitError) {
		// The library knows that the bucket is empty and has not called.
		const retryAfterMs = Math.ceil(Math.max(cause.retryAfter, cause.sublimitTimeout));
		return new PlatformError("rate_limited", `${call}: the bucket is empty`, { retryAfterMs, cause });
	}
	// The library does not say what a server error's body was.
	if (cause instanceof HTTPError) return foreignAnswer(call, { status: cause.status, headers: new Headers() });
	if (!(cause instanceof DiscordAPIError)) return networkError(call, cause);
	if (typeof cause.code !== "number") return foreignAnswer(call, { status: cause.status, headers: new Headers() });
	const [fault, advice] = BY_CODE[Number(cause.code)] ?? BY_STATUS[cause.status] ?? ["invalid", ""];
	return new PlatformError(fault, `${call}: ${cause.status} ${cause.message} (${cause.code}). ${advice}`.trimEnd(), {
		cause,
	});
}

/** A 429, from its body or, when it comes from the network in front of Discord, from its header. */
export function refusal(status: number, headers: Headers, body: unknown): PlatformError {
	const { retry_after: seconds, global } = (body ?? {}) as { retry_after?: unknown; global?: unknown };
	const wait = typeof seconds === "number" ? seconds : Number(headers.get("retry-after") ?? 1);
	const retryAfterMs = Math.ceil(wait * 1000);
	const scope = global === true ? "all of the account" : (headers.get("x-ratelimit-scope") ?? "this route");
	return new PlatformError("rate_limited", `${status} too many requests (${scope})`, { retryAfterMs });
}
