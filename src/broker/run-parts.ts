/** What a run is made of: its frames, its turn so far, and what it changes beside them. */

import type { Bus } from "../bus/bus.ts";
import type { Engine } from "../engine/engine.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import type { AskingDesk } from "./asking.ts";
import type { Ending } from "./ending.ts";
import { Framer } from "./framer.ts";
import type { History } from "./history.ts";
import { type BrokerLimits, keptOf } from "./limits.ts";
import type { ExecuteRequest, RunObserver, Saved } from "./port.ts";
import { Recorder } from "./recorder.ts";
import type { SettleLeft } from "./recovery.ts";
import type { RunMeta } from "./run-log.ts";
import { storedQuestion, Transcript } from "./transcript.ts";

/** What every run of a Broker needs. */
export interface RunDeps {
	bus: Bus;
	ledger: Ledger;
	engine: Engine;
	history: History;
	asking: AskingDesk;
	/** The daemon stops: nobody is asked any more. */
	stopping(): boolean;
	/** Settles a run that the store gave up. */
	settleLate(runId: string, ending: Ending, settle: SettleLeft): Promise<Saved>;
	limits: BrokerLimits;
	/** The execution log has arguments, results and prompts, too. */
	withArguments: boolean;
	observer?: RunObserver | undefined;
	clock: Clock;
	log: Log;
}

/** The messages that are a run's own: one that continues another has none. */
const ownEvents = ({ events, continues }: ExecuteRequest): ExecuteRequest["events"] => (continues ? [] : events);

/** For recovery and listing. */
export const metaOf = (request: ExecuteRequest, engine: string, startedAt: number): RunMeta => ({
	...{ session: request.session, engine, startedAt },
	events: ownEvents(request).map(({ eventId }) => ({ eventId })),
	...(request.continues && { continues: request.continues.runId }),
});

export function partsOf({ engine, limits, withArguments, log }: RunDeps, request: ExecuteRequest, startedAt: number) {
	const { runId, session, target, traceId, disableStreaming: whole = false } = request;
	const continues = request.continues?.runId;
	const framer = new Framer({ runId, session, continues, target, traceId, whole, ...limits });
	const transcript = new Transcript({
		...{ runId, session, continues, engine: engine.name, startedAt },
		...keptOf(limits),
		asked: ownEvents(request).map(storedQuestion),
	});
	const recorder = new Recorder({
		...{ runId, session, engine, continues: request.continues, limits, withArguments, log },
		lengths: () => transcript.lengths,
	});
	return { framer, transcript, recorder };
}
