/** Ctrl-C: the first asks for an orderly end, the second does not ask. */

import { exitCodeOf } from "../protocol/protocol.ts";
import type { Host } from "./host.ts";

/** npm passes on what the terminal has already sent: two signals this close are one key press. */
const SAME_PRESS_MS = 250;

export function onInterrupt(host: Host, first: (signal: NodeJS.Signals) => void): void {
	let askedAt: number | undefined;
	const handle = (signal: NodeJS.Signals) => {
		if (askedAt === undefined) {
			askedAt = performance.now();
			first(signal);
		} else if (performance.now() - askedAt > SAME_PRESS_MS) host.exit(exitCodeOf("aborted"));
	};
	host.on("SIGINT", handle);
	host.on("SIGTERM", handle);
}
