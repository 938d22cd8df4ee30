/** How far apart the flushes of one log are: a pure step over what was measured of the event loop (ADR 26). */

/** The event loop over one period. */
export interface LoopSample {
	/** Share of the time in which it did not wait, 0 to 1. */
	readonly utilisation: number;
	/** How late the timer came that took the sample. */
	readonly lateMs: number;
}

export interface Spacing {
	/** 0: every record leaves at once. */
	readonly ms: number;
	/** Smoothed: the noise of single periods would only ever raise the spacing. */
	readonly utilisation: number;
}

export const AT_ONCE: Spacing = { ms: 0, utilisation: 0 };

/** Between the two the spacing stays: spaced flushes lower the utilisation, which must not bring the spacing down at once. */
const BUSY = 0.95;
const ROOMY = 0.75;
/** Weight of the newest period. */
const NEWEST = 1 / 4;
const RAISES_TO_MAX = 6;
const LOWERINGS_TO_NONE = 30;

/**
 * The spacing of the next period. A loop that is busy for more than a moment and late by `msMax` gets all of it: what waits for the loop waits
 * longer than for a flush.
 */
export function nextSpacing(spacing: Spacing, { utilisation: newest, lateMs }: LoopSample, msMax: number): Spacing {
	const utilisation = spacing.utilisation + NEWEST * (newest - spacing.utilisation);
	if (newest >= BUSY && utilisation > ROOMY && lateMs >= msMax) return { ms: msMax, utilisation };
	if (utilisation >= BUSY) return { ms: Math.min(msMax, spacing.ms + msMax / RAISES_TO_MAX), utilisation };
	if (utilisation <= ROOMY) return { ms: Math.max(0, spacing.ms - msMax / LOWERINGS_TO_NONE), utilisation };
	return { ms: spacing.ms, utilisation };
}

/** The first moment from `now` on that is a flush of the log with this place (0 to 1) in the spacing. At most one spacing away. */
export function flushAt(place: number, spacingMs: number, now: number): number {
	const shift = place * spacingMs;
	return shift + Math.ceil((now - shift) / spacingMs) * spacingMs;
}
