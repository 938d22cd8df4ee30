/** Time on the page: animation frames, timers, and requests that are repeated. */

import { systemClock } from "@nexus-stream/protocol/clock";

/** Milliseconds until the next request; undefined: none until `now` is called. */
export type Delay = number | undefined;

export interface Poller {
	/** Sends the request now, or once more right after the one in flight. */
	now(): void;
	stop(): void;
}

export interface Visibility {
	isHidden(): boolean;
	/** Calls back when the tab becomes visible; returns the function that unsubscribes. */
	onShown(callback: () => void): () => void;
}

const thisTab: Visibility = {
	isHidden: () => document.visibilityState !== "visible",
	onShown(callback) {
		const listener = () => document.visibilityState === "visible" && callback();
		document.addEventListener("visibilitychange", listener);
		return () => document.removeEventListener("visibilitychange", listener);
	},
};

/** `request` must not reject: the caller shows its failures. */
export function startPolling(request: () => Promise<Delay>, visibility: Visibility = thisTab): Poller {
	let cancel = () => {};
	let inFlight = false;
	let onceMore = false;
	let stopped = false;

	async function run(): Promise<void> {
		cancel();
		if (stopped) return;
		if (inFlight) {
			onceMore = true;
			return;
		}
		inFlight = true;
		onceMore = false;
		const delay = await request();
		inFlight = false;
		if (onceMore) return run();
		if (delay !== undefined && !stopped && !visibility.isHidden()) cancel = after(delay, () => void run());
	}

	const unsubscribe = visibility.onShown(() => void run());
	void run();
	return {
		now: () => void run(),
		stop() {
			stopped = true;
			cancel();
			unsubscribe();
		},
	};
}

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
