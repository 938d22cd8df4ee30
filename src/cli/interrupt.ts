/** Ctrl-C: the first asks for an orderly end, the second does not ask. */

import { exitCodeOf } from "../protocol/protocol.ts";

/** npm passes on what the terminal has already sent: two signals this close are one key press. */
const SAME_PRESS_MS = 250;

export function onInterrupt(
	first: (signal: NodeJS.Signals) => void,
	signals: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM"],
): void {
	let askedAt: number | undefined;
	const handle = (signal: NodeJS.Signals) => {
		if (askedAt === undefined) {
			askedAt = performance.now();
			first(signal);
			return;
		}
		// A terminal that closes may say so several times; nobody is there any more who could be impatient.
		if (signal !== "SIGHUP" && performance.now() - askedAt > SAME_PRESS_MS) process.exit(exitCodeOf("aborted"));
	};
	for (const signal of signals) process.on(signal, handle);
}
