/** The limits of the inbox (I11), whatever the channel. */

export interface InboxLimits {
	/** A message longer than this is refused. */
	textCharsMax: number;
	idempotencyKeyCharsMax: number;
	/** Messages of one session that wait behind its run, where its queue settings do not say it. */
	queueMessagesMax: number;
	/** Sessions that are being answered at the same time. */
	runsMax: number;
	/** A message that waited longer than this when the process starts is not answered any more. */
	queuedStaleMs: number;
}

export const INBOX_LIMITS: InboxLimits = {
	textCharsMax: 200_000,
	idempotencyKeyCharsMax: 256,
	queueMessagesMax: 100,
	runsMax: 4096,
	queuedStaleMs: 15 * 60_000,
};
