/** Ends a tool on time and on abort even when the tool listens to neither. */

import { systemClock } from "@nexus-stream/protocol/clock";
import type { Wrappable } from "./wrappable.ts";

/** The same tool; a rejection is what the model is told, and the run goes on. */
export function bounded<Tool extends Wrappable>(tool: Tool, timeoutMs: number): Tool {
	const execute: Wrappable["execute"] = async (id, params, signal, onUpdate, ...rest) => {
		if (signal?.aborted) throw new Error(`${tool.name} was stopped before it began`);
		const deadline = new AbortController();
		const disarm = systemClock.after(timeoutMs, () => deadline.abort(), "due");
		const either = signal === undefined ? deadline.signal : AbortSignal.any([signal, deadline.signal]);
		const { promise: givenUp, reject } = Promise.withResolvers<never>();
		const giveUp = () => {
			const why = deadline.signal.aborted ? `did not finish within ${timeoutMs} ms` : "was stopped before it finished";
			reject(new Error(`${tool.name} ${why}`));
		};
		either.addEventListener("abort", giveUp, { once: true });
		try {
			return await Promise.race([givenUp, tool.execute(id, params, either, onUpdate, ...rest)]);
		} finally {
			disarm();
			either.removeEventListener("abort", giveUp);
		}
	};
	return { ...tool, execute };
}
