/** Repeats a request at the interval that its last result asks for: one at a time, and only while the tab is visible. */

import { after } from "./frame-clock.ts";

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
