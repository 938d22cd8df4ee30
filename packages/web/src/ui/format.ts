/** Durations, ages and counts as text. */

export function durationText(ms: number): string {
	if (ms < 0) return "0 ms";
	// Rounded first, so that 999.6 ms reads 1.0 s.
	const whole = Math.round(ms);
	if (whole < 1000) return `${whole} ms`;
	const tenths = Math.round(ms / 100) / 10;
	if (tenths < 10) return `${tenths.toFixed(1)} s`;
	const seconds = Math.round(ms / 1000);
	return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

const TENTHS_BELOW_MS = 10_000;

/** A countdown. It has tenths only below ten seconds, because a platform may ask for an hour. */
export const leftText = (ms: number): string =>
	ms < TENTHS_BELOW_MS ? `${(ms / 1000).toFixed(1)} s` : durationText(ms);

export function ageText(at: number, now: number): string {
	const minutes = Math.floor((now - at) / 60_000);
	if (minutes < 1) return "now";
	if (minutes < 60) return `${minutes} min`;
	if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h`;
	if (minutes < 7 * 24 * 60) return `${Math.floor(minutes / (24 * 60))} d`;
	return new Date(at).toLocaleDateString(undefined, { month: "short", day: "numeric" });
}

export const plural = (count: number, one: string, many = `${one}s`): string =>
	`${count.toLocaleString("en")} ${count === 1 ? one : many}`;
