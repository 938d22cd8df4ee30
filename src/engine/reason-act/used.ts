/** What the model calls of a run used, agent by agent. */

import type { AssistantMessage } from "@earendil-works/pi-ai";
import { usageSum } from "../kit/kit.ts";
import type { EngineEvent } from "../port.ts";

export interface UsageByAgent {
	/** Of one call that was answered; a compatible server may say anything. */
	add(agent: string, usage: AssistantMessage["usage"] | undefined): { tokens: number; costUsd: number };
	/** One event for each agent, or one for all. */
	events(byAgent: boolean): EngineEvent[];
}

export function usageByAgent(): UsageByAgent {
	const all = usageSum();
	const sums = new Map<string, typeof all>();
	return {
		add(agent, usage) {
			const [input, output, cacheRead, cacheWrite, costUsd] = [
				usage?.input,
				usage?.output,
				usage?.cacheRead,
				usage?.cacheWrite,
				usage?.cost?.total,
			].map((value) => (Number.isFinite(value) ? Math.max(0, value!) : 0)) as [number, number, number, number, number];
			const sum = sums.get(agent) ?? usageSum();
			sums.set(agent, sum);
			for (const one of [all, sum]) one.add({ input, output, cacheRead, cacheWrite });
			return { tokens: input + output + cacheRead + cacheWrite, costUsd };
		},
		events: (byAgent) =>
			byAgent && sums.size > 0 ? [...sums].map(([agent, sum]) => ({ ...sum.event(), agent })) : [all.event()],
	};
}
