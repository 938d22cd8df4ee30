/** Runs work at most once per animation frame, all of it together. */

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
		clearTimeout(timer);
		flush();
	});
	const timer = setTimeout(() => {
		cancelAnimationFrame(frame);
		flush();
	}, HIDDEN_FRAME_MS);
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
