/** Everything in the Broker has a limit (I11). `Infinity` switches a watchdog off. */

export interface BrokerLimits {
	/** Size of an engine's context, estimated. */
	contextTokensMax: number;
	contextTurnsMax: number;
	/** Past turns kept ready in memory, all sessions together. */
	historyCharsMax: number;
	/** Upper limit for the chunks of every modality, in addition to P1.18. */
	chunkBytesMax: number;
	/** Arguments and results of tools are cut to this length. */
	toolJsonCharsMax: number;
	/** Reasoning kept in the turn and shown to the next run, up to this length; 0 = none. */
	reasoningCharsMax: number;
	/** Signed reasoning kept per turn, signatures included; 0 = none. */
	signedReasoningCharsMax: number;
	/** Images (as base64) and resources of tool results kept per turn; one that does not fit becomes a note. */
	toolContentCharsMax: number;
	/** As JSON. A run with a larger checkpoint cannot be continued. */
	checkpointBytesMax: number;
	/** Entries that a run may add to the execution log; further ones are dropped. */
	executionEntriesMax: number;
	/** Limit of an entry's text, and of its data as JSON. */
	executionCharsMax: number;
	/** How long an engine may take to end after a stop (I12). */
	abortGraceMs: number;
	/** From the start to the first event of any kind. */
	firstTokenMs: number;
	/** From one event to the next while no tool runs. */
	interTokenMs: number;
	/** One run as a whole. */
	totalMs: number;
	/** One tool call. */
	toolMs: number;
}

export const BROKER_LIMITS: BrokerLimits = {
	contextTokensMax: 100_000,
	contextTurnsMax: 200,
	historyCharsMax: 16 * 1024 * 1024,
	chunkBytesMax: 64 * 1024,
	toolJsonCharsMax: 256 * 1024,
	reasoningCharsMax: 0,
	signedReasoningCharsMax: 256 * 1024,
	toolContentCharsMax: 4 * 1024 * 1024,
	checkpointBytesMax: 4 * 1024 * 1024,
	executionEntriesMax: 2000,
	executionCharsMax: 8 * 1024,
	abortGraceMs: 2000,
	firstTokenMs: 60_000,
	interTokenMs: 120_000,
	totalMs: 30 * 60_000,
	toolMs: 10 * 60_000,
};

/** The limits of a turn. */
export const keptOf = ({ reasoningCharsMax, signedReasoningCharsMax, toolContentCharsMax }: BrokerLimits) => ({
	reasoningCharsMax,
	signedReasoningCharsMax,
	toolContentCharsMax,
});
