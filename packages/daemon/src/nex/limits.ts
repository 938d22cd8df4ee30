/** Every limit of outbound delivery, with its default. */

import { RESTART_RULES } from "../std/supervision.ts";

export const PROCESS_LIMITS = {
	/** Longest line on stdout. */
	lineBytesMax: 4 * 1024 * 1024,
	/** Resident memory; a process above it is killed (Linux). */
	memoryBytesMax: 1024 * 1024 * 1024,
	memoryCheckMs: 5000,
	/** Longest line of stderr that is logged, and how many a second. */
	stderrCharsMax: 2000,
	stderrLinesPerSecondMax: 50,
	/** From the end of its input to SIGTERM, and from there to SIGKILL. Also how long it may live after it closed its input or output. */
	endGraceMs: 5000,
	termGraceMs: 2000,
	/** Longest time that the process may read nothing while its pipe is full. */
	unreadMs: 600_000,
	/** A process that writes more invalid lines than this is killed. */
	garbageLinesPerMinuteMax: 1000,
};
export type ProcessLimits = typeof PROCESS_LIMITS;

export const ONE_SHOT_LIMITS = { answerMs: 20_000, answerBytesMax: 1024 * 1024 };
export type OneShotLimits = typeof ONE_SHOT_LIMITS;

export const OUTBOUND_LIMITS = {
	process: PROCESS_LIMITS,
	restart: RESTART_RULES,
	oneShot: ONE_SHOT_LIMITS,
	/** After a restart, an unfinished delivery whose answer is older than this is marked stale instead of finished. */
	staleMs: 15 * 60_000,
	/** Longest silence of an adapter that has to answer a line of `send`, or to finish a stream after its end. */
	answerMs: 5 * 60_000,
	/** How long an adapter without positions may take to finish the message before an attachment; after that, the attachment is sent after the text. */
	attachmentMs: 10_000,
	/** A delivery without progress fails after this. */
	giveUpMs: 60 * 60_000,
	/** How long the deliveries of a removed or changed account may still take. */
	retireMs: 60_000,
	/** How long a store that refuses changes of deliveries may delay the end of this process. */
	recordMs: 5_000,
	/** First and longest back-off of a refused send, and of an inbound message that the store refused. */
	retryMs: 500,
	retryMsMax: 60_000,
	/** How long platforms with idempotent creation are trusted to recognise a nonce. */
	nonceWindowMs: 60_000,
	/** Longest token line. */
	tokenCharsMax: 64 * 1024,
	/** Without progress the typing indicator ends after this: long enough for a slow tool or a reasoning model, short enough for a dead one. */
	typingTtlMs: 5 * 60_000,
	/** Inbound messages of an account that wait to be durable. */
	inboundWaitingMax: 64,
	/** How long a webhook request waits for the account's monitor and its answer. */
	webhookMs: 25_000,
	/** Webhook requests of an account that wait for its monitor to start. */
	webhooksHeldMax: 16,
	textCharsMax: 1024 * 1024,
};
export type OutboundLimits = typeof OUTBOUND_LIMITS;
