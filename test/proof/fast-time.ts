/** Loaded before an adapter: its time passes NODE_FAST_TIME times as fast, so that hours at a platform's pace take minutes, and every interval keeps its proportion. */

const factor = Number(process.env.NODE_FAST_TIME ?? 1);
const { setTimeout: realTimeout } = globalThis;
const begun = Date.now();
const realNow = Date.now.bind(Date);

Date.now = () => Math.round(begun + (realNow() - begun) * factor);
const realElapsed = performance.now.bind(performance);
performance.now = () => realElapsed() * factor;
globalThis.setTimeout = Object.assign(
	(work: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) => realTimeout(work, ms / factor, ...given),
	realTimeout,
) as typeof setTimeout;

export {};
