/** How long a stage took, written down when it is over, however it ends. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { StageTiming } from "../../ledger/ledger.ts";

export function timed<T>(timings: StageTiming[], stage: StageTiming["stage"], clock: Clock, work: () => T): T {
	const at = clock.now();
	const note = () => void timings.push({ stage, at, ms: clock.now() - at });
	let result: T;
	try {
		result = work();
	} catch (cause) {
		note();
		throw cause;
	}
	if (result instanceof Promise) return result.finally(note) as T;
	note();
	return result;
}
