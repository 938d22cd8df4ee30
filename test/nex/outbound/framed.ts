/** Runs as the Broker frames them: with agents, models and phases. */

import type { EngineEvent } from "@nexus-stream/protocol/engine";
import { COMPLETED, type Ending } from "../../../packages/daemon/src/broker/ending.ts";
import { Framer } from "../../../packages/daemon/src/broker/frames/framer.ts";
import type { Bus } from "../../../packages/daemon/src/bus/bus.ts";
import { newRunId } from "../../../packages/protocol/src/protocol.ts";

/** The records of a run that says this. */
export function recordsOf(runId: string, events: readonly EngineEvent[], ending: Ending = COMPLETED): string[] {
	const framer = new Framer({ runId, session: "s", chunkBytesMax: 1000, toolJsonCharsMax: 1000 });
	const records: string[] = [];
	const sink = (record: string) => void records.push(record);
	framer.attach(sink);
	framer.open(1);
	for (const event of events) framer.take(event, 1);
	framer.end(ending, { input: 3, output: 4 }, 1);
	return records;
}

/** A message of an agent, and which model said it. */
export const saidBy = (agent: string, text: string): EngineEvent[] => [
	{ type: "message", agent },
	{ type: "text", delta: text, agent },
	{ type: "usage", input: 1, output: 1, agent, model: `model-${agent}` },
];

export async function framedRun(bus: Bus, events: readonly EngineEvent[]): Promise<string> {
	const runId = newRunId();
	const records = recordsOf(runId, events);
	const writer = await bus.create({ log: runId, kind: "run", meta: { session: "s" } }, records.slice(0, -1));
	await writer.seal(records.slice(-1));
	return runId;
}
