/** Asks again and again, as often as the last answer calls for, never twice at a time, and not while nobody looks. */

/** Milliseconds until it is asked again; undefined = not until somebody wants it. */
type Delay = number | undefined;

export interface Poller {
	/** Asks now, or once more right after what is being asked. */
	now(): void;
	stop(): void;
}

export interface Looking {
	isHidden(): boolean;
	/** Calls back when the page is looked at again; returns how to end that. */
	onShown(callback: () => void): () => void;
}

const thisPage: Looking = {
	isHidden: () => document.visibilityState !== "visible",
	onShown(callback) {
		const listener = () => document.visibilityState === "visible" && callback();
		document.addEventListener("visibilitychange", listener);
		return () => document.removeEventListener("visibilitychange", listener);
	},
};

/** `ask` must not fail: what goes wrong is part of what it shows. */
export function startPolling(ask: () => Promise<Delay>, looking: Looking = thisPage): Poller {
	let timer: ReturnType<typeof setTimeout> | undefined;
	let loading = false;
	let onceMore = false;
	let stopped = false;

	async function run(): Promise<void> {
		clearTimeout(timer);
		if (stopped) return;
		if (loading) {
			onceMore = true;
			return;
		}
		loading = true;
		onceMore = false;
		const delay = await ask();
		loading = false;
		if (onceMore) return run();
		if (delay !== undefined && !stopped && !looking.isHidden()) timer = setTimeout(() => void run(), delay);
	}

	const forget = looking.onShown(() => void run());
	void run();
	return {
		now: () => void run(),
		stop() {
			stopped = true;
			clearTimeout(timer);
			forget();
		},
	};
}
