/** Ctrl-C: the first asks for an orderly end, the second does not ask. */

import { exitCodeOf } from "@nexus-stream/protocol";
import type { Host } from "./host.ts";

/** npm passes on what the terminal has already sent: two signals this close are one key press. */
const SAME_PRESS_MS = 250;

export function onInterrupt(
	host: Host,
	first: (signal: NodeJS.Signals) => void,
	signals: readonly ("SIGINT" | "SIGTERM" | "SIGHUP")[] = ["SIGINT", "SIGTERM"],
): void {
	let askedAt: number | undefined;
	const handle = (signal: NodeJS.Signals) => {
		if (askedAt === undefined) {
			askedAt = performance.now();
			first(signal);
			return;
		}
		// A terminal that closes may send its signal several times: that is not an impatient person.
		if (signal !== "SIGHUP" && performance.now() - askedAt > SAME_PRESS_MS) host.exit(exitCodeOf("aborted"));
	};
	for (const signal of signals) host.on(signal, handle);
}
