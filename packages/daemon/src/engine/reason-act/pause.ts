/** Waits for a while, or until the signal aborts. Leaves neither a timer nor a listener behind. */

import type { Clock } from "@nexus-stream/protocol/clock";

export function pause(ms: number, signal: AbortSignal, clock: Clock): Promise<void> | undefined {
	if (ms <= 0 || signal.aborted) return undefined;
	return new Promise((resolve) => {
		const over = () => {
			disarm();
			signal.removeEventListener("abort", over);
			resolve();
		};
		const disarm = clock.after(ms, over, "due");
		signal.addEventListener("abort", over);
	});
}
