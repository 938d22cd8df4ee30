/** Runs an engine for the tests: requests with little to fill in, and answers collected whole. */

import type {
	Engine,
	EngineEvent,
	EngineMessage,
	EngineRequest,
	EngineYield,
} from "../../packages/protocol/src/engine.ts";
import type { ManualClock } from "../clock.ts";

export function requestOf(
	text: string,
	rest: Partial<EngineRequest> = {},
	earlier: EngineMessage[] = [],
): EngineRequest {
	return {
		session: "s",
		runId: "run_1",
		messages: [...earlier, { role: "user", text }],
		attachments: [],
		toolTimeoutMs: 60_000,
		...rest,
	};
}

export interface Played {
	events: EngineEvent[];
	/** When each event came, by the clock. */
	at: number[];
	error?: unknown;
	done: boolean;
}

/** Lets every promise that is ready go on; no time passes. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Starts an engine; what it yields is in the result, as it comes. */
export function start(engine: Engine, request: EngineRequest, signal: AbortSignal, now: () => number): Played {
	const played: Played = { events: [], at: [], done: false };
	const run = async () => {
		try {
			for await (const event of oneByOne(engine.run(request, { signal }))) {
				played.events.push(event);
				played.at.push(now());
			}
		} catch (error) {
			played.error = error;
		}
		played.done = true;
	};
	void run();
	return played;
}

/** The events of an engine, yielded singly or in bursts. */
export async function* oneByOne(run: AsyncIterable<EngineYield>): AsyncGenerator<EngineEvent> {
	for await (const said of run) yield* [said].flat();
}

export async function collect(run: AsyncIterable<EngineYield>): Promise<EngineEvent[]> {
	const events: EngineEvent[] = [];
	for await (const event of oneByOne(run)) events.push(event);
	return events;
}

/** Moves a manual clock on until the run is over. */
export async function playOut(played: Played, clock: ManualClock, stepMs = 1_000, stepsMax = 1_000): Promise<Played> {
	for (let i = 0; i < stepsMax && !played.done; i++) {
		await settle();
		clock.advance(stepMs);
	}
	await settle();
	return played;
}

export const textOf = (events: readonly EngineEvent[]): string =>
	events.map((event) => (event.type === "text" ? event.delta : "")).join("");

export const countOf = (events: readonly EngineEvent[], type: EngineEvent["type"]): number =>
	events.filter((event) => event.type === type).length;
