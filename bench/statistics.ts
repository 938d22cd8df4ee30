/** The few numbers that figures are summed up with. */

/** The value that this many per cent of the values do not exceed; NaN when there are none. */
export function percentile(values: readonly number[], percent: number): number {
	const sorted = Float64Array.from(values).sort();
	return sorted[Math.min(sorted.length - 1, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN;
}

export const median = (values: readonly number[]): number => percentile(values, 50);
