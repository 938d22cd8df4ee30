/** How long each tool usually takes: the median of what was seen lately. */

/** Tools that are remembered, and times of each. */
const TOOLS_MAX = 256;
const TIMES_MAX = 31;

export interface Durations {
	add(tool: string, ms: number): void;
	/** The default until something was seen. */
	usualMs(tool: string): number;
	/** When a person should learn that it takes longer: nobody has to know that of 2 ms. */
	noticeMs(tool: string): number;
}

export function durations(defaultMs: number): Durations {
	const seen = new Map<string, number[]>();
	const usualMs = (tool: string): number => {
		const times = seen.get(tool)?.toSorted((a, b) => a - b);
		return times?.[Math.floor(times.length / 2)] ?? defaultMs;
	};
	return {
		add(tool, ms) {
			const times = seen.get(tool) ?? [];
			if (times.length === 0 && seen.size >= TOOLS_MAX) return;
			times.push(ms);
			if (times.length > TIMES_MAX) times.shift();
			seen.set(tool, times);
		},
		usualMs,
		noticeMs: (tool) => Math.max(defaultMs, usualMs(tool)),
	};
}
