/** Every limit of outbound delivery, with its default. */

import { RESTART_RULES, type RestartRules } from "../std/supervision.ts";

export interface ProcessLimits {
	/** Longest line on stdout. */
	lineBytesMax: number;
	/** Resident memory; a process above it is killed (Linux). */
	memoryBytesMax: number;
	memoryCheckMs: number;
	/** Longest line of stderr that is logged, and how many a second. */
	stderrCharsMax: number;
	stderrLinesPerSecondMax: number;
	/** From the end of its input to SIGTERM, and from there to SIGKILL. Also how long it may live after it closed its input or output. */
	endGraceMs: number;
	termGraceMs: number;
	/** Longest time that the process may read nothing while its pipe is full. */
	unreadMs: number;
	/** A process that writes more invalid lines than this is killed. */
	garbageLinesPerMinuteMax: number;
}

export const PROCESS_LIMITS: ProcessLimits = {
	lineBytesMax: 4 * 1024 * 1024,
	memoryBytesMax: 1024 * 1024 * 1024,
	memoryCheckMs: 5000,
	stderrCharsMax: 2000,
	stderrLinesPerSecondMax: 50,
	endGraceMs: 5000,
	termGraceMs: 2000,
	unreadMs: 600_000,
	garbageLinesPerMinuteMax: 1000,
};

export interface OneShotLimits {
	answerMs: number;
	answerBytesMax: number;
}

export const ONE_SHOT_LIMITS: OneShotLimits = { answerMs: 20_000, answerBytesMax: 1024 * 1024 };

export interface OutboundLimits {
	process: ProcessLimits;
	restart: RestartRules;
	oneShot: OneShotLimits;
	/** After a restart, an unfinished delivery whose answer is older than this is marked stale instead of finished. */
	staleMs: number;
	/** Longest silence of an adapter that has to answer a line of `send`, or to finish a stream after its end. */
	answerMs: number;
	/** How long an adapter without positions may take to finish the message before an attachment; after that, the attachment is sent after the text. */
	attachmentMs: number;
	/** A delivery without progress fails after this. */
	giveUpMs: number;
	/** How long the deliveries of a removed or changed account may still take. */
	retireMs: number;
	/** How long a store that refuses changes of deliveries may delay the end of this process. */
	recordMs: number;
	/** First and longest back-off of a refused send, and of an inbound message that the store refused. */
	retryMs: number;
	retryMsMax: number;
	/** How long platforms with idempotent creation are trusted to recognise a nonce. */
	nonceWindowMs: number;
	/** Longest token line. */
	tokenCharsMax: number;
	/** Without progress the typing indicator ends after this: long enough for a slow tool or a reasoning model, short enough for a dead one. */
	typingTtlMs: number;
	/** Inbound messages of an account that wait to be durable. */
	inboundWaitingMax: number;
	/** How long a webhook request waits for the account's monitor and its answer. */
	webhookMs: number;
	/** Webhook requests of an account that wait for its monitor to start. */
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
	typingTtlMs: 5 * 60_000,
	inboundWaitingMax: 64,
	webhookMs: 25_000,
	webhooksHeldMax: 16,
	textCharsMax: 1024 * 1024,
};
