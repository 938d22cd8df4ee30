/** What the model calls of a run used, agent by agent. */

import type { AssistantMessage } from "@earendil-works/pi-ai";
import type { EngineEvent } from "@nexus-stream/protocol/engine";
import { usageSum } from "../kit/kit.ts";

export interface UsageByAgent {
	/** Of one call that was answered; a compatible server may say anything. */
	add(
		by: { agent: string; model: string },
		usage: AssistantMessage["usage"] | undefined,
	): { tokens: number; costUsd: number };
	/** Of one agent, since it was last taken. */
	take(agent: string): EngineEvent[];
	/** What nobody has taken; one that says nothing if there was nothing. `named`: with the agents' names. */
	rest(named: boolean): EngineEvent[];
}

export function usageByAgent(): UsageByAgent {
	const sums = new Map<string, { model: string; sum: ReturnType<typeof usageSum> }>();
	let isTaken = false;

	function taken(agent: string, named: boolean): EngineEvent[] {
		const own = sums.get(agent);
		if (own === undefined) return [];
		sums.delete(agent);
		isTaken = true;
		return [{ ...own.sum.event(), model: own.model, ...(named && { agent }) }];
	}

	return {
		add({ agent, model }, usage) {
			const [input, output, cacheRead, cacheWrite, costUsd] = [
				usage?.input,
				usage?.output,
				usage?.cacheRead,
				usage?.cacheWrite,
				usage?.cost?.total,
			].map((value) => (Number.isFinite(value) ? Math.max(0, value!) : 0)) as [number, number, number, number, number];
			const own = sums.get(agent) ?? { model, sum: usageSum() };
			sums.set(agent, own);
			own.sum.add({ input, output, cacheRead, cacheWrite });
			return { tokens: input + output + cacheRead + cacheWrite, costUsd };
		},
		take: (agent) => taken(agent, true),
		rest(named) {
			const events = [...sums.keys()].flatMap((agent) => taken(agent, named));
			return events.length > 0 || isTaken ? events : [usageSum().event()];
		},
	};
}
