/** Pace as a value: when the next token is due. Counted from absolute time, so that late tokens catch up. */

export interface TokenPace {
	/** When the first token was due. */
	startMs: number;
	/** Tokens let through since then. */
	tokens: number;
}

export const paceFrom = (now: number): TokenPace => ({ startMs: now, tokens: 0 });

/** How long to wait before the next token; 0 when it is due or late. A rate of 0 never waits. */
export function waitMs(pace: TokenPace, rate: number, now: number): number {
	if (rate === 0) return 0;
	return Math.max(0, pace.startMs + (pace.tokens * 1000) / rate - now);
}
