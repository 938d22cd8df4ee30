/** Every limit of outbound delivery, with its default. */

import { RESTART_RULES, type RestartRules } from "../std/supervision.ts";
import { PROCESS_LIMITS, type ProcessLimits } from "./accounts/line-process.ts";
import { ONE_SHOT_LIMITS, type OneShotLimits } from "./accounts/one-shot.ts";
import { TYPING_TTL_MS } from "./delivery/stream/typing.ts";

export interface OutboundLimits {
	process: ProcessLimits;
	restart: RestartRules;
	oneShot: OneShotLimits;
	/** An unfinished delivery whose answer is older than this is not finished at a start. */
	staleMs: number;
	/** Longest time an adapter may take for a line of `send`, or to finish a stream after its end, while it says nothing. */
	answerMs: number;
	/** How long an adapter without positions may take to finish a message before what stands beside it; later it comes after the text. */
	attachmentMs: number;
	/** An answer that has ended and cannot be delivered is given up after this. */
	giveUpMs: number;
	/** How long the deliveries of an account that was removed or changed may still take. */
	retireMs: number;
	/** How long a store that refuses what deliveries report may hold up the end of this process. */
	recordMs: number;
	/** Wait before a refused send, or an inbound message that the store refused, is tried again; doubles. */
	retryMs: number;
	retryMsMax: number;
	/** How long platforms with idempotent creation are trusted to recognise a nonce. */
	nonceWindowMs: number;
	/** Longest token line. */
	tokenCharsMax: number;
	typingTtlMs: number;
	/** Inbound messages of an account that wait for being safe. */
	inboundWaitingMax: number;
	/** How long a webhook request waits for its account to be listened to, and again for its answer. */
	webhookMs: number;
	/** Requests of an account that wait for it to be listened to. */
	webhooksHeldMax: number;
	textCharsMax: number;
}

export const OUTBOUND_LIMITS: OutboundLimits = {
	process: PROCESS_LIMITS,
	restart: RESTART_RULES,
	oneShot: ONE_SHOT_LIMITS,
	staleMs: 15 * 60_000,
	answerMs: 5 * 60_000,
	attachmentMs: 10_000,
	giveUpMs: 60 * 60_000,
	retireMs: 60_000,
	recordMs: 5_000,
	retryMs: 500,
	retryMsMax: 60_000,
	nonceWindowMs: 60_000,
	tokenCharsMax: 64 * 1024,
	typingTtlMs: TYPING_TTL_MS,
	inboundWaitingMax: 64,
	webhookMs: 25_000,
	webhooksHeldMax: 16,
	textCharsMax: 1024 * 1024,
};
