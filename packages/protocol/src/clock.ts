/** Time as an argument, so that timing can be tested without waiting. */

export interface Clock {
	/** Milliseconds since the epoch. */
	now(): number;
	/** Calls back once after `ms`; returns how to cancel it. A pending call keeps the process alive only when it is `due` work. */
	after(ms: number, callback: () => void, due?: "due"): () => void;
	/** Milliseconds of a clock that nobody sets, from any beginning. Where it is left out, `now` has to do. */
	monotonic?(): number;
}

/** What one timer of Node can hold; it fires at once when asked for more. */
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

/** The clock's time, except that it never goes back: when the clock is set back it goes on from where it was. For ids and stamps in order. */
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

/** What the clock says now, and from here on what really passes, whatever the clock is set to. For limits and for measuring. */
export function elapsing(clock: Pick<Clock, "now" | "monotonic">): () => number {
	if (!clock.monotonic) return neverBack(clock);
	const begun = clock.now() - clock.monotonic();
	return () => Math.floor(begun + clock.monotonic!());
}

/** The same clock, except that nobody sets it: what is planned by it is neither put off nor brought on. */
export const steady = (clock: Clock): Clock => ({
	now: elapsing(clock),
	after: (...what) => clock.after(...what),
});

/** Waits for work that does not fail; false when the time ran out first. */
export function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
	return new Promise((resolve) => {
		const cancel = clock.after(ms, () => resolve(false));
		void work.finally(() => {
			cancel();
			resolve(true);
		});
	});
}
