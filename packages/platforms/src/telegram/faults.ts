/** Telegram's refusals as platform faults, with advice for the operator. */

import { PlatformError } from "@nexus-stream/adapter";
import { networkError } from "@nexus-stream/adapter/platform/network";
import type { PlatformFault } from "@nexus-stream/adapter/port";
import { GrammyError, HttpError } from "grammy";

/** The first pattern that fits a description decides. */
const BY_DESCRIPTION: readonly [RegExp, PlatformFault, string][] = [
	[
		/not enough rights|have no rights|need administrator rights|CHAT_WRITE_FORBIDDEN/i,
		"denied",
		"Give the bot the right to write there.",
	],
	[/blocked by the user/i, "denied", "The person has blocked the bot."],
	[/can't initiate conversation/i, "denied", "The person has to write to the bot first."],
	[/kicked|not a member|deactivated|was deleted/i, "gone", "Add the bot to the chat again."],
	[/chat not found|PEER_ID_INVALID|upgraded to a supergroup/i, "gone", "Check the chat id."],
	[
		/message to (?:edit|delete) not found|message can't be edited|MESSAGE_ID_INVALID/i,
		"gone",
		"The message was deleted.",
	],
	[/thread not found|TOPIC_(?:CLOSED|DELETED)/i, "gone", "The topic was closed or deleted."],
];

const BY_CODE: Readonly<Record<number, [PlatformFault, string]>> = {
	401: ["denied", "The bot token is wrong: copy it from @BotFather again."],
	403: ["denied", "The bot may not write there."],
	// An invalid token makes an address that does not exist.
	404: ["denied", "The bot token is wrong: copy it from @BotFather again."],
	409: ["unavailable", "Another program reads this bot's updates: stop it, or give it another bot."],
};

export function toPlatformError(method: string, cause: unknown): PlatformError {
	if (cause instanceof PlatformError) return cause;
	if (cause instanceof HttpError) {
		return cause.error instanceof PlatformError ? cause.error : networkError(method, cause.error);
	}
	if (!(cause instanceof GrammyError)) return networkError(method, cause);
	const { error_code: code, description, parameters } = cause;
	const said = `${method}: ${code} ${description}`;
	if (code === 429) {
		const retryAfterMs = (parameters.retry_after ?? 1) * 1000;
		return new PlatformError("rate_limited", said, { retryAfterMs, cause });
	}
	// The platform itself answered: nothing was done.
	if (code >= 500) return new PlatformError("unavailable", said, { cause });
	const known = BY_DESCRIPTION.find(([pattern]) => pattern.test(description));
	const [fault, advice] = known ? [known[1], known[2]] : (BY_CODE[code] ?? ["invalid", ""]);
	return new PlatformError(fault, `${said}. ${advice}`.trimEnd(), { cause });
}

const describes = (cause: unknown, pattern: RegExp): boolean =>
	cause instanceof GrammyError && pattern.test(cause.description);

/** The message says this already. */
export const isNotModified = (cause: unknown): boolean => describes(cause, /message is not modified/i);

export const isMarkupFault = (cause: unknown): boolean =>
	describes(cause, /can't parse entities|entities_too_long|entity_bounds_invalid/i);

/** A group became a supergroup: its new id. */
export const migratedTo = (cause: unknown): number | undefined =>
	cause instanceof GrammyError ? cause.parameters.migrate_to_chat_id : undefined;
