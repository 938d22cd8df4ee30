/** Tokens of one run, added up over its model calls; what a provider did not say is -1, never 0. */

import type { AssistantMessage } from "@earendil-works/pi-ai";
import type { EngineEvent } from "../port.ts";

export interface UsageSum {
	add(message: AssistantMessage): void;
	event(): EngineEvent;
}

export function usageSum(): UsageSum {
	const sum = { input: 0, output: 0, cache_read: 0, cache_write: 0 };
	let counted = 0;
	let unknown = false;
	return {
		add({ usage, stopReason, content }) {
			// A refused call has used nothing.
			if (stopReason === "error" && content.length === 0) return;
			counted += 1;
			// pi reads missing usage as 0, but no call that was answered used no token at all.
			if (usage.input + usage.output + usage.cacheRead + usage.cacheWrite === 0) unknown = true;
			sum.input += usage.input;
			sum.output += usage.output;
			sum.cache_read += usage.cacheRead;
			sum.cache_write += usage.cacheWrite;
		},
		// One unknown part makes the total unknown: a number that is too low would look like the truth.
		event: () =>
			unknown || counted === 0
				? { type: "usage", input: -1, output: -1, cache_read: -1, cache_write: -1 }
				: { type: "usage", ...sum },
	};
}
