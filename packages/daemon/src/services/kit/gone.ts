/** What somebody asks for and is not there: it was removed by retention, as its id tells, or it never was. */

import { NexusError, timeOfId } from "@nexus-stream/protocol";

const HOUR_MS = 3_600_000;

/** The same for one that another application has: nobody learns whether it is there. */
export function gone(what: string, id: string, keptMs: number, now: number): NexusError {
	if ((timeOfId(id) ?? Infinity) > now - keptMs) return new NexusError("not_found", `there is no ${what} ${id}`);
	return new NexusError("expired", `a ${what} is kept for ${keptMs / HOUR_MS} hours; ${id} is older`);
}
