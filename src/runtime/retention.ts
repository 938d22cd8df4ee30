/** Removes old finished logs now and then, in the background. */

import type { Bus } from "../bus/bus.ts";
import { kindRetention } from "../protocol/protocol.ts";
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import type { RetentionConfig } from "./config.ts";

const DAY_MS = 24 * 60 * 60_000;
/** The first sweep waits until the rush of a start is over. */
const FIRST_SWEEP_MS = 30_000;

/** Returns how to stop it. */
export function keepRetention(bus: Bus, rules: RetentionConfig, clock: Clock, log: Log): () => void {
	let stopped = false;
	let cancel = () => {};
	const sweep = async () => {
		try {
			const { ageDaysMax, totalBytesMax } = rules;
			const removed = await bus.retain({ ageMsMax: ageDaysMax * DAY_MS, totalBytesMax, kinds: kindRetention() });
			if (removed > 0) log.info({ removed }, "retention removed finished logs");
		} catch (cause) {
			log.error({ cause }, "the retention sweep failed; it will be tried again");
		}
		if (!stopped) cancel = clock.after(rules.sweepIntervalMs, () => void sweep());
	};
	cancel = clock.after(Math.min(FIRST_SWEEP_MS, rules.sweepIntervalMs), () => void sweep());
	return () => {
		stopped = true;
		cancel();
	};
}
