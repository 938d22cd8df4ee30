/** Runs work at most once per animation frame, all of it together; and the timers of the page. */

import { systemClock } from "@nexus-stream/protocol/clock";

/** Calls back once after `ms`; returns how to cancel it. A browser has no process that its timers could keep alive. */
export const after = (ms: number, callback: () => void): (() => void) => systemClock.after(ms, callback, "due");

export type ScheduleFrame = (run: () => void) => void;

/** A hidden page gets no animation frames, but its title and its announcements must stay current. */
const HIDDEN_FRAME_MS = 500;

let queue: (() => void)[] = [];
let flushing = false;

/** A callback that is scheduled by another callback still runs in the same frame: folding and drawing share one. */
export const onNextFrame: ScheduleFrame = (run) => {
	queue.push(run);
	if (queue.length > 1 || flushing) return;
	const frame = requestAnimationFrame(() => {
		cancel();
		flush();
	});
	const cancel = after(HIDDEN_FRAME_MS, () => {
		cancelAnimationFrame(frame);
		flush();
	});
};

function flush(): void {
	flushing = true;
	try {
		for (let index = 0; index < queue.length; index += 1) queue[index]?.();
	} finally {
		queue = [];
		flushing = false;
	}
}
