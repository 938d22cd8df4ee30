/** Makes every tool call start exactly once, even if the engine omits or repeats the start. No I/O. */

import { isToolDone } from "@nexus-stream/protocol";
import type { ToolEvent } from "../run/engine-event.ts";

export class ToolStarts {
	/** Calls that have started and not ended. */
	readonly #running = new Set<string>();

	/** Adds a missing start; turns a second start into progress. A call that failed without a start never ran. */
	mended(event: ToolEvent): readonly ToolEvent[] {
		const { callId, status, asking: approval } = event;
		const isRunning = this.#running.has(callId);
		if (isToolDone(status)) this.#running.delete(callId);
		else if (approval === undefined) this.#running.add(callId);
		if (isRunning) return status === "started" ? [{ ...event, status: "progress" }] : [event];
		const isStart = status === "started" || status === "failed" || approval !== undefined;
		return isStart ? [event] : [startOf(event), event];
	}
}

const startOf = ({ type, callId, name, agent, args }: ToolEvent): ToolEvent => ({
	type,
	callId,
	name,
	status: "started",
	agent,
	args,
});
