/** Retention, aimed at one log. */

import type { Bus } from "../../packages/daemon/src/bus/bus.ts";

/** Removes the oldest finished log until this one is gone. */
export async function removeUpTo(bus: Bus, log: string): Promise<void> {
	while (await bus.describe(log)) {
		const logs = await bus.list({ live: false });
		const bytes = logs.reduce((sum, info) => sum + info.bytes, 0);
		if ((await bus.retain({ totalBytesMax: bytes - 1 })) === 0) throw new Error(`${log} cannot be removed`);
	}
}
