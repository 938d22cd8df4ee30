/** The parts of a run: its dependencies, what its log says about it, the request to its engine, and its framer, transcript and recorder. */

import { NexusError } from "@nexus-stream/protocol";
import type { Engine, EngineContext, EngineRequest, EngineYield } from "@nexus-stream/protocol/engine";
import type { InboundEvent, StoredAttachment } from "../../ledger/inbox/port.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { StoredMessage } from "../../ledger/turns/port.ts";
import { defined } from "../../std/defined.ts";
import type { Approvals } from "../approvals.ts";
import { assembleContext, chosenTurns, contextMessage, userMessage } from "../context.ts";
import type { Ending } from "../ending.ts";
import { Framer } from "../frames/framer.ts";
import { Recorder } from "../frames/recorder.ts";
import { Transcript } from "../frames/transcript.ts";
import type { History } from "../history.ts";
import {
	type BrokerLimits,
	type ExecuteRequest,
	keptOf,
	passedOn,
	type RunObserver,
	type Saved,
	type SettleOrphan,
} from "../port.ts";
import type { RecoveryDeps } from "../recovery.ts";

/** Dependencies of every run of a Broker. */
export interface RunDeps extends RecoveryDeps {
	ledger: Ledger;
	engine: Engine;
	history: History;
	approvals: Approvals;
	/** The daemon stops: no person is asked any more. */
	stopping(): boolean;
	/** Settles a run that the store gave up. */
	settleLate(runId: string, ending: Ending, settle: SettleOrphan): Promise<Saved>;
	limits: BrokerLimits;
	/** The execution log includes arguments, results and prompts. */
	withArguments: boolean;
	observer?: RunObserver | undefined;
}

/** Metadata of a run's log. */
export interface RunMeta {
	session: string;
	engine: string;
	startedAt: number;
	/** The inbound events it answers; none when it continues another run. */
	events: { eventId: string }[];
	/** The run that it continues. */
	continues?: string;
}

/** All runs of a session, read as one log. */
export const chainOf = (session: string): string => `session:${session}`;

/** A user's message as the turn stores it. */
export const storedQuestion = ({
	eventId,
	text,
	attachments,
}: Pick<InboundEvent, "eventId" | "text"> & { attachments: readonly StoredAttachment[] }): StoredMessage => ({
	role: "user",
	eventId,
	text,
	attachments: attachments.length > 0 ? [...attachments] : undefined,
});

/** A run that continues another has no messages itself. */
const ownEvents = ({ events, continues }: ExecuteRequest): ExecuteRequest["events"] => (continues ? [] : events);

/** For recovery and listing. */
export const metaOf = (request: ExecuteRequest, engine: string, startedAt: number): RunMeta => ({
	session: request.session,
	engine,
	startedAt,
	events: ownEvents(request).map(({ eventId }) => ({ eventId })),
	continues: request.continues?.runId,
});

export function partsOf({ engine, limits, withArguments, log }: RunDeps, request: ExecuteRequest, startedAt: number) {
	const { runId, session, target, traceId, disableStreaming: whole = false } = request;
	const continues = request.continues?.runId;
	const framer = new Framer({ runId, session, continues, target, traceId, whole, ...limits });
	const userMessages = ownEvents(request).map(storedQuestion);
	const about = { runId, session, continues, engine: engine.name, startedAt, userMessages };
	const transcript = new Transcript({ ...about, ...keptOf(limits) });
	const lengths = () => transcript.lengths;
	const kept = { runId, session, continues: request.continues, limits, withArguments, lengths };
	return { framer, transcript, recorder: new Recorder({ ...kept, engine, log }) };
}

/** Reads the past of the session. A run that continues others reads the turns before them, and their checkpoint. */
export async function engineRequestOf(
	{ history, limits, engine, ledger }: RunDeps,
	request: ExecuteRequest,
): Promise<EngineRequest> {
	const { session, runId, events, context = [], continues } = request;
	const past = await history.past(session, runId);
	const chain = continues ? chainLength(past) : 0;
	const fresh = [...context.map(contextMessage), ...events.map(userMessage)];
	const turns = chosenTurns(past.slice(chain), fresh, limits.contextTokensMax);
	// Events of the continued runs count as read: their text is in the checkpoint.
	const read = [...turns, ...past.slice(0, chain).toReversed()].flatMap(({ events }) => events);
	const further = await request.reads?.(read);
	const phase = engine.phases ? await ledger.phases.get(session) : undefined;
	return defined({
		session,
		runId,
		messages: assembleContext(turns, fresh),
		attachments: events.at(-1)?.attachments ?? [],
		toolTimeoutMs: limits.toolMs,
		...passedOn({ ...request, ...further }),
		phase: phase && { name: phase.name, since: phase.since, from: phase.from, because: phase.because },
		continues: continues && continuedOf(continues),
	});
}

/** How many of the newest turns continue each other: a run that continues them gets their checkpoint instead. */
function chainLength(past: readonly { continues: boolean }[]): number {
	const first = past.findIndex(({ continues }) => !continues);
	return first < 0 ? past.length : first + 1;
}

const continuedOf = ({ root: _root, ...continued }: NonNullable<ExecuteRequest["continues"]>) => continued;

export function iteratorOf(engine: Engine, request: EngineRequest, context: EngineContext): AsyncIterator<EngineYield> {
	const answer = engine.run(request, context);
	if (typeof answer?.[Symbol.asyncIterator] === "function") return answer[Symbol.asyncIterator]();
	throw new NexusError(
		"engine_failed",
		`run() of the engine "${engine.name}" gave nothing to iterate over. Declare it as \`async *run(request, { signal })\` and yield events.`,
	);
}
