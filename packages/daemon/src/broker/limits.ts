/** Everything in the Broker has a limit (I11). `Infinity` switches a watchdog off. */

export interface BrokerLimits {
	/** What an engine is given to read, estimated. */
	contextTokensMax: number;
	contextTurnsMax: number;
	/** Past turns kept ready in memory, all sessions together. */
	historyCharsMax: number;
	/** Above this no modality's chunk goes, whatever P1.18 allows it. */
	chunkBytesMax: number;
	/** Arguments and results of tools are kept up to here. */
	toolJsonCharsMax: number;
	/** Reasoning is kept in the turn, and told to the next one, up to here; 0 = not at all. */
	reasoningCharsMax: number;
	/** Reasoning that its provider signed is kept for the next turns up to here per turn, signatures included; 0 = not at all. */
	signedReasoningCharsMax: number;
	/** Images (as base64) and resources that tools answered are kept up to here per turn; one that does not fit becomes a note. */
	toolContentCharsMax: number;
	/** A larger checkpoint is not kept, as JSON: its run cannot be continued. */
	checkpointBytesMax: number;
	/** Entries that a run adds to the execution log; the rest is left out. */
	executionEntriesMax: number;
	/** Of an entry's text, and of its data as JSON. */
	executionCharsMax: number;
	/** How long an engine may take to end by itself after it was stopped (I12). */
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

/** What of a run its turn keeps. */
export const keptOf = ({ reasoningCharsMax, signedReasoningCharsMax, toolContentCharsMax }: BrokerLimits) => ({
	reasoningCharsMax,
	signedReasoningCharsMax,
	toolContentCharsMax,
});
