/** Tokens of one run, added up over its model calls; what a provider did not say is -1, never 0. */

import type { EngineEvent } from "@nexus-stream/protocol/engine";

/** Adds one answered call; 0 also stands for an unreported number. */
export interface CallTokens {
	input: number;
	output: number;
	cacheRead: number;
	cacheWrite: number;
}

export interface UsageSum {
	add(tokens: CallTokens): void;
	event(): Extract<EngineEvent, { type: "usage" }>;
}

export function usageSum(): UsageSum {
	const sum = { input: 0, output: 0, cache_read: 0, cache_write: 0 };
	let counted = 0;
	let isReadUnknown = false;
	let isOutputUnknown = false;
	return {
		add({ input, output, cacheRead, cacheWrite }) {
			counted += 1;
			// No call that was answered read no token at all, or wrote none.
			isReadUnknown ||= input + cacheRead + cacheWrite === 0;
			isOutputUnknown ||= output === 0;
			sum.input += input;
			sum.output += output;
			sum.cache_read += cacheRead;
			sum.cache_write += cacheWrite;
		},
		// One unknown part makes the total unknown: a number that is too low would look like the truth.
		event: () => ({
			type: "usage",
			...sum,
			...((isReadUnknown || counted === 0) && { input: -1, cache_read: -1, cache_write: -1 }),
			...((isOutputUnknown || counted === 0) && { output: -1 }),
		}),
	};
}
