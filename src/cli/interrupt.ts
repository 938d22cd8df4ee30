/** Ctrl-C: the first asks for an orderly end, the second does not ask. */

import { exitCodeOf } from "../protocol/protocol.ts";

/** npm passes on what the terminal has already sent: two signals this close are one key press. */
const SAME_PRESS_MS = 250;

export function onInterrupt(first: (signal: NodeJS.Signals) => void): void {
	let askedAt: number | undefined;
	const handle = (signal: NodeJS.Signals) => {
		if (askedAt === undefined) {
			askedAt = performance.now();
			first(signal);
		} else if (performance.now() - askedAt > SAME_PRESS_MS) process.exit(exitCodeOf("aborted"));
	};
	process.on("SIGINT", handle);
	process.on("SIGTERM", handle);
}
