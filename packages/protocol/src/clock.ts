/** Time as an argument, so that timing can be tested without waiting. */

export interface Clock {
	/** Milliseconds since the epoch. */
	now(): number;
	/** Calls back once after `ms`; returns how to cancel it. A pending call keeps the process alive only when it is `due` work. */
	after(ms: number, callback: () => void, due?: "due"): () => void;
	/** Milliseconds of a clock that is never set, from an arbitrary start. Without it, `now` is used. */
	monotonic?(): number;
}

/** The longest timeout of a Node timer; a longer one would fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
	now: () => Date.now(),
	monotonic: () => performance.now(),
	after(ms, callback, due) {
		let timer: NodeJS.Timeout;
		const wait = (left: number) => {
			timer =
				left > TIMER_MS_MAX ? setTimeout(() => wait(left - TIMER_MS_MAX), TIMER_MS_MAX) : setTimeout(callback, left);
			if (!due) timer.unref();
		};
		wait(ms);
		return () => clearTimeout(timer);
	},
};

/** The clock's time, but never decreasing: after the clock is set back, time continues from the last value. For ids and timestamps in order. */
export function neverBack(clock: Pick<Clock, "now">): () => number {
	let seen = clock.now();
	let last = seen;
	let lift = 0;
	return () => {
		const now = clock.now();
		// As mostly in a flood: nothing to compute, and no number to allocate.
		if (now === seen) return last;
		seen = now;
		lift = Math.max(lift, last - now);
		last = now + lift;
		return last;
	};
}

/** Starts at the clock's time and advances by elapsed time, even when the clock is set. For limits and measurements. */
export function elapsing(clock: Pick<Clock, "now" | "monotonic">): () => number {
	if (!clock.monotonic) return neverBack(clock);
	const begun = clock.now() - clock.monotonic();
	return () => Math.floor(begun + clock.monotonic!());
}

/** The same clock, immune to being set: its timers fire neither late nor early. */
export const steady = (clock: Clock): Clock => ({
	now: elapsing(clock),
	after: (...what) => clock.after(...what),
});

/** Waits for work that does not fail; false when the time ran out first. Only a `due` wait keeps the process alive. */
export function within(clock: Clock, ms: number, work: Promise<unknown>, due?: "due"): Promise<boolean> {
	return new Promise((resolve) => {
		const cancel = clock.after(ms, () => resolve(false), due);
		void work.finally(() => {
			cancel();
			resolve(true);
		});
	});
}
